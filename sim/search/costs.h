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

// The time of one block (a layer, embedding or output) in one pass when only the tensor, context and expert transfers
// of the same rank run beside it, and the host is never late. through: time from the start of the block's first compute
// op to the start of the next block's; busy: time to the end of the block's last compute op. issue: time the host needs
// to launch the block. compute: time of the kernels alone. beside: time of the tensor, context and expert transfers.
// hides: the part of `beside` in which further transfers that slow kernels may cost nothing. late: the part of
// `through` that may come after the block's result: sums of gradients, and the handling of an FSDP unit's gradients.
struct PassCost {
  Picoseconds through = 0, busy = 0, issue = 0, compute = 0, beside = 0, hides = 0, late = 0;

  Picoseconds to_result() const { return through - late; }

  PassCost& operator+=(const PassCost& other);  // adds the cost of a block that follows on the same rank
};

// Durations of a block's ops, in the order of the ops, for schedules whose order is fitted to times (order_time.h).
struct OrderTimes {
  std::vector<OrderLength> forward, input, weight;
};

// The costs of a block (a layer, embedding or output) for one micro-batch on one rank. backward: the complete backward,
// or the input-gradient part where the schedule splits backward; weight is then the other part. kept: bytes that stay
// from forward to backward. backward_extra: greatest number of bytes allocated in backward beyond the bytes that this
// block and the blocks before it keep, weights gathered for the block and their gradients included; forward_extra:
// greatest number of bytes allocated in forward beyond the bytes that the blocks before it keep.
struct BlockCost {
  PassCost forward, backward, weight;
  // Part of backward.through before any op reads the gradient of the block's output.
  Picoseconds early = 0;
  // Part of backward.through after the last contribution to the gradient of the block's weights (FSDP unit).
  Picoseconds trails = 0;
  std::shared_ptr<const OrderTimes> order_times;  // set if the schedule splits backward
  Bytes kept = 0, backward_extra = 0, forward_extra = 0;
  // Part of `kept` that is copied to the host where activations are offloaded (StackKey::leaves).
  Bytes leaves = 0;
  std::int64_t elements = 0, expert_elements = 0, eight_bit_elements = 0;
};

// Sums over the first n layers of a model, n = 0 ... layers.
struct LayerSums {
  std::vector<PassCost> forward, backward, weight;
  std::vector<Bytes> kept, leaves;
  std::vector<std::int64_t> elements, expert_elements, eight_bit_elements;
};

// Costs of all blocks of a model with given parallel degrees (StackKey).
struct StackCost {
  // False: the parallel degrees break a rule of the model, or the planner does not support them.
  bool possible = true;
  // head: final norm, logits and loss.
  BlockCost embedding, head;
  std::vector<BlockCost> layers;
  LayerSums sums;
};

// Computes cost.sums from cost.layers.
void add_up(StackCost& cost);

// Everything on which the costs of blocks depend. Ranks are in the order "tp-cp-dp-pp", which puts each tensor, context
// and expert group on as few nodes as possible: no other order of ranks makes the groups' transfers faster.
struct StackKey {
  std::int64_t tensor = 1, context = 1, expert = 1, expert_tensor = 1, micro_batch = 1;
  // number of data ranks that matter for costs. 1: one; 2: more than one; larger: as many as expert ranks need
  std::int64_t data = 1;
  std::int64_t sequence = 0;  // sequence length in tokens; 0: the spec's length
  std::string context_kind = "ring", recompute = "none";
  Sharding sharding = Sharding::none;
  bool sequence_parallel = false, overlap_tensor = false, overlap_expert = false, splits_backward = false;
  // host_gradients: whether gradients are on the host; leaves: whether to find the bytes of offloaded activations
  // (BlockCost::leaves).
  bool host_gradients = false, leaves = false;

  std::strong_ordering operator<=>(const StackKey&) const = default;
};

// Simulates a plan of one stage and one micro-batch with each type of layer. The plan leaves out issue times,
// data-parallel transfers, and everything that could make it break a rule that strategies with these parallel degrees
// obey: stragglers, activations on the host, and a host optimizer where states are unsharded. All that is left out only
// adds time.
StackCost stack_cost(const Spec& base, const Profile& profile, const StackKey& key);

// Computes costs of blocks when asked for, and keeps them. Safe to use from several threads.
class StackCosts {
 public:
  StackCosts(const Spec& base, const Profile& profile) : base_(base), profile_(profile) {}
  const StackCost& of(const StackKey& key);

 private:
  const Spec& base_;
  const Profile& profile_;
  std::mutex mutex_;
  std::map<StackKey, StackCost> known_;
};

}  // namespace orrery
