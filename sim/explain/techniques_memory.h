#pragma once

#include <functional>
#include <vector>

#include "sim/explain/techniques.h"

namespace orrery {

// The spec with other degrees; what is no longer cut makes more replicas, and options of what is no longer there go.
Spec changed(const Spec& spec, const std::function<void(Strategy&)>& change);

// Techniques that spend time or bytes on memory: ZeRO-R, tiling, the kind of attention.
void add_memory(const Spec& spec, std::vector<Technique>& list);

}  // namespace orrery
