#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/framework.h"
#include "sim/launch/spec_values.h"

namespace orrery {

// Turns quantities that frameworks count differently than a spec (keys "launch.*") into keys of a spec, and removes all
// launch.* keys. The quantities are nodes times GPUs of a node, accumulated micro-batches, layers of a virtual stage,
// shards and replicas, recomputed modules, and named models. Contradictions and unusable values are added to remarks.
// shapes: whether an MLP width that the file leaves out follows Megatron-LM's rule (feed_forward is four times hidden).
void resolve_launch_keys(SpecValues& values, bool shapes, std::vector<std::string>& remarks);

// The reverse of resolve_launch_keys(): adds those launch.* keys that occur in the framework's tables of options.
void add_launch_keys(SpecValues& values, const Framework& framework);

}  // namespace orrery
