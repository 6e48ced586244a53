#include "sim/search/costs.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "models/layers/blocks.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "models/planner/order_time.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/cost/costs.h"
#include "sim/engine/contention.h"
#include "sim/engine/simulate.h"
#include "sim/search/probe.h"

namespace orrery {
namespace {

enum class Pass : std::uint8_t { forward, backward, weight };
constexpr std::size_t kPasses = 3;

// The ops of one pass of one block (a layer, embedding or output) for one micro-batch, in the order in which the host
// issues them.
struct Segment {
  std::uint32_t frame = kNone;
  Pass pass = Pass::forward;
  Picoseconds begin = 0, end = 0, issue = 0, compute = 0, beside = 0, free_overlap = 0;
  Picoseconds read = -1;    // time when the pass first reads the gradient of the block's output
  Picoseconds written = 0;  // time when the gradients of the block's weights (FSDP unit) are complete

  // result: time when the tensor that the next block reads is complete; late: duration of the pass's gradient sums,
  // which may run after the whole backward in any micro-batch but the last.
  Picoseconds result = 0, late = 0;
  Bytes most = 0;  // greatest number of bytes allocated during the pass
};

bool counts(LaneKind lane) {
  return lane == LaneKind::compute || lane == LaneKind::tensor || lane == LaneKind::context || lane == LaneKind::expert;
}

// Whether an op runs once per step rather than for every micro-batch. Ops that average an FSDP unit's gradients do not
// count, since they run in every reduction.
bool runs_once(const Op& op) {
  const bool unit =
      std::any_of(op.operands.begin(), op.operands.end(), [](const Operand& o) { return o.scope == Scope::unit; });
  return op.optimizer || (op.phase == Phase::step && !unit);
}

// A copy of the ops' durations in which only compute and tensor, context and expert transfers take time; all other ops
// take none.
Timing bare(const Plan& plan, Timing timing) {
  timing.one_queue = false;
  for (std::vector<OpTiming>& row : timing.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Op& op = plan.ops[i];
      row[i].issue = 0;
      if (!runs_once(op) && counts(op.lane)) continue;
      row[i].duration = 0;
      row[i].pressure = row[i].memory = row[i].yield = 0;
      row[i].nic = row[i].nvlink = row[i].uplink = 0;
    }
  }
  return timing;
}

class Probe {
 public:
  Probe(const Spec& spec, const Profile& profile, std::int64_t job_gpus) : spec_(spec), plan_(make_plan(spec)) {
    const Costs costs = costs_of(plan_, spec, profile, job_gpus);
    issue_ = &costs.timing;
    bare_ = bare(plan_, costs.timing);
    trace_ = simulate(plan_, bare_);
    find_weight_ops();
    find_turn();
    find_idle();
    walk();
    issue_ = nullptr;
  }

  ModelCost cost(const Spec& whole) const {
    const std::map<std::uint32_t, BlockCost> blocks = by_frame();
    ModelCost result = cost_of_model(blocks, spec_, whole, false);
    if (whole.second) {
      ModelCost second = cost_of_model(blocks, second_spec(spec_), second_spec(whole), true);
      add_up(second);
      result.second = std::make_shared<const ModelCost>(std::move(second));
    }
    return result;
  }

 private:
  // Collects the costs of the blocks of one of the two models. here: the model as this plan has it, with a few layers
  // of each kind; whole: with all its layers.
  ModelCost cost_of_model(const std::map<std::uint32_t, BlockCost>& blocks, const Spec& here, const Spec& whole,
                          bool second) const {
    ModelCost result;
    std::map<LayerKey, BlockCost> kinds;
    for (const auto& [frame, block] : blocks) {
      const std::int32_t layer = plan_.frames[frame].layer;
      if (is_second(frame) != second) continue;
      if (layer < 0) {
        add_behind(result.embedding, block);  // embedding, and the vision encoder before it, which is on the same stage
      } else if (layer >= here.model.layers) {
        add_behind(result.head, block);
      } else {
        const auto [it, fresh] = kinds.try_emplace(kind_of(here, layer), block);
        if (!fresh) take_least(it->second, block);
      }
    }
    for (std::int64_t i = 0; i < whole.model.layers; ++i) result.layers.push_back(kinds.at(kind_of(whole, i)));
    return result;
  }

  bool is_second(std::uint32_t frame) const { return plan_.blocks[plan_.frames[frame].block].second; }

