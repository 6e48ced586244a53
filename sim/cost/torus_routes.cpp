#include "sim/cost/torus_routes.h"

#include <vector>

namespace orrery {
namespace {

// The coordinates of a node, the last axis fastest.
std::vector<std::int64_t> torus_coordinates(const Torus& torus, std::int64_t node) {
  std::vector<std::int64_t> at(torus.shape.size());
  for (std::size_t axis = at.size(); axis-- > 0;) {
    at[axis] = node % torus.shape[axis];
    node /= torus.shape[axis];
  }
  return at;
}

std::int64_t torus_node(const Torus& torus, const std::vector<std::int64_t>& at) {
  std::int64_t node = 0;
  for (std::size_t axis = 0; axis < at.size(); ++axis) node = node * torus.shape[axis] + at[axis];
  return node;
}

}  // namespace

std::int64_t link_count(const Torus& torus) {
  std::int64_t nodes = 1;
  for (const std::int64_t along : torus.shape) nodes *= along;
  return 2 * nodes * static_cast<std::int64_t>(torus.shape.size());
}

void visit_links(const Torus& torus, std::int64_t from, std::int64_t to,
                 const std::function<void(std::int64_t)>& visit) {
  std::vector<std::int64_t> at = torus_coordinates(torus, from);
  const std::vector<std::int64_t> end = torus_coordinates(torus, to);
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    const std::int64_t along = torus.shape[axis];
    const std::int64_t ahead = (end[axis] - at[axis] + along) % along;
    const bool even = 2 * ahead == along;  // whether both ways are equally long
    const bool up = !torus.wraps ? end[axis] > at[axis] : even ? at[axis] % 2 == 0 : 2 * ahead < along;
    while (at[axis] != end[axis]) {
      const auto axes = static_cast<std::int64_t>(at.size());
      visit(2 * (torus_node(torus, at) * axes + static_cast<std::int64_t>(axis)) + (up ? 0 : 1));
      at[axis] = (at[axis] + (up ? 1 : along - 1)) % along;
    }
  }
}

}  // namespace orrery
