#pragma once

#include <cstddef>
#include <vector>

#include "viz/timeline/timeline_builder.h"

namespace orrery {

// Puts the files of one trace on one clock, the first file's. What all files have in common are collectives: the k-th
// of a label ends everywhere at the same moment, but for what the network takes to say so. A file is shifted by the
// median difference of its ends from the first's, where that is more than its spread; a remark says by how much.
// firsts: where in the builder each file's events begin.
void align_clocks(TimelineBuilder& builder, const std::vector<std::size_t>& firsts);

}  // namespace orrery
