#pragma once

#include <string>
#include <string_view>

#include "models/schedule/schedules.h"

namespace orrery {

// A pipeline order that the user wrote: a line per stage, in the notation that PyTorch prints of its schedules.
//   # two stages, four micro-batches
//   F0 F1 B0 F2 B1 F3 B2 B3
//   F0 B0 F1 I1 F2 W1 B2 F3 B3
// F forward, B backward, or separately I and W for the gradients of inputs and of weights; then the micro-batch. A
// number before the letter is the virtual stage (0F3), which lies on the stage of its line; without a number it is the
// stage of the line. Commas separate too, empty cells are skipped.
// Throws Error "file:line: what" for an action that is unknown, done twice, missing, or on two stages at once.
Schedule parse_schedule(const std::string& text, const std::string& path, const ScheduleShape& shape);

}  // namespace orrery
