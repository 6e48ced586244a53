#pragma once

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/spec.h"

namespace orrery {

// What one block takes in one pass when nothing but its own rank's tensor, context and expert transfers goes on beside
// it, the host never late. through: from its first compute op to the next block's; busy: to the end of its last one.
// issue: what its host needs to launch it. compute: what its kernels take alone. beside: what those transfers take.
// hides: of that, where more that slows kernels may cost nothing. late: of the time through it, what may come after its
// result: sums of gradients, what is done to a unit's.
struct PassCost {
  Picoseconds through = 0, busy = 0, issue = 0, compute = 0, beside = 0, hides = 0, late = 0;

  Picoseconds to_result() const { return through - late; }

  PassCost& operator+=(const PassCost& other);  // of what follows on the same rank
};

// What ops of a block count in orders that fit times (order_time.h), in their order.
struct OrderTimes {
  std::vector<double> forward, input, weight;
};

// A block of one micro-batch on one rank. backward: the input gradients' part where the schedule splits, then weight
// has the rest. kept: bytes from its forward to its backward. Extra: bytes at most in a pass beyond what it and the
// blocks before it keep, weights of its own that are gathered for it and their gradients included; forward_extra:
// beyond what those before it keep.
struct BlockCost {
  PassCost forward, backward, weight;
  Picoseconds early = 0;   // of the time through backward, what comes before anything reads the output's gradient
  Picoseconds trails = 0;  // and behind the last part of the gradient of the block's unit
  std::shared_ptr<const OrderTimes> order_times;  // where the schedule splits
  Bytes kept = 0, backward_extra = 0, forward_extra = 0;
  Bytes leaves = 0;  // of kept, where activations lie on the host: what is copied there (StackKey::leaves)
  std::int64_t elements = 0, expert_elements = 0, eight_bit_elements = 0;
};

// Sums over the first n layers of a model, n = 0 ... layers.
struct LayerSums {
  std::vector<PassCost> forward, backward, weight;
  std::vector<Bytes> kept, leaves;
  std::vector<std::int64_t> elements, expert_elements, eight_bit_elements;
};

// Every block of a model under one layout.
struct StackCost {
  bool possible = true;       // false: the layout breaks a rule of the model, or is not built
  BlockCost embedding, head;  // head: final norm, predictions, output
  std::vector<BlockCost> layers;
  LayerSums sums;
};

// Fills the sums over layers.
void add_up(StackCost& cost);

// What the costs of blocks depend on. Tensor, context and expert groups lie as "tp-cp-dp-pp" lays them, each on as few
// nodes as it can: no other order of ranks makes their transfers faster.
struct StackKey {
  std::int64_t tensor = 1, context = 1, expert = 1, expert_tensor = 1, micro_batch = 1;
  std::int64_t data = 1;      // 1, 2: whether there is more than one rank; enough of them for the experts
  std::int64_t sequence = 0;  // 0: the spec's
  std::string context_kind = "ring", recompute = "none";
  Sharding sharding = Sharding::none;
  bool sequence_parallel = false, overlap_tensor = false, overlap_expert = false, splits_backward = false;
  bool host_gradients = false, leaves = false;  // gradients lie on the host; whether BlockCost::leaves is asked for

  std::strong_ordering operator<=>(const StackKey&) const = default;
};

// A small plan of one stage and one micro-batch with each kind of layer is made and simulated; the issue times and the
// data-parallel transfers are left out of it, and what could make it break a rule that the layout's strategies obey:
// stragglers, activations on the host, and a host's optimizer where states are whole. All of these only add time.
StackCost stack_cost(const Spec& base, const Profile& profile, const StackKey& key);

// Keeps what was asked for. Safe to use from several threads.
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
