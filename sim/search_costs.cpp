#include "sim/search_costs.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "models/blocks.h"
#include "models/make_plan.h"
#include "sim/price.h"
#include "sim/search_space.h"
#include "sim/simulate.h"

namespace orrery {
namespace {

enum class Pass : std::uint8_t { forward, backward, weight };
constexpr std::size_t kPasses = 3;

// A block's ops of one pass, in issue order: consecutive tasks of a frame.
struct Segment {
  std::uint32_t frame = kNone;
  Pass pass = Pass::forward;
  Picoseconds begin = 0, end = 0, issue = 0, compute = 0;
  Bytes extra = 0;
};

// Layers that differ only in their number cost the same.
using LayerKind = std::tuple<std::int64_t, bool, std::int64_t, std::int64_t>;

LayerKind kind_of(const Spec& spec, std::int64_t layer) {
  const auto& window = spec.model.sliding_window;
  const bool experts = has_experts(spec.model, layer);
  const bool own = experts && !spec.model.moe->loads_file.empty();
  return {window ? (layer + 1) % window->every : 0, experts, layer % 2, own ? layer : 0};
}

// The number of first layers that hold every kind, each twice where the model has it twice.
std::int64_t layers_to_look_at(const Spec& spec) {
  std::map<LayerKind, std::int64_t> seen;
  std::int64_t needed = 1;
  for (std::int64_t i = 0; i < spec.model.layers; ++i) {
    if (++seen[kind_of(spec, i)] <= 2) needed = i + 1;
  }
  return needed;
}

Spec probe_spec(const Spec& base, const StackKey& key) {
  Spec spec = base;
  spec.origins.clear();
  spec.cluster.failures.reset();
  spec.cluster.stragglers.clear();
  Strategy& s = spec.strategy;
  spec.model.layers = layers_to_look_at(base);
  if (key.sequence > 0) spec.sequence = key.sequence;
  s.tensor = key.tensor;
  s.context = key.context;
  set_context_kind(s, key.context_kind);
  s.expert = key.expert;
  s.expert_tensor = key.expert_tensor;
  s.sequence_parallel = key.sequence_parallel;
  s.pipeline = s.virtual_stages = 1;
  s.schedule = key.splits_backward ? "zb-h1" : "1f1b";
  s.stage_layers.clear();
  s.data = key.data;
  s.rank_order = "tp-cp-dp-pp";
  s.sharding = key.sharding;
  s.shard_group = key.sharding == Sharding::hsdp ? key.data * key.context : 0;
  s.micro_batch = key.micro_batch;
  s.global_batch = key.micro_batch * key.data;
  s.recompute = recompute_of(key.recompute, spec.software);
  s.partition_activations = s.partition_activations && s.recompute.layer && s.tensor > 1 && !s.sequence_parallel;
  s.offload.activations = Device::none;
  s.offload.activation_layers.reset();
  if (key.sharding == Sharding::none) s.offload = {};
  s.overlap = {.tensor = key.overlap_tensor, .expert = key.overlap_expert};
  spec.gpus = s.gpus();
  spec.cluster.nodes = std::max(spec.cluster.nodes, ceil_div(spec.gpus, spec.cluster.gpus_per_node));
  return spec;
}

bool counts(LaneKind lane) {
  return lane == LaneKind::compute || lane == LaneKind::tensor || lane == LaneKind::context || lane == LaneKind::expert;
}

// Only what counts takes time.
Timing bare(const Plan& plan, Timing timing) {
  for (std::vector<OpTiming>& row : timing.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Op& op = plan.ops[i];
      row[i].issue = 0;
      const bool once = op.optimizer || op.phase == Phase::step;  // not in every micro-batch
      if (!once && counts(op.lane)) continue;
      row[i].duration = 0;
      row[i].pressure = row[i].memory = row[i].yield = 0;
      row[i].nic = row[i].nvlink = 0;
    }
  }
  return timing;
}

class Probe {
 public:
  Probe(const Spec& spec, const Profile& profile) : spec_(spec), plan_(make_plan(spec)) {
    const Prices prices = price(plan_, spec, profile);
    issue_ = &prices.timing;
    bare_ = bare(plan_, prices.timing);
    trace_ = simulate(plan_, bare_);
    find_weight_ops();
    find_turn();
    walk();
    issue_ = nullptr;
  }

