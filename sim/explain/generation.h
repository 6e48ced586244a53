#pragma once

#include <string>
#include <vector>

#include "sim/generate/generate.h"
#include "sim/print/section.h"

namespace orrery {

// These sections say what decides the times of a generation: what each pass waits for, the kernels of a pass of one
// token, the times of reading weights and cache at the memory's full bandwidth beside the simulated time, the bytes
// of the cache, and what formats of few bits save.
std::vector<Section> generation_sections(const Spec& spec, const GenerationReport& report, const std::string& profile);

}  // namespace orrery
