#pragma once

#include <string_view>

#include "models/load/reader.h"
#include "models/spec/network.h"

namespace orrery {

// These functions read parts of cluster.network. `at`: the node of the map, for messages.

// Reads the key of a network's kind that only this kind has, such as `torus`, which must be there for the kind and is
// refused with others (network.cpp).
const SpecNode* of_kind(const SpecSection& network, const SpecNode& at, std::string_view key, bool wanted);
// Read what is above the leaves (spine.cpp): spine, groups, neighbours. Leaves must be read.
void read_spine(const SpecSection& network, Network& n);
void read_groups(const SpecSection& network, const SpecNode& at, const Cluster& c, Network& n);
void read_neighbours(const SpecSection& network, Network& n);
void read_sites(const SpecSection& network, Network& n);                     // reads sites (sites.cpp)
void read_faults(const SpecSection& network, const Cluster& c, Network& n);  // reads faults (faults.cpp)

// Rules that hold for the values of these keys; the first that is broken.
Broken spine_rules(const Network& n);
Broken site_rules(const Cluster& c);

}  // namespace orrery
