#pragma once

#include <cstddef>
#include <vector>

#include "viz/timeline/timeline_builder.h"

namespace orrery {

// Aligns the clocks of the files of one trace with the clock of the first file. Collectives occur in all files: the
// k-th collective with a label ends on all ranks at the same time, up to network latency. A file is shifted by the
// median difference between its end times and those of the first file if the median exceeds the spread of the
// differences; a remark in the timeline tells by how much. firsts: index in the builder of each file's first event.
void align_clocks(TimelineBuilder& builder, const std::vector<std::size_t>& firsts);

}  // namespace orrery
