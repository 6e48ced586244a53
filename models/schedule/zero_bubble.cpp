#include "models/schedule/zero_bubble.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "models/schedule/order_length.h"

namespace orrery {
namespace {

using Orders = std::vector<std::vector<Action>>;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// The rules by which a stage chooses its next action (list scheduling), which the search varies to get different
// orders.
struct Rules {
  // shortest wait in which a stage runs a weight gradient, in percent of the weight gradient's time
  std::int64_t gap_percent = 100;
  bool forward_first = false;  // whether a forward comes first if both a forward and an input gradient could run
};

struct Stage {
  std::int64_t now = 0;
  bool blocked = false;                                // whether the stage waits until another stage begins a pass
  std::int64_t forwards = 0, inputs = 0, weights = 0;  // number of passes of each type begun so far
  std::vector<std::int64_t> forward_ready, input_ready;
  std::vector<Action> order;

  std::int64_t in_flight() const { return forwards - weights; }
};

class Search {
 public:
  Search(const ScheduleShape& shape, const std::vector<PhaseTimes>& times, std::int64_t most, const Rules& rules)
      : m_(shape.micro_batches), most_(std::max<std::int64_t>(1, most)), rules_(rules), times_(times) {
    times_.resize(shape.stages);
    stages_.resize(shape.stages);
    for (Stage& s : stages_) {
      s.forward_ready.assign(m_, kNever);
      s.input_ready.assign(m_, kNever);
    }
    stages_.front().forward_ready.assign(m_, 0);
  }

  // Runs the simulation. The stage whose clock is furthest behind decides next, so whatever other stages begin before
  // its time is known.
  void run() {
    for (;;) {
      std::size_t next = stages_.size();
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        if (stages_[s].weights == m_ || stages_[s].blocked) continue;
        if (next == stages_.size() || stages_[s].now < stages_[next].now) next = s;
      }
      if (next == stages_.size()) return;
      decide(next);
    }
  }

  Orders orders() const {
    Orders all;
    for (const Stage& s : stages_) all.push_back(s.order);
    return all;
  }

 private:
  static std::int64_t at(const std::vector<std::int64_t>& times, std::int64_t i) {
    return i < static_cast<std::int64_t>(times.size()) ? times[i] : kNever;
  }

  void decide(std::size_t index) {
    Stage& s = stages_[index];
    const bool room = s.in_flight() < most_;
    const std::int64_t forward = room ? at(s.forward_ready, s.forwards) : kNever;
    const std::int64_t input = at(s.input_ready, s.inputs);
    const std::int64_t soonest = std::min(forward, input);
    const bool pending = s.weights < s.inputs;
    if (soonest <= s.now) {
      const bool both = forward <= s.now && input <= s.now;
      const bool take_forward = both ? rules_.forward_first : forward <= s.now;
      return begin(index, take_forward ? Phase::forward : Phase::input_gradient);
    }
    const bool fits = soonest == kNever || 100 * (soonest - s.now) >= rules_.gap_percent * times_[index].weight;
    if (pending && fits) return begin(index, Phase::weight_gradient);
    if (soonest == kNever)
      s.blocked = true;
    else
      s.now = soonest;
  }

  void begin(std::size_t index, Phase phase) {
    Stage& s = stages_[index];
    const PhaseTimes& t = times_[index];
    for (Stage& other : stages_) other.blocked = false;
    if (phase == Phase::forward) {
      s.now += t.forward;
      auto& next = index + 1 < stages_.size() ? stages_[index + 1].forward_ready : s.input_ready;
      next[s.forwards] = s.now;
      s.order.push_back({phase, 0, static_cast<std::int32_t>(s.forwards++)});
    } else if (phase == Phase::input_gradient) {
      s.now += t.input;
      if (index > 0) stages_[index - 1].input_ready[s.inputs] = s.now;
      s.order.push_back({phase, 0, static_cast<std::int32_t>(s.inputs++)});
    } else {
      s.now += t.weight;
      s.order.push_back({phase, 0, static_cast<std::int32_t>(s.weights++)});
    }
  }

  std::int64_t m_, most_;
  Rules rules_;
  std::vector<PhaseTimes> times_;
  std::vector<Stage> stages_;
};

// Simulates given orders: finds how long the slowest stage takes from its first to its last action, and when all stages
// have ended.
class ZeroBubblePlay {
 public:
  ZeroBubblePlay(const Orders& orders, const ScheduleShape& shape)
      : orders_(orders),
        times_(shape.times),
        next_(orders.size(), 0),
        begin_(orders.size(), kNever),
        now_(orders.size(), 0),
        ended_(orders.size(), {std::vector<std::int64_t>(shape.micro_batches, kNever),
                               std::vector<std::int64_t>(shape.micro_batches, kNever)}) {
    times_.resize(orders.size());
  }

