#include "sim/search/order.h"
#include "models/schedule/schedules.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <span>

namespace orrery {
namespace {

// kMostActions: an order with more actions (passes of one micro-batch) is not timed for a bound; kMostKept: greatest
// number of actions that all cached orders have together.
constexpr std::int64_t kMostActions = 1 << 18, kMostKept = 1 << 22;
constexpr Picoseconds kUnknown = -1;

// Counts the micro-batches that are alive (between forward and backward). While a forward and a backward overlap op by
// op (`woven`), one allocates activations as the other frees as many, so that counts are taken only before and after
// such a pair.
void count_alive(KnownOrder& order) {
  const std::vector<std::vector<Action>>& stages = order.schedule.order;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::vector<std::int64_t> now(order.virtual_stage[s].size(), 0), most = now;
    std::int64_t sum = 0, largest = 0;
    bool woven = false;  // whether this pass overlaps op by op with the pass before it
    for (const Action& a : stages[s]) {
      if (!woven && sum > largest) {
        largest = sum;
        most = now;
      }
      woven = a.woven;
      if (a.phase == Phase::weight_gradient) continue;
      const std::int64_t change = a.phase == Phase::forward ? 1 : -1;
      now[a.chunk] += change;
      sum += change;
    }
    order.alive.push_back(std::move(most));
  }
}

class ScheduleTimer {
 public:
  ScheduleTimer(const KnownOrder& order, const std::vector<VirtualStage>& costs, const std::vector<Picoseconds>& hops,
                bool waits)
      : order_(order),
        schedule_(order.schedule),
        costs_(costs),
        hops_(hops),
        waits_(waits),
        stages_(schedule_.order.size()),
        virtual_stages_(schedule_.virtual_stages()) {
    for (const Action& a : schedule_.order.front())
      micro_batches_ = std::max<std::int64_t>(micro_batches_, a.micro_batch + 1);
    forward_.assign(schedule_.stage_of.size() * micro_batches_, kUnknown);
    backward_ = forward_;
  }

  std::vector<Picoseconds> run() {
    for (std::size_t s = 0; s < stages_.size(); ++s) ready_.push_back(static_cast<std::int32_t>(s));
    while (!ready_.empty()) {
      const std::int32_t s = ready_.back();
      ready_.pop_back();
      stages_[s].blocked = false;
      while (stages_[s].at < schedule_.order[s].size() && go_on(s)) continue;
      stages_[s].blocked = true;
    }
    std::vector<Picoseconds> ends;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      assert(stages_[s].at == schedule_.order[s].size());
      ends.push_back(stages_[s].free);
    }
    return ends;
  }

 private:
  struct Stage {
    std::size_t at = 0;
    Picoseconds free = 0;  // time from which the stage's next pass may begin
    bool blocked = false;
  };

  std::size_t place(std::int64_t k, std::int32_t micro_batch) const { return k * micro_batches_ + micro_batch; }
  bool is_first(std::int64_t k) const { return k % virtual_stages_ == 0; }
  bool is_last(std::int64_t k) const { return (k + 1) % virtual_stages_ == 0; }

  // The time when the input of an action (a pass of one micro-batch) has arrived; kUnknown where its sender has not run
  // yet.
  Picoseconds input(const Action& a, std::int64_t k) const {
    const auto arrives = [&](Picoseconds made, std::int64_t boundary) {
      return made == kUnknown ? kUnknown : made + hops_[boundary];
    };
    if (a.phase == Phase::weight_gradient) return 0;
    if (a.phase == Phase::forward) return is_first(k) ? 0 : arrives(forward_[place(k - 1, a.micro_batch)], k - 1);
    if (is_last(k)) return 0;
    const Picoseconds gradient = arrives(backward_[place(k + 1, a.micro_batch)], k);
    return gradient == kUnknown ? kUnknown : std::max<Picoseconds>(0, gradient - costs_[k].early);
  }

  const PassCost& cost(const Action& a, std::int64_t k) const {
    return a.phase == Phase::forward           ? costs_[k].forward
           : a.phase == Phase::weight_gradient ? costs_[k].weight
                                               : costs_[k].backward;
  }

