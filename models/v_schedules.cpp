#include "models/v_schedules.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace orrery {
namespace {

using Orders = std::vector<std::vector<Action>>;

constexpr std::int64_t kNotYet = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kPeriod = 6;

// When a stage begins the passes of the first micro-batch, in passes' times.
struct Beginning {
  std::int64_t time = 0;
  Phase phase = Phase::forward;
  std::int32_t chunk = 0;
};
using Beginnings = std::array<Beginning, 4>;

// gaps: passes' times at each end of the way, from pass to pass.
Beginnings beginnings(std::int64_t stage, std::int64_t stages, const Pace& pace,
                      const std::array<std::int64_t, 3>& gaps) {
  const std::int64_t last = stages - 1, turn = pace[0] * last + gaps[0], back = turn + pace[1] * last + gaps[1],
                     end = back + pace[2] * last + gaps[2];
  return {{{pace[0] * stage, Phase::forward, 0},
           {turn + pace[1] * (last - stage), Phase::forward, 1},
           {back + pace[2] * stage, Phase::input_gradient, 1},
           {end + pace[3] * (last - stage), Phase::input_gradient, 0}}};
}

bool collide(const Beginnings& passes) {
  for (std::size_t i = 0; i < passes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if ((passes[i].time - passes[j].time) % kPeriod == 0) return true;
    }
  }
  return false;
}

// The shortest gaps with which no stage has two passes at one time; with paces whose sums and differences share a
// factor with the period there always are some.
std::vector<Beginnings> pattern(std::int64_t stages, const Pace& pace) {
  for (std::int64_t sum = 3;; ++sum) {
    for (std::int64_t first = 1; first <= sum - 2; ++first) {
      for (std::int64_t second = 1; first + second <= sum - 1; ++second) {
        std::vector<Beginnings> all;
        for (std::int64_t s = 0; s < stages; ++s)
          all.push_back(beginnings(s, stages, pace, {first, second, sum - first - second}));
        if (std::none_of(all.begin(), all.end(), collide)) return all;
      }
    }
  }
}

// Forwards and input gradients of every stage.
Orders without_weights(const ScheduleShape& shape, const Pace& pace) {
  Orders orders;
  for (Beginnings& passes : pattern(shape.stages, pace)) {
    std::vector<std::pair<std::int64_t, Action>> timed;
    for (std::int32_t i = 0; i < shape.micro_batches; ++i) {
      for (const Beginning& b : passes) timed.push_back({kPeriod * i + b.time, {b.phase, b.chunk, i}});
    }
    std::sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    orders.emplace_back();
    for (const auto& [time, action] : timed) orders.back().push_back(action);
  }
  return orders;
}

// Plays the orders and puts weight gradients between them, into waits of at least `gap_percent` of their own time.
class Filling {
 public:
  Filling(const ScheduleShape& shape, const Orders& orders, std::int64_t most, std::int64_t gap_percent)
      : shape_(shape), orders_(orders), most_(most), gap_percent_(gap_percent), stages_(orders.size()) {
    shape_.times.resize(2 * shape_.stages);
    ended_.assign(4 * shape_.stages * shape_.micro_batches, kNotYet);
    filled.resize(orders.size());
  }

  // The stage whose clock is furthest behind decides next, so what others begin before its time is known.
  void run() {
    for (std::size_t s = 0; s < stages_.size(); ++s) turns_.emplace(0, s);
    while (!turns_.empty()) {
      const std::size_t s = turns_.top().second;
      turns_.pop();
      decide(s);
      const bool done = stages_[s].next == orders_[s].size() && stages_[s].pending.empty();
      if (!done && !stages_[s].blocked) turns_.emplace(stages_[s].now, s);
    }
  }

  std::int64_t end() const {
    std::int64_t last = 0;
    for (const Stage& s : stages_) last = std::max(last, s.now);
    return last;
  }

  Orders filled;

