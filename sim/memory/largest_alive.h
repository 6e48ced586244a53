#pragma once

#include <string>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// Returns the largest buffers on the device that are alive when a class of ranks has issued task `at` of a step, and
// their bytes under each name, as texts: "38.5 GiB logits x 2". alive: for each buffer of the plan, 0; buffers of the
// class that are alive are marked there.
std::vector<std::string> largest_alive(const Plan& plan, TaskId at, std::vector<char>& alive);

}  // namespace orrery
