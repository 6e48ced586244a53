#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/trace/trace_file.h"
#include "sim/generate/generate.h"

namespace orrery {

// The report of ranks that executed a generation (make_executed_plan), from the step of median time. unfolded: the plan
// of all ranks. A pass lasts from the moment when all ranks have ended the pass before, so that the times of passes add
// up. decode holds the first, the middle and the last pass of one token; the time of each further token is the mean of
// all of them.
GenerationReport measured_generation(const Spec& spec, const Plan& unfolded, std::span<const RankRun> runs);

// The texts that the ranks noted, by number of the sequence.
std::map<std::int64_t, std::vector<std::int64_t>> texts_of(std::span<const RankRun> runs);
// Lines with the first tokens of the first sequences: "sequence 0: 17 4 250 ...".
std::string texts_text(std::span<const RankRun> runs);

}  // namespace orrery
