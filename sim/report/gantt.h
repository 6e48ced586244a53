#pragma once

#include <string>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// Returns a step as text: one line for each class of ranks that do the same (at most `lines` lines), each with
// `columns` characters that stand for equal spans of time. A character shows what the ranks' compute lane (stream) did
// for most of that span:
//
//   stage 0  FFFFFF..BBBBFFBBBB..U
//   stage 1  ..FFFFBBBBFFBBBB....U
//
// F forward, B backward (W weight gradients, where they run apart), R forward run again, U norm and update, . idle.
std::string gantt(const Plan& plan, const Trace& trace, int columns = 100, int lines = 32);

// Returns the number of characters for the step on each line (gantt's `columns`) that fit beside the line's name on a
// terminal of `columns` columns; at most 100. columns 0: the terminal has no limit.
int gantt_columns(const Plan& plan, std::size_t columns);

}  // namespace orrery
