#pragma once

#include <tuple>

#include "sim/search_bounds.h"

namespace orrery {

// rough_layout: a layout whose bound is still a rough one. cell: stands for those after it, of more layers that run
// again, too. played: a point whose bound is from its schedule's order.
enum class SearchLevel : std::uint8_t { rough_layout, layout, group, cell, point, played };

// A part of the space, with its place in the order of the space.
struct SearchNode {
  std::int64_t value = 0;  // at least
  std::uint32_t layout = 0;
  std::int32_t group = -1, cell = -1, feature = -1;
  SearchLevel level = SearchLevel::layout;
  std::int64_t floor = 0;  // of a cell: its group's value
  Bound bound;
  Recipe what;
  Features features;

  auto order() const { return std::tie(value, layout, group, cell, feature); }
  bool operator>(const SearchNode& other) const { return order() > other.order(); }
};

}  // namespace orrery
