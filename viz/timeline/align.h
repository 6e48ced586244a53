#pragma once

#include <cstddef>
#include <vector>

#include "viz/timeline/timeline_builder.h"

namespace orrery {

// Puts the files of one trace on one clock, that of the first file. Collectives are the events that all files share:
// the k-th collective of a label ends everywhere at the same moment, up to network latency. A file is shifted by the
// median difference of its ends from those of the first file, where the median exceeds the spread of the differences; a
// remark says by how much. firsts: index in the builder of each file's first event.
void align_clocks(TimelineBuilder& builder, const std::vector<std::size_t>& firsts);

}  // namespace orrery
