#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/framework.h"
#include "sim/launch/spec_values.h"

namespace orrery {

// Turns what frameworks count into keys of a spec, and takes all launch.* keys out: nodes times GPUs of a node,
// accumulated micro-batches, layers of a virtual stage, shards and replicas, recomputed modules, named models. remarks
// gets what contradicts itself and what could not be used. shapes: the framework's rule for widths that the file leaves
// out holds (Megatron-LM: feed_forward is four times hidden).
void settle(SpecValues& values, bool shapes, std::vector<std::string>& remarks);

// The reverse: adds the launch.* keys that the rows of a framework ask for.
void unsettle(SpecValues& values, const Framework& framework);

}  // namespace orrery
