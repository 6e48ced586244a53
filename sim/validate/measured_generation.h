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

// How far the logits of a model with quantised weights or cache are from those of the same model without, over rows
// whose text before is the same: the mean and the largest size of a difference; the mean divergence KL(wide ||
// quantised) of a row's probabilities; and the share of rows whose most likely token is the same. rows is 0 if the
// ranks compared nothing.
struct LogitErrors {
  std::int64_t rows = 0;
  double mean = 0, largest = 0, divergence = 0, same_tokens = 0;
};
LogitErrors logit_errors(std::span<const RankRun> runs);
// A line with these figures; "" without rows.
std::string text_of(const LogitErrors& errors);

// The texts that the ranks noted, by number of the sequence.
std::map<std::int64_t, std::vector<std::int64_t>> texts_of(std::span<const RankRun> runs);
// Lines with the first tokens of the first sequences: "sequence 0: 17 4 250 ...".
std::string texts_text(std::span<const RankRun> runs);

}  // namespace orrery
