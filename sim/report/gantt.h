#pragma once

#include <string>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// A step as text, one line per class of ranks (at most `lines` of them) and `columns` cells of equal time; a cell shows
// the work on which the ranks' compute lane (stream) spent most of it:
//
//   stage 0  FFFFFF..BBBBFFBBBB..U
//   stage 1  ..FFFFBBBBFFBBBB....U
//
// F forward, B backward (W weight gradients, where they run apart), R forward run again, U norm and update, . idle.
std::string gantt(const Plan& plan, const Trace& trace, int columns = 100, int lines = 32);

// The letters that a line has beside its name on a terminal of so many columns, 100 at most; 0: no limit.
int gantt_columns(const Plan& plan, std::size_t columns);

}  // namespace orrery
