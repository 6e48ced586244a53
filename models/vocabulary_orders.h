#pragma once

#include <vector>

#include "models/schedules.h"

namespace orrery {

// 1F1B of stages that all hold a part of the vocabulary (Yeung et al. 2024, "Balancing Pipeline Parallelism with
// Vocabulary Parallelism", arXiv:2411.05288, section 5). Beside its layers, chunk 0, a stage runs two chunks of its
// own: 1, the lookups of its words, and 2, its part of the logits: forward (the paper's S) when the last stage has sent
// the hidden states round, backward (T) when all stages have put their sums together. The last stage's backward follows
// all S (one barrier) or all T (two). Stage i keeps at most p - i + barriers micro-batches. Every stage runs each of
// its passes once in a period, in one pattern that begins later from stage to stage; of all patterns the one with the
// shortest way of a micro-batch. shape.times: those of the stages, of a part of the logits, of a part of the lookups.
std::vector<std::vector<Action>> vocabulary_orders(const ScheduleShape& shape, std::int64_t barriers);

}  // namespace orrery