  std::pair<std::int64_t, std::int64_t> length() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < orders_.size(); ++s) {
        while (advance(s)) moved = true;
      }
    }
    std::pair<std::int64_t, std::int64_t> most = {0, 0};
    for (std::size_t s = 0; s < orders_.size(); ++s)
      most = {std::max(most.first, now_[s] - begin_[s]), std::max(most.second, now_[s])};
    return most;
  }

 private:
  bool advance(std::size_t s) {
    if (next_[s] == orders_[s].size()) return false;
    const Action& a = orders_[s][next_[s]];
    const bool forward = a.phase == Phase::forward, input = a.phase == Phase::input_gradient;
    std::int64_t ready = 0;
    if (forward && s > 0) ready = ended_[s - 1][0][a.micro_batch];
    if (input && s + 1 < orders_.size()) ready = ended_[s + 1][1][a.micro_batch];
    if (ready == kNever) return false;
    const std::int64_t start = std::max(now_[s], ready);
    begin_[s] = std::min(begin_[s], start);
    now_[s] = start + (forward ? times_[s].forward : input ? times_[s].input : times_[s].weight);
    if (forward || input) ended_[s][forward ? 0 : 1][a.micro_batch] = now_[s];
    ++next_[s];
    return true;
  }

  const Orders& orders_;
  std::vector<PhaseTimes> times_;
  std::vector<std::size_t> next_;
  std::vector<std::int64_t> begin_, now_;
  // for each stage, the end time of each of its forwards and input gradients
  std::vector<std::array<std::vector<std::int64_t>, 2>> ended_;
};

// Returns the regular zero-bubble orders (regular_zero_bubble) of all stages. The number of warm-up forwards of a stage
// is `percent` % of the number of stages behind it, but at least that number and at most `most` - 1. Weight gradients
// are postponed until the stage has `most` micro-batches in flight.
Orders regular(const ScheduleShape& shape, std::int64_t most, std::int64_t percent) {
  Orders orders;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    const std::int64_t behind = shape.stages - 1 - stage;
    const std::int64_t warm_up = std::min(most - 1, std::max(behind, behind * percent / 100));
    orders.push_back(regular_zero_bubble(shape.micro_batches, warm_up, most - 1 - warm_up));
  }
  return orders;
}

}  // namespace

std::vector<Action> regular_zero_bubble(std::int64_t micro_batches, std::int64_t warm_up, std::int64_t lag) {
  std::vector<Action> order;
  const auto add = [&](Phase phase, std::int64_t i) {
    if (i >= 0 && i < micro_batches) order.push_back({phase, 0, static_cast<std::int32_t>(i)});
  };
  for (std::int64_t i = 0; i < warm_up; ++i) add(Phase::forward, i);
  for (std::int64_t i = 0; i < micro_batches + lag; ++i) {
    add(Phase::forward, warm_up + i);
    add(Phase::input_gradient, i);
    add(Phase::weight_gradient, i - lag);
  }
  return order;
}

std::vector<std::vector<Action>> search_zero_bubble(const ScheduleShape& shape, std::int64_t most) {
  std::vector<Orders> candidates;
  // The search uses its limit of micro-batches in flight fully, so it may miss shorter orders with fewer micro-batches
  // in flight, which are valid too; it is therefore also run with a limit (`room`) of one micro-batch per stage, if
  // that is lower.
  const std::vector<std::vector<PhaseTimes>> tries = times_to_try(shape);
  for (const std::int64_t room : std::set{std::min(most, shape.stages), most}) {
    for (const std::int64_t percent : {100, 125, 150, 175, 200, 250, 300})
      candidates.push_back(regular(shape, room, percent));
    for (const std::vector<PhaseTimes>& times : tries) {
      for (const std::int64_t gap : {100, 50, 1}) {
        for (const bool forward_first : {false, true}) {
          Search search(shape, times, room, {gap, forward_first});
          search.run();
          candidates.push_back(search.orders());
        }
      }
    }
  }
  const auto length = [&](const Orders& orders) { return ZeroBubblePlay(orders, shape).length(); };
  std::vector<std::pair<std::int64_t, std::int64_t>> lengths;
  for (const Orders& orders : candidates) lengths.push_back(length(orders));
  return candidates[std::min_element(lengths.begin(), lengths.end()) - lengths.begin()];
}

}  // namespace orrery
