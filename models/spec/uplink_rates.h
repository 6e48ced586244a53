#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/network.h"

namespace orrery {

// Returns the rates of the uplinks of a leaf that work (Network::faults), in the order of their numbers, over that of
// one without a fault. Of a leaf on which only so many links work, those that are named as down are not among them,
// and beyond these first the whole ones with the highest numbers, then the fastest of the slow ones.
std::vector<double> uplink_rates(const Network& network, std::int64_t leaf);

// Returns the sum of these rates.
double working_uplinks(const Network& network, std::int64_t leaf);

}  // namespace orrery
