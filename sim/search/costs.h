#pragma once

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/planner/order_time.h"
#include "models/spec/spec.h"

namespace orrery {

// The time of one pass (forward or backward) of one block (a layer, embedding or output), when only the tensor, context
// and expert transfers of the same rank run beside it and the host always launches in time.
//   through: from the start of the block's first compute op to the start of the next block's
//   busy: from the start of the block's first compute op to the end of its last compute op
//   issue: time that the host needs to launch the block's ops
//   compute: time of the kernels when nothing runs beside them
//   beside: time of the tensor, context and expert transfers
//   free_overlap: the part of `beside` during which a further transfer may run without slowing any kernel
//   late: the part of `through` that may come after the block's result is complete, such as sums of gradients, and
//     the handling of an FSDP unit's gradients
struct PassCost {
  Picoseconds through = 0, busy = 0, issue = 0, compute = 0, beside = 0, free_overlap = 0, late = 0;

  Picoseconds to_result() const { return through - late; }

  PassCost& operator+=(const PassCost& other);  // adds the cost of a block that follows on the same rank
};

// Durations of a block's ops, one for each op in issue order, for schedules that choose the order of passes by
// durations (order_time.h).
struct OrderTimes {
  std::vector<OrderLength> forward, input, weight;
};

// The costs of a block (a layer, embedding or output) for one micro-batch on one rank.
//   backward: the complete backward; where the schedule splits backward, only the input gradients
//   weight: where the schedule splits backward, the weight gradients
//   kept: bytes of activations that stay from forward to backward
//   backward_extra: most bytes allocated in backward beyond what this block and the blocks before it keep; includes
//     weights gathered for the block and their gradients
//   forward_extra: most bytes allocated in forward beyond what the blocks before it keep
//   expert_elements, elements: numbers of weights, those of experts and all others
//   eight_bit_elements: number of those of either that products read in eight bits
struct BlockCost {
  PassCost forward, backward, weight;
  // The part of the time of the block's backward (backward.through) before any op reads the gradient of the block's
  // output; recomputation, for example, does not read it.
  Picoseconds early = 0;
  // The part of the time of the block's backward (backward.through) that is left when the gradients of the block's
  // weights (FSDP unit) are complete.
  Picoseconds trails = 0;
  std::shared_ptr<const OrderTimes> order_times;  // durations of ops; set if the schedule splits backward
  Bytes kept = 0, backward_extra = 0, forward_extra = 0;
  // Bytes of activations kept for backward (of `kept`) that are copied to the host if activations are offloaded; found
  // only where ModelCostKey::leaves is set.
  Bytes leaves = 0;
  std::int64_t elements = 0, expert_elements = 0, eight_bit_elements = 0;
};

// Lowers the costs of a block to those of another of the same kind, where these are less.
void take_least(BlockCost& cost, const BlockCost& other);
// Adds the cost of a block outside the layers (vision encoder or embedding; norm, logits or loss) to the sum of the
// costs of the blocks before it.
void add_behind(BlockCost& sum, const BlockCost& block);

// Prefix sums of the costs of a model's layers: element n is the sum over the first n layers, for n from 0 to the
// number of layers.
struct LayerSums {
  std::vector<PassCost> forward, backward, weight;
  std::vector<Bytes> kept, leaves;
  std::vector<std::int64_t> elements, expert_elements, eight_bit_elements;
};

// Costs of all blocks of a model with given parallel degrees (ModelCostKey).
struct ModelCost {
  // Whether the model can run with these parallel degrees: they break no rule, and the planner supports them.
  bool possible = true;
  // embedding: the blocks before the first layer; head: those after the last (final norm, logits and loss)
  BlockCost embedding, head;
  std::vector<BlockCost> layers;
  LayerSums sums;
  // The same of the frozen model beside the one that trains (SecondModel), all of it forward; null if there is none.
  std::shared_ptr<const ModelCost> second;
};

// Computes the prefix sums over layers (cost.sums) from the costs of the layers (cost.layers).
void add_up(ModelCost& cost);

// Everything on which the costs of blocks (layers, embedding, output) depend. Ranks are in the order "tp-cp-dp-pp",
// which puts each tensor, context and expert group on as few nodes as possible, so that no other order of ranks makes
// the groups' transfers faster.
struct ModelCostKey {
  std::int64_t tensor = 1, context = 1, expert = 1, expert_tensor = 1, micro_batch = 1;
  // Number of data-parallel ranks, as far as the cost of a layer depends on it: 1 if there is one; 2 if there are more;
  // larger only if the expert-parallel group needs more.
  std::int64_t data = 1;
  std::int64_t sequence = 0;  // sequence length in tokens; 0: the spec's length
  std::string context_kind = "ring", recompute = "none";
  Sharding sharding = Sharding::none;
  bool sequence_parallel = false, overlap_tensor = false, overlap_expert = false, splits_backward = false;
  // host_gradients: whether gradients are on the host; leaves: whether to find the bytes of activations that can be
  // offloaded (BlockCost::leaves).
  bool host_gradients = false, leaves = false;

  std::strong_ordering operator<=>(const ModelCostKey&) const = default;
};

// Finds the costs of blocks by simulating a plan of one stage and one micro-batch that has every type of layer. Left
// out are issue times, data-parallel transfers, and whatever might make this small plan break a rule that the complete
// strategy obeys: stragglers, activations on the host, and a host optimizer where states are unsharded. All of these
// only add time, so that the costs are lower bounds.
ModelCost model_cost(const Spec& base, const Profile& profile, const ModelCostKey& key);

// Computes costs of blocks (layers, embedding, output) when asked for, and keeps them. Several threads may use it.
class ModelCostCache {
 public:
  ModelCostCache(const Spec& base, const Profile& profile) : base_(base), profile_(profile) {}
  const ModelCost& of(const ModelCostKey& key);

 private:
  const Spec& base_;
  const Profile& profile_;
  std::mutex mutex_;
  std::map<ModelCostKey, ModelCost> known_;
};

}  // namespace orrery
