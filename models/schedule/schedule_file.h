#pragma once

#include <string>
#include <string_view>

#include "models/schedule/schedules.h"

namespace orrery {

// A pipeline order of the user's own: a line per stage, in the notation that PyTorch prints of its schedules.
//
//   # two stages, four micro-batches
//   F0 F1 B0 F2 B1 F3 B2 B3
//   F0 B0 F1 I1 F2 W1 B2 F3 B3
//
// F forward, B backward, or I and W for the gradients of inputs and of weights apart; then the micro-batch. A number
// before the letter names the virtual stage (0F3), which lies on the stage whose line it stands in; without one it is
// the line's own. Commas separate too, empty cells are skipped.
// Throws Error "file:line: what" for what is unknown, done twice, missing, or on two stages at once.
Schedule parse_schedule(const std::string& text, const std::string& path, const ScheduleShape& shape);

}  // namespace orrery
