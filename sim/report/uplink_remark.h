#pragma once

#include <string>

#include "sim/cost/uplinks.h"

namespace orrery {

// Returns what uplinks do to a transfer, where they slow it or are nearly full while it runs: "takes 2.67 times as long
// over the uplinks of 256 GPUs, 100 % full"; "" where they do neither.
std::string uplink_remark(const UplinkUse& use);

}  // namespace orrery
