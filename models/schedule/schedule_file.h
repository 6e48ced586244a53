#pragma once

#include <string>
#include <string_view>

#include "models/schedule/schedules.h"

namespace orrery {

// Parses a pipeline order that the user wrote: one line for each stage, in the notation in which PyTorch prints its
// schedules.
//   # two stages, four micro-batches
//   F0 F1 B0 F2 B1 F3 B2 B3
//   F0 B0 F1 I1 F2 W1 B2 F3 B3
// F is forward, B backward; in place of B, I and W are the input gradient and the weight gradient. The number of the
// micro-batch follows. A number before the letter is the virtual stage (0F3), which then lies on the stage of its line;
// without a number, the virtual stage is the stage of the line. Cells may also be separated by commas; empty cells are
// skipped.
// Throws Error "file:line: what" for an action that is unknown, occurs twice, is missing, or is on two stages.
Schedule parse_schedule(const std::string& text, const std::string& path, const ScheduleShape& shape);

}  // namespace orrery
