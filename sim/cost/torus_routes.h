#pragma once

#include <cstdint>
#include <functional>

#include "models/spec/network.h"

namespace orrery {

// The number of directed links of a torus: two of each node along each axis, of which those at the ends of rows that do
// not wrap carry nothing.
std::int64_t link_count(const Torus& torus);

// Calls `visit` with the number of every link that a byte takes from one node to another: along one axis after the
// other (dimension-order routing), each the shorter way; where both ways are equally long, up from even coordinates and
// down from odd ones, so that an all-to-all uses both alike where the axis is a multiple of 4, and nearly else.
void visit_links(const Torus& torus, std::int64_t from, std::int64_t to,
                 const std::function<void(std::int64_t)>& visit);

}  // namespace orrery
