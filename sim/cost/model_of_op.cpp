#include "sim/cost/model_of_op.h"

#include <algorithm>

namespace orrery {

const Model& model_of_op(const Spec& spec, const Plan& plan, std::uint32_t op) {
  const bool second = std::ranges::any_of(
      plan.blocks, [&](const Block& b) { return b.second && std::ranges::find(b.forward, op) != b.forward.end(); });
  return second ? spec.second->model : spec.model;
}

}  // namespace orrery
