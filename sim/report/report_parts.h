#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/print/table.h"
#include "sim/report/report.h"

namespace orrery {

// Lines and tables of a report, from which its text (report_text.h) and its page (sim/page) are made.

// The sizes of a step's batch as text: "64 micro-batches of 1 x 2048 tokens a replica, 512 sequences a step".
std::string batch_text(const Spec& spec);
// The strategy as text: "tensor 8, pipeline 8, data 8, 1f1b, sharding zero1, bf16, megatron-core".
std::string strategy_text(const Spec& spec);

// How a second model is cut over GPUs of its own: " on 8 GPUs of its own: tensor 8"; "" if it has none.
std::string second_layout_text(const Spec& spec);

// Whether the step fits in memory, and by how much: "fits: 48.19 GiB to spare of 79.25 GiB per GPU", or "DOES NOT FIT:"
// and what lacks.
std::string fit_text(const Report& report);

// A table of the kinds of time (compute, exposed transfers, bubble, ...) that take at least a two-thousandth of a step,
// with seconds and shares. bars: length of the longest bar in a last column, in characters; 0: no such column.
Table time_table(const Report& report, std::size_t bars = 0);

// Returns how the step's time is split between the two models of a step, and what each waits for: "the student takes 43
// % of a step (compute 30 %, launch 10 %), the teacher 57 % (compute 34 %)"; "" for a step of one model.
std::string models_text(const Report& report);

// A table of memory with a row for each class of ranks (ranks that do the same) and a column for each category.
Table memory_table(const Report& report);
// The class of ranks (ranks that do the same) that needs the most memory of a GPU; nullptr if the report has none.
const RankMemory* fullest_rank(const MemoryReport& memory);
// Lines on the memory peak of the class of ranks that needs most (fullest_rank): when it is, which buffers are the
// largest then, and further notes on memory.
std::vector<std::string> peak_lines(const Report& report);

// The transfers of a step as a table (communication_table). exposed_note: a line on the meaning of exposed time for
// transfers whose exposed time is longer than they take; "" where there are none.
Table communication_table(const Report& report);
// The fullest link of each kind and level, with the share of its rate that the step uses.
Table links_table(const Report& report);
std::string exposed_note(const Report& report);
// A table of the versions of weights that each class of ranks (ranks that do the same) keeps; no row where all
// gradients are computed with the newest weights.
Table weights_table(const Report& report);

}  // namespace orrery
