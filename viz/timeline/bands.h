#pragma once

#include <string>
#include <vector>

#include "viz/timeline/statistics.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// A stretch of time in which a process works in one phase (Timeline::phases): a pass over the prompts, the forward of
// the teacher for one micro-batch, ...
struct Band {
  Picoseconds begin = 0, end = 0;
  std::int8_t phase = 0;
  std::int32_t micro_batch = -1;  // that of the band's first event
};

// Returns the bands of a lane, in order. Where passes have names (Timeline::pass_of_batch), each pass is a band.
std::vector<Band> bands_of(const Timeline& timeline, const Track& track);
std::string name_of(const Timeline& timeline, const Band& band);  // "decode 12", "teacher"

// The durations of the bands of all processes that begin in a range of time, phase by phase; OpStatistics::label is the
// phase's index. Phases that do not occur there are left out.
std::vector<OpStatistics> phase_statistics(const Timeline& timeline, const std::vector<std::vector<Band>>& bands,
                                           Picoseconds from, Picoseconds to);
OpSpread spread_of_phase(const std::vector<std::vector<Band>>& bands, std::int8_t phase, Picoseconds from,
                         Picoseconds to);

}  // namespace orrery