  StackCost cost(const Spec& whole) const {
    StackCost result;
    std::map<LayerKind, BlockCost> kinds;
    std::map<std::uint32_t, BlockCost> blocks = by_frame();
    for (const auto& [frame, block] : blocks) {
      const std::int32_t layer = plan_.frames[frame].layer;
      if (layer < 0) {
        result.embedding = block;
      } else if (layer >= spec_.model.layers) {
        add(result.head, block);
      } else {
        const auto [it, fresh] = kinds.try_emplace(kind_of(spec_, layer), block);
        if (!fresh) least(it->second, block);
      }
    }
    for (std::int64_t i = 0; i < whole.model.layers; ++i) result.layers.push_back(kinds.at(kind_of(whole, i)));
    return result;
  }

 private:
  void find_weight_ops() {
    for (const Block& block : plan_.blocks) {
      for (std::size_t i = block.input_gradients; i < block.backward.size(); ++i) {
        if (spec_.strategy.schedule == "zb-h1") weight_ops_.insert(block.backward[i]);
      }
    }
  }

  bool is_own(TaskId t) const {
    const Frame& frame = plan_.frames[plan_.tasks[t].frame];
    return frame.micro_batch == 0;
  }

  Pass pass_of(TaskId t) const {
    const Op& op = plan_.op_of(t);
    if (weight_ops_.count(plan_.tasks[t].op) != 0) return Pass::weight;
    return backward_ops_.count(plan_.tasks[t].op) != 0 || op.phase != Phase::forward ? Pass::backward : Pass::forward;
  }

  // Where forward ends: ops that run again in backward are of phase forward too.
  void find_turn() {
    for (const Block& block : plan_.blocks) backward_ops_.insert(block.backward.begin(), block.backward.end());
    turn_ = plan_.slots[0].end;
    for (TaskId t = plan_.slots[0].begin; t < turn_; ++t) {
      if (is_own(t) && pass_of(t) != Pass::forward) turn_ = t;
    }
  }

  void walk() {
    std::map<std::uint32_t, std::set<std::uint16_t>> held;
    Bytes now = 0, at_start = 0;
    for (TaskId t = plan_.slots[0].begin; t < plan_.slots[0].end; ++t) {
      const Op& op = plan_.op_of(t);
      if (t == turn_) note_kept(held);
      if (is_own(t)) {
        const std::uint32_t frame = plan_.tasks[t].frame;
        if (segments_.empty() || segments_.back().frame != frame || segments_.back().pass != pass_of(t)) {
          segments_.push_back({.frame = frame, .pass = pass_of(t), .begin = -1});
          at_start = now;
        }
        segments_.back().issue += issue_->of(0, plan_.tasks[t].op).issue;
      }
      for (const Operand& o : op.allocates) now += hold(held, t, o, true);
      if (!segments_.empty()) segments_.back().extra = std::max(segments_.back().extra, now - at_start);
      for (const Operand& o : op.frees) now -= hold(held, t, o, false);
      if (op.lane != LaneKind::compute || op.phase == Phase::step || segments_.empty()) continue;
      if (is_own(t) && segments_.back().begin < 0) segments_.back().begin = trace_.spans[t].entered;
      if (is_own(t)) segments_.back().compute += bare_.of(0, plan_.tasks[t].op).duration;
      segments_.back().end = trace_.spans[t].ended;
    }
  }

  // The bytes that come or go with an operand, of buffers that every micro-batch has anew.
  Bytes hold(std::map<std::uint32_t, std::set<std::uint16_t>>& held, TaskId t, const Operand& o, bool take) const {
    const std::uint32_t frame = frame_of(plan_, plan_.tasks[t].frame, o);
    if (frame == kNone || plan_.frames[frame].micro_batch < 0) return 0;
    const bool changed = take ? held[frame].insert(o.slot).second : held[frame].erase(o.slot) > 0;
    return changed ? plan_.blocks[plan_.frames[frame].block].slots[o.slot].bytes : 0;
  }

