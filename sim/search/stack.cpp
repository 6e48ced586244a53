// Sums of the costs of a model's blocks (layers, embedding, output) over layers, and the cache of these costs.
#include "sim/search/costs.h"

#include <algorithm>

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

static void take_least(PassCost& a, const PassCost& b) {
  a = {std::min(a.through, b.through), std::min(a.busy, b.busy),     std::min(a.issue, b.issue),
       std::min(a.compute, b.compute), std::min(a.beside, b.beside), std::max(a.free_overlap, b.free_overlap),
       std::max(a.late, b.late)};
}

void take_least(BlockCost& a, const BlockCost& b) {
  take_least(a.forward, b.forward);
  take_least(a.backward, b.backward);
  take_least(a.weight, b.weight);
  a.kept = std::min(a.kept, b.kept);
  a.backward_extra = std::min(a.backward_extra, b.backward_extra);
  a.early = std::max(a.early, b.early);
  a.trails = std::max(a.trails, b.trails);
  a.forward_extra = std::min(a.forward_extra, b.forward_extra);
}

void add_behind(BlockCost& a, const BlockCost& b) {
  a.forward += b.forward;
  a.backward += b.backward;
  a.weight += b.weight;
  a.forward_extra = std::max(a.forward_extra, a.kept + b.forward_extra);
  a.kept += b.kept;
  a.elements += b.elements;
  a.expert_elements += b.expert_elements;
  a.eight_bit_elements += b.eight_bit_elements;
  if (b.order_times) {
    auto times = std::make_shared<OrderTimes>(a.order_times ? *a.order_times : OrderTimes{});
    for (const auto member : {&OrderTimes::forward, &OrderTimes::input, &OrderTimes::weight})
      (*times.*member).insert((*times.*member).end(), (*b.order_times.*member).begin(), (*b.order_times.*member).end());
    a.order_times = std::move(times);
  }
  a.early = b.early;
  // the backward of the last block runs first, while the activations of all blocks are kept
  a.backward_extra = b.backward_extra;
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
