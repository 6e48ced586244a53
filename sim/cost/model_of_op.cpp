#include "sim/cost/model_of_op.h"

namespace orrery {

std::vector<const Model*> models_of_ops(const Spec& spec, const Plan& plan) {
  std::vector<const Model*> models(plan.ops.size(), &spec.model);
  for (const Block& block : plan.blocks) {
    if (!block.second) continue;
    for (const std::uint32_t op : block.forward) models[op] = &spec.second->model;
  }
  return models;
}

}  // namespace orrery