  // Runs the next pass of a stage, together with the passes that overlap with it op by op (`woven`). Returns false
  // where the arrival time of an input of one of them is not known yet.
  bool go_on(std::int32_t s) {
    Stage& stage = stages_[s];
    const std::vector<Action>& order = schedule_.order[s];
    std::size_t end = stage.at + 1;
    while (order[end - 1].woven) ++end;
    const std::span<const Action> actions = std::span(order).subspan(stage.at, end - stage.at);
    for (const Action& a : actions) {
      if (input(a, order_.virtual_stage[s][a.chunk]) == kUnknown) return false;
    }
    const Picoseconds begin = stage.free;
    Picoseconds kernels = 0, beside = 0, sent = 0;
    for (const Action& a : actions) {
      const std::int64_t k = order_.virtual_stage[s][a.chunk];
      const PassCost& takes = cost(a, k);
      // A schedule that splits backward may also run a backward unsplit, weight gradients included.
      const PassCost weight = a.phase == Phase::backward ? costs_[k].weight : PassCost{};
      const Picoseconds from = std::max(begin, input(a, k));
      stage.free = std::max(stage.free, from + std::max(takes.busy, takes.compute + weight.compute));
      kernels += takes.compute + weight.compute;
      beside += takes.beside + weight.beside;
      sent = std::max(sent, finish(a, k, from + takes.to_result()));
    }
    stage.free = std::max(stage.free, begin + std::max(kernels, actions.size() > 1 ? beside : 0));
    // If sends do not overlap with compute (waits_), the next pass waits until the tensor that this stage has sent has
    // arrived. Weight gradients and the update do not wait for it.
    const bool waits = waits_ && end < order.size() && order[end].phase != Phase::weight_gradient;
    if (waits) stage.free = std::max(stage.free, sent);
    stage.at = end;
    return true;
  }

  // Records the time (made) when the result of a pass is complete, and marks the stage that reads the result as able to
  // run again. Returns the time when that stage has received the result; 0 if no other stage reads it.
  Picoseconds finish(const Action& a, std::int64_t k, Picoseconds made) {
    if (a.phase == Phase::weight_gradient) return 0;
    const bool forward = a.phase == Phase::forward;
    (forward ? forward_ : backward_)[place(k, a.micro_batch)] = made;
    if (forward ? is_last(k) : is_first(k)) return 0;
    const std::int32_t reader = schedule_.stage_of[forward ? k + 1 : k - 1];
    if (stages_[reader].blocked) {
      stages_[reader].blocked = false;
      ready_.push_back(reader);
    }
    return reader == schedule_.stage_of[k] ? 0 : made + hops_[forward ? k : k - 1];
  }

  const KnownOrder& order_;
  const Schedule& schedule_;
  const std::vector<VirtualStage>& costs_;
  const std::vector<Picoseconds>& hops_;
  bool waits_;
  std::vector<Stage> stages_;
  std::int64_t virtual_stages_, micro_batches_ = 1;
  // For each virtual stage and micro-batch, the time when the result of its forward, and of its backward, is complete.
  std::vector<Picoseconds> forward_, backward_;
  // Stages that may be able to run their next pass now.
  std::vector<std::int32_t> ready_;
};

KnownOrder known_order(std::string_view schedule, const ScheduleShape& shape) {
  KnownOrder order;
  order.schedule = make_schedule(schedule, shape);
  order.virtual_stage.assign(shape.stages, std::vector<std::int32_t>(shape.chunks * order.schedule.copies));
  for (std::size_t k = 0; k < order.schedule.stage_of.size(); ++k)
    order.virtual_stage[order.schedule.stage_of[k]][order.schedule.chunk_of[k]] = static_cast<std::int32_t>(k);
  count_alive(order);
  return order;
}

bool alike(const ScheduleShape& a, const ScheduleShape& b) {
  const auto same = [](const PhaseTimes& x, const PhaseTimes& y) {
    return x.forward == y.forward && x.input == y.input && x.weight == y.weight;
  };
  return a.stages == b.stages && a.micro_batches == b.micro_batches && a.chunks == b.chunks &&
         std::equal(a.times.begin(), a.times.end(), b.times.begin(), b.times.end(), same);
}

}  // namespace

bool needs_times(std::string_view schedule) { return find_schedule(schedule).fits_times; }

const KnownOrder* KnownOrders::of(std::string_view schedule, const ScheduleShape& shape) {
  const std::int64_t actions = 3 * shape.stages * shape.micro_batches * shape.chunks;
  if (actions > kMostActions) return nullptr;
  if (needs_times(schedule)) {
    if (fitted_schedule_ != schedule || !alike(fitted_shape_, shape)) {
      fitted_ = known_order(schedule, shape);
      fitted_schedule_ = find_schedule(schedule).name;
      fitted_shape_ = shape;
    }
    return &fitted_;
  }
  const auto key = std::tuple(find_schedule(schedule).name, shape.stages, shape.micro_batches, shape.chunks,
                              shape.group);  // key of cached orders, without extra_warm_up, a constant of the search
  const auto found = known_.find(key);
  if (found != known_.end()) return &found->second;
  actions_ += actions;
  if (actions_ > kMostKept) {
    known_.clear();
    actions_ = actions;
  }
  return &known_.try_emplace(key, known_order(schedule, shape)).first->second;
}

std::vector<Picoseconds> play(const KnownOrder& order, const std::vector<VirtualStage>& costs,
                              const std::vector<Picoseconds>& hops, bool waits) {
  return ScheduleTimer(order, costs, hops, waits).run();
}

}  // namespace orrery
