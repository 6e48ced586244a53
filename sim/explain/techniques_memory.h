#pragma once

#include <functional>
#include <vector>

#include "sim/explain/techniques.h"

namespace orrery {

// The spec after a change of its strategy, made consistent: ranks that the new degrees do not need become replicas, and
// options of techniques that are no longer used are dropped.
Spec changed(const Spec& spec, const std::function<void(Strategy&)>& change);

// Adds to the list the techniques that spend time or bytes to save memory: ZeRO-R, tiling, the kind of attention.
void add_memory(const Spec& spec, std::vector<Technique>& list);

}  // namespace orrery