  void note_kept(const std::map<std::uint32_t, std::set<std::uint16_t>>& held) {
    for (const auto& [frame, slots] : held) {
      for (const std::uint16_t s : slots) kept_[frame] += plan_.blocks[plan_.frames[frame].block].slots[s].bytes;
    }
  }

  std::map<std::uint32_t, BlockCost> by_frame() const {
    std::map<std::uint32_t, BlockCost> blocks;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const Segment& segment = segments_[i];
      if (segment.begin < 0) continue;
      BlockCost& block = blocks[segment.frame];
      PassCost& cost = segment.pass == Pass::forward    ? block.forward
                       : segment.pass == Pass::backward ? block.backward
                                                        : block.weight;
      const bool last = i + 1 == segments_.size() || segments_[i + 1].pass != segment.pass;
      cost.busy = segment.end - segment.begin;
      cost.through = last ? cost.busy : segments_[i + 1].begin - segment.begin;
      cost.issue = segment.issue;
      cost.compute = segment.compute;
      if (segment.pass == Pass::backward) block.backward_extra = segment.extra;
    }
    for (auto& [frame, block] : blocks) {
      const Block& what = plan_.blocks[plan_.frames[frame].block];
      const auto kept = kept_.find(frame);
      block.kept = kept == kept_.end() ? 0 : kept->second;
      block.eight_bit_elements = orrery::eight_bit_elements(spec_, what);
      for (const LocalParameter& p : what.parameters)
        (p.experts > 0 ? block.expert_elements : block.elements) += p.out * p.in;
    }
    return blocks;
  }

  static void least(PassCost& a, const PassCost& b) {
    a = {std::min(a.through, b.through), std::min(a.busy, b.busy), std::min(a.issue, b.issue),
         std::min(a.compute, b.compute)};
  }
  static void least(BlockCost& a, const BlockCost& b) {
    least(a.forward, b.forward);
    least(a.backward, b.backward);
    least(a.weight, b.weight);
    a.kept = std::min(a.kept, b.kept);
    a.backward_extra = std::min(a.backward_extra, b.backward_extra);
  }
  // Blocks of the head follow one another.
  static void add(BlockCost& a, const BlockCost& b) {
    a.forward += b.forward;
    a.backward += b.backward;
    a.weight += b.weight;
    a.kept += b.kept;
    a.elements += b.elements;
    a.expert_elements += b.expert_elements;
    a.eight_bit_elements += b.eight_bit_elements;
    a.backward_extra = b.backward_extra;  // the last block's backward comes first, with everything kept
  }

  const Spec& spec_;
  Plan plan_;
  Trace trace_;
  Timing bare_;
  const Timing* issue_ = nullptr;
  std::set<std::uint32_t> weight_ops_, backward_ops_;
  TaskId turn_ = 0;
  std::vector<Segment> segments_;
  std::map<std::uint32_t, Bytes> kept_;
};

void add_up(const StackCost& cost, LayerSums& sums) {
  PassCost forward, backward, weight;
  Bytes kept = 0;
  std::int64_t elements = 0, experts = 0, eight_bit = 0;
  const auto note = [&] {
    sums.forward.push_back(forward);
    sums.backward.push_back(backward);
    sums.weight.push_back(weight);
    sums.kept.push_back(kept);
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
    elements += layer.elements;
    experts += layer.expert_elements;
    eight_bit += layer.eight_bit_elements;
    note();
  }
}

}  // namespace

PassCost& PassCost::operator+=(const PassCost& other) {
  through += other.through;
  busy += other.busy;
  issue += other.issue;
  compute += other.compute;
  return *this;
}

StackCost stack_cost(const Spec& base, const Profile& profile, const StackKey& key) {
  StackCost result;
  try {
    const Spec spec = probe_spec(base, key);
    check(spec);
    result = Probe(spec, profile).cost(base);
    add_up(result, result.sums);
  } catch (const Error&) {
    result.possible = false;
  }
  return result;
}

const StackCost& StackCosts::of(const StackKey& key) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = known_.find(key);
    if (it != known_.end()) return it->second;
  }
  StackCost cost = stack_cost(base_, profile_, key);
  const std::lock_guard lock(mutex_);
  return known_.try_emplace(key, std::move(cost)).first->second;
}

}  // namespace orrery