 private:
  struct Stage {
    std::int64_t now = 0, alive = 0;
    std::size_t next = 0;
    bool blocked = false;        // until the pass before its next one has begun
    std::deque<Action> pending;  // weight gradients
  };

  // Passes of a micro-batch are numbered along its way: forward over all virtual stages, then backward.
  std::int64_t place_of(std::size_t stage, const Action& a) const {
    const auto s = static_cast<std::int64_t>(stage);
    const std::int64_t k = a.chunk == 0 ? s : 2 * shape_.stages - 1 - s;
    return a.phase == Phase::forward ? k : 4 * shape_.stages - 1 - k;
  }
  std::size_t stage_of(std::int64_t place) const {
    const std::int64_t k = std::min(place, 4 * shape_.stages - 1 - place);
    return static_cast<std::size_t>(std::min(k, 2 * shape_.stages - 1 - k));
  }
  void wake(std::size_t index) {
    if (!std::exchange(stages_[index].blocked, false)) return;
    turns_.emplace(stages_[index].now, index);
  }
  std::int64_t& ended(std::int64_t place, const Action& a) { return ended_[a.micro_batch * 4 * shape_.stages + place]; }
  std::int64_t ready(std::size_t stage, const Action& a) {
    const std::int64_t place = place_of(stage, a);
    return place == 0 ? 0 : ended(place - 1, a);
  }
  const PhaseTimes& times(std::size_t stage, const Action& a) const {
    const auto s = static_cast<std::int64_t>(stage);
    return shape_.times[a.chunk == 0 ? s : 2 * shape_.stages - 1 - s];
  }

  void decide(std::size_t index) {
    Stage& s = stages_[index];
    const bool more = s.next < orders_[index].size();
    const std::int64_t soonest = more ? ready(index, orders_[index][s.next]) : kNotYet;
    const bool full = more && orders_[index][s.next].phase == Phase::forward && s.alive >= most_;
    const bool fits =
        !s.pending.empty() && (full || soonest == kNotYet ||
                               100 * (soonest - s.now) >= gap_percent_ * times(index, s.pending.front()).weight);
    if (fits && (full || soonest > s.now)) {
      const Action weight = s.pending.front();
      s.pending.pop_front();
      --s.alive;
      return begin(index, weight, times(index, weight).weight);
    }
    if (soonest == kNotYet) {
      s.blocked = true;
      return;
    }
    s.now = std::max(s.now, soonest);
    pass(index, orders_[index][s.next++]);
  }

  void pass(std::size_t index, const Action& a) {
    Stage& s = stages_[index];
    const bool forward = a.phase == Phase::forward;
    begin(index, a, forward ? times(index, a).forward : times(index, a).input);
    const std::int64_t place = place_of(index, a);
    ended(place, a) = s.now;
    if (place + 1 < 4 * shape_.stages) wake(stage_of(place + 1));
    if (forward)
      ++s.alive;
    else
      s.pending.push_back({Phase::weight_gradient, a.chunk, a.micro_batch});
  }

  void begin(std::size_t index, const Action& a, std::int64_t time) {
    stages_[index].now += time;
    filled[index].push_back(a);
  }

  ScheduleShape shape_;
  const Orders& orders_;
  std::int64_t most_, gap_percent_;
  std::vector<Stage> stages_;
  std::vector<std::int64_t> ended_;  // by micro-batch, then place
  using Turn = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;  // clocks of stages that are not blocked
};

}  // namespace

std::vector<std::vector<Action>> v_orders(const ScheduleShape& shape, const Pace& pace, std::int64_t most) {
  const Orders orders = without_weights(shape, pace);
  Orders best;
  std::int64_t shortest = kNotYet;
  for (const std::int64_t gap : {100, 50, 1}) {
    Filling filling(shape, orders, most, gap);
    filling.run();
    if (filling.end() >= shortest) continue;
    shortest = filling.end();
    best = std::move(filling.filled);
  }
  return best;
}

}  // namespace orrery