  void find_weight_ops() {
    for (const Block& block : plan_.blocks) {
      for (std::size_t i = block.input_gradients; i < block.backward.size(); ++i) {
        if (find_schedule(spec_.strategy.schedule).splits) weight_ops_.insert(block.backward[i]);
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

  // Finds the first task after forward (turn_). Recomputed ops in backward, which are of phase forward too, do not
  // count as forward.
  void find_turn() {
    for (const Block& block : plan_.blocks) backward_ops_.insert(block.backward.begin(), block.backward.end());
    turn_ = plan_.classes[0].end;
    for (TaskId t = plan_.classes[0].begin; t < turn_; ++t) {
      if (is_own(t) && pass_of(t) != Pass::forward) turn_ = t;
    }
  }

  void walk() {
    Held held;
    Bytes now = 0;
    for (TaskId t = plan_.classes[0].begin; t < plan_.classes[0].end; ++t) {
      const Op& op = plan_.op_of(t);
      if (t == turn_) note_kept(held);
      if (is_own(t)) {
        const std::uint32_t frame = plan_.tasks[t].frame;
        if (segments_.empty() || segments_.back().frame != frame || segments_.back().pass != pass_of(t))
          segments_.push_back({.frame = frame, .pass = pass_of(t), .begin = -1, .most = now + unit_bytes(held, frame)});
        segments_.back().issue += issue_->of(0, plan_.tasks[t].op).issue;
      }
      for (const Operand& o : op.allocates) now += hold(held, t, o, true);
      if (!segments_.empty()) note_most(held, now);
      for (const Operand& o : op.frees) now -= hold(held, t, o, false);
      if (segments_.empty()) continue;
      if (is_own(t) && segments_.back().read < 0 && reads_gradient(op)) segments_.back().read = trace_.spans[t].entered;
      if (is_own(t) && makes_result(op)) segments_.back().result = trace_.spans[t].ended;
      if (is_own(t) && writes_unit(op)) segments_.back().written = trace_.spans[t].ended;
      if (is_own(t) && op.lane != LaneKind::compute && counts(op.lane)) {
        segments_.back().beside += bare_.of(0, plan_.tasks[t].op).duration;
        segments_.back().free_overlap += free_overlap(t);
      }
      if (op.lane != LaneKind::compute || runs_once(op)) continue;
      if (is_own(t) && segments_.back().begin < 0) segments_.back().begin = trace_.spans[t].entered;
      const Picoseconds takes = bare_.of(0, plan_.tasks[t].op).duration;
      if (is_own(t)) segments_.back().compute += takes;
      if (is_late(op)) segments_.back().late += takes;
      segments_.back().end = trace_.spans[t].ended;
    }
  }

  // Finds the intervals in which no kernel runs.
  void find_idle() {
    Picoseconds end = 0;
    for (TaskId t = plan_.classes[0].begin; t < plan_.classes[0].end; ++t) {
      const Span& s = trace_.spans[t];
      if (plan_.op_of(t).lane != LaneKind::compute || bare_.of(0, plan_.tasks[t].op).duration == 0) continue;
      if (s.matched > end) idle_.emplace_back(end, s.matched);
      end = s.ended;
    }
    idle_.emplace_back(end, trace_.step_time);
  }

  // The part of transfer t's duration in which a further transfer costs kernels nothing more: all of it where kernels
  // wait for t. Where t slows kernels by a pressure P (share of their time alone), a further transfer of pressure p
  // makes them lose p / (1 + P + p) of the time, not p / (1 + p). As this saves at most the share P / (1 + P), that
  // share of t counts.
  Picoseconds free_overlap(TaskId t) const {
    const Span& s = trace_.spans[t];
    const OpTiming& timing = bare_.of(0, plan_.tasks[t].op);
    const auto idle =
        std::partition_point(idle_.begin(), idle_.end(), [&](const auto& i) { return i.second <= s.matched; });
    if (idle != idle_.end() && idle->first < s.ended) return timing.duration;
    const double pressure = static_cast<double>(timing.pressure) / Contention::kAlone;
    return static_cast<Picoseconds>(static_cast<double>(timing.duration) * pressure / (1 + pressure));
  }

  static bool reads_gradient(const Op& op) {
    return std::any_of(op.operands.begin(), op.operands.end(), [](const Operand& o) {
      return o.access != Access::write && o.scope == Scope::own && o.slot == kOutputGradient;
    });
  }

  static bool makes_result(const Op& op) {
    return std::any_of(op.operands.begin(), op.operands.end(), [](const Operand& o) {
      return o.access != Access::read && (o.scope == Scope::next || o.scope == Scope::previous);
    });
  }

  static bool writes_unit(const Op& op) {
    return std::any_of(op.operands.begin(), op.operands.end(), [](const Operand& o) {
      return o.access != Access::read && o.scope == Scope::unit && o.slot == kUnitGradient;
    });
  }

  bool is_late(const Op& op) const {
    return spec_.software.communication.accumulates_after_backward && std::holds_alternative<Accumulate>(op.work);
  }

  using Held = std::map<std::uint32_t, std::set<std::uint16_t>>;

  void note_most(const Held& held, Bytes now) {
    Segment& s = segments_.back();
    s.most = std::max(s.most, now + unit_bytes(held, s.frame));
  }

  Bytes slot_bytes(std::uint32_t frame, std::uint16_t slot) const {
    return plan_.blocks[plan_.frames[frame].block].buffers[slot].bytes;
  }

  // Bytes of a block's own FSDP unit (gathered weights and their gradients) that are freed after the pass. Weights that
  // stay gathered after forward are counted elsewhere.
  Bytes unit_bytes(const Held& held, std::uint32_t frame) const {
    const ShardingRow& row = row_of(spec_.strategy.sharding);
    const auto found = held.find(plan_.frames[frame].unit);
    if (found == held.end() || !unit_gradients(spec_, row)) return 0;
    Bytes sum = 0;
    for (const std::uint16_t slot : found->second)
      sum += slot == kGathered && !row.reshards_after_forward ? 0 : slot_bytes(found->first, slot);
    return sum;
  }

  // Bytes of the buffer that a task allocates (take) or frees for an operand; 0 if all micro-batches share the buffer.
  Bytes hold(Held& held, TaskId t, const Operand& o, bool take) const {
    const std::uint32_t frame = frame_of(plan_, plan_.tasks[t].frame, o);
    if (frame == kNone) return 0;
    const bool unit = plan_.blocks[plan_.frames[frame].block].role == BlockRole::unit;
    if (plan_.frames[frame].micro_batch < 0 && !unit) return 0;
    const bool changed = take ? held[frame].insert(o.slot).second : held[frame].erase(o.slot) > 0;
    return changed && !unit ? slot_bytes(frame, o.slot) : 0;
  }

  void note_kept(const Held& held) {
    for (const auto& [frame, slots] : held) {
      if (plan_.frames[frame].micro_batch < 0) continue;
      for (const std::uint16_t s : slots) kept_[frame] += slot_bytes(frame, s);
    }
  }

  std::shared_ptr<const OrderTimes> order_times_of(const Block& block, OrderClock& clock) const {
    const auto time_of = [&](std::uint32_t id) { return clock.length(plan_.ops[id], plan_.element_bytes); };
    auto times = std::make_shared<OrderTimes>();
    for (const std::uint32_t id : block.forward) times->forward.push_back(time_of(id));
    for (std::size_t i = 0; i < block.backward.size(); ++i)
      (i < block.input_gradients ? times->input : times->weight).push_back(time_of(block.backward[i]));
    const auto overhead = clock.overhead(plan_, block);
    times->forward.push_back(overhead[0]);
    times->input.push_back(overhead[1]);
    return times;
  }

  // Bytes that a block of the second model writes into a buffer of the loss, which no block before the loss keeps.
  Bytes handed_over(std::uint32_t frame) const {
    const Frame& own = plan_.frames[frame];
    if (plan_.blocks[own.block].role != BlockRole::output || own.next == kNone) return 0;
    Bytes sum = 0;
    for (const std::uint32_t op : plan_.blocks[own.block].forward) {
      for (const Operand& o : plan_.ops[op].allocates) sum += o.scope == Scope::next ? slot_bytes(own.next, o.slot) : 0;
    }
    return sum;
  }

  Bytes kept_of(std::uint32_t frame) const {
    const auto kept = kept_.find(frame);
    return kept == kept_.end() ? 0 : kept->second;
  }

  std::map<std::uint32_t, BlockCost> by_frame() const {
    std::map<std::uint32_t, BlockCost> blocks;
    Bytes kept = 0;    // bytes kept by blocks whose backward has not run yet
    Bytes handed = 0;  // bytes that the second model has given to the loss
    std::set<std::uint32_t> run_back;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const Segment& segment = segments_[i];
      if (segment.begin < 0) continue;
      const auto [it, fresh] = blocks.try_emplace(segment.frame);
      BlockCost& block = it->second;
      PassCost& cost = segment.pass == Pass::forward    ? block.forward
                       : segment.pass == Pass::backward ? block.backward
                                                        : block.weight;
      const bool last = i + 1 == segments_.size() || segments_[i + 1].pass != segment.pass ||
                        is_second(segments_[i + 1].frame) != is_second(segment.frame);
      cost.busy = segment.end - segment.begin;
      cost.through = last ? cost.busy : segments_[i + 1].begin - segment.begin;
      cost.issue = segment.issue;
      cost.compute = segment.compute;
      cost.beside = segment.beside;
      cost.free_overlap = segment.free_overlap;
      cost.late = segment.late + (segment.result > 0 ? std::max<Picoseconds>(0, segment.end - segment.result) : 0);
      if (segment.pass == Pass::forward) {
        // The stage with the loss alone holds what the second model hands over to it.
        const bool of_head = plan_.frames[segment.frame].layer >= spec_.model.layers;
        if (is_second(segment.frame)) handed = handed_over(segment.frame);
        block.forward_extra = std::max(block.forward_extra, segment.most - kept - (of_head ? 0 : handed));
        if (fresh) kept += kept_of(segment.frame);
      } else if (segment.pass == Pass::backward && run_back.insert(segment.frame).second) {
        block.backward_extra = std::max<Bytes>(0, segment.most - kept);
        block.early = segment.read < 0 ? cost.through : std::max<Picoseconds>(0, segment.read - segment.begin);
        block.trails = segment.end - std::clamp(segment.written, segment.begin, segment.end);
        kept -= kept_of(segment.frame);
      }
    }
    OrderClock clock(spec_, plan_.dimensions);
    for (auto& [frame, block] : blocks) {
      const Block& what = plan_.blocks[plan_.frames[frame].block];
      block.kept = kept_of(frame);
      if (find_schedule(spec_.strategy.schedule).splits) block.order_times = order_times_of(what, clock);
      block.eight_bit_elements = orrery::eight_bit_elements(spec_, what);
      for (const LocalParameter& p : what.parameters)
        (p.experts > 0 ? block.expert_elements : block.elements) += p.out * p.in;
    }
    return blocks;
  }

  const Spec& spec_;
  Plan plan_;
  Trace trace_;
  Timing bare_;
  const Timing* issue_ = nullptr;
  std::set<std::uint32_t> weight_ops_, backward_ops_;
  TaskId turn_ = 0;
  std::vector<std::pair<Picoseconds, Picoseconds>> idle_;
  std::vector<Segment> segments_;
  std::map<std::uint32_t, Bytes> kept_;
};

// The fewest bytes that a layer of each kind copies to the host in forward when activations are offloaded.
std::map<LayerKey, Bytes> bytes_that_leave(Spec spec) {
  spec.strategy.offload.activations = MemoryTier::host;
  const Plan plan = make_unchecked_plan(spec);
  std::map<LayerKey, Bytes> result;
  for (const Frame& frame : plan.frames) {
    const Block& block = plan.blocks[frame.block];
    if (block.role != BlockRole::layer || block.second || frame.layer >= spec.model.layers || frame.micro_batch != 0)
      continue;
    Bytes sum = 0;
    for (const std::uint32_t op : block.forward) {
      const auto* copy = std::get_if<PlaceCopy>(&plan.ops[op].work);
      if (copy != nullptr && copy->from == MemoryTier::device && copy->to == MemoryTier::host) sum += copy->bytes;
    }
    const auto [it, fresh] = result.try_emplace(kind_of(spec, frame.layer), sum);
    it->second = std::min(it->second, sum);
  }
  return result;
}

}  // namespace

ModelCost model_cost(const Spec& base, const Profile& profile, const ModelCostKey& key) {
  ModelCost result;
  try {
    const Spec spec = probe_spec(base, key);
    check(spec);
    result = Probe(spec, profile, base.gpus).cost(base);
    if (key.leaves) {
      const std::map<LayerKey, Bytes> bytes = bytes_that_leave(spec);
      for (std::int64_t i = 0; i < base.model.layers; ++i)
        result.layers[static_cast<std::size_t>(i)].leaves = bytes.at(kind_of(base, i));
    }
    add_up(result);
  } catch (const Error&) {
    result.possible = false;
  }
  return result;
}

}  // namespace orrery
