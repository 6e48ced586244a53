// Sums of the costs of a model's blocks (layers, embedding, output) over layers, and the cache of these costs.
#include "sim/search/costs.h"

namespace orrery {

PassCost& PassCost::operator+=(const PassCost& other) {
  through += other.through;
  busy += other.busy;
  issue += other.issue;
  compute += other.compute;
  beside += other.beside;
  free_overlap += other.free_overlap;
  late += other.late;
  return *this;
}

void add_up(ModelCost& cost) {
  LayerSums& sums = cost.sums;
  PassCost forward, backward, weight;
  Bytes kept = 0, leaves = 0;
  std::int64_t elements = 0, experts = 0, eight_bit = 0;
  const auto note = [&] {
    sums.forward.push_back(forward);
    sums.backward.push_back(backward);
    sums.weight.push_back(weight);
    sums.kept.push_back(kept);
    sums.leaves.push_back(leaves);
    sums.elements.push_back(elements);
    sums.expert_elements.push_back(experts);
    sums.eight_bit_elements.push_back(eight_bit);
  };
  note();
  for (const BlockCost& layer : cost.layers) {
    forward += layer.forward;
    backward += layer.backward;
    weight += layer.weight;
    kept += layer.kept;
    leaves += layer.leaves;
    elements += layer.elements;
    experts += layer.expert_elements;
    eight_bit += layer.eight_bit_elements;
    note();
  }
}

const ModelCost& ModelCostCache::of(const ModelCostKey& key) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = known_.find(key);
    if (it != known_.end()) return it->second;
  }
  ModelCost cost = model_cost(base_, profile_, key);
  const std::lock_guard lock(mutex_);
  return known_.try_emplace(key, std::move(cost)).first->second;
}

}  // namespace orrery
