#pragma once

#include <functional>
#include <vector>

#include "sim/explain/techniques.h"

namespace orrery {

// The spec with other degrees; ranks that the degrees no longer need become replicas, and options of techniques that
// are gone are dropped.
Spec changed(const Spec& spec, const std::function<void(Strategy&)>& change);

// Adds techniques that spend time or bytes to save memory: ZeRO-R, tiling, the kind of attention.
void add_memory(const Spec& spec, std::vector<Technique>& list);

}  // namespace orrery
