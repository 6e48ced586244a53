#include "models/schedule/v_schedules.h"

#include <algorithm>
#include <utility>

#include "models/schedule/list_scheduling.h"

namespace orrery {
namespace {

using Orders = std::vector<std::vector<Action>>;

constexpr std::int64_t kPeriod = 6;

// The time at which a stage begins one pass of the first micro-batch, in units of the duration of a pass.
struct Beginning {
  std::int64_t time = 0;
  Phase phase = Phase::forward;
  std::int32_t chunk = 0;
};
using Beginnings = std::array<Beginning, 4>;

// Returns the times at which a stage begins the two forwards and two input gradients of the first micro-batch. The
// micro-batch passes all stages four times: forward to the last stage and back to the first, then backward the same
// way. gaps: the three times, in units of a pass, between the last pass of one of these four and the first pass of the
// next.
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

// Returns for each stage the times at which it begins its passes of the first micro-batch. The gaps between the
// micro-batch's four ways through the stages are the shortest for which no stage runs two passes at the same time,
// given that the next micro-batch repeats the pattern kPeriod passes later. Such gaps always exist if the sums and
// differences of the paces have a common factor with kPeriod.
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

// Returns the orders of forwards and input gradients of every stage, without weight gradients.
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

}  // namespace

std::vector<std::vector<Action>> v_orders(const ScheduleShape& shape, const Pace& pace, std::int64_t most,
                                          std::int64_t barriers) {
  const Orders orders = without_weights(shape, pace);
  std::vector<OrderFilling> ways;
  for (const std::int64_t gap : {100, 50, 1}) ways.push_back({gap, most + 2 * barriers, barriers});
  return best_filled(shape, ChunkPlacement::v_shaped, orders, ways);
}

}  // namespace orrery
