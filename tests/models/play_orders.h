#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/schedule/schedules.h"

namespace orrery::test {

// The times at which each stage begins its first action and ends its last; transfers take no time, all virtual stages
// take the same time. An evaluator independent of the engine. Woven actions begin and end together.
inline std::vector<std::pair<std::int64_t, std::int64_t>> spans_of(const Schedule& schedule, const PhaseTimes& times) {
  const auto stages = static_cast<int>(schedule.order.size()), count = static_cast<int>(schedule.virtual_stages());
  std::map<std::pair<int, int>, int> virtual_stage;
  for (int k = 0; k < static_cast<int>(schedule.stage_of.size()); ++k)
    virtual_stage[{schedule.stage_of[k], schedule.chunk_of[k]}] = k;
  std::map<std::tuple<int, bool, int>, std::int64_t> ended;  // (place, whether forward, micro-batch)
  std::vector<std::size_t> next(stages, 0);
  std::vector<std::pair<std::int64_t, std::int64_t>> spans(stages, {-1, 0});
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < stages; ++s) {
      if (next[s] == schedule.order[s].size()) continue;
      std::int64_t start = spans[s].second, length = 0;
      bool ready = true;
      std::vector<std::tuple<int, bool, int>> ends;
      std::size_t i = next[s];
      do {
        const Action& a = schedule.order[s][i];
        const bool forward = a.phase == Phase::forward, weight = a.phase == Phase::weight_gradient;
        const int k = virtual_stage.at({s, a.chunk}), from = forward ? k - 1 : k + 1;
        if (!weight && from >= k / count * count && from < (k / count + 1) * count) {
          const auto it = ended.find({from, forward, a.micro_batch});
          ready = ready && it != ended.end();
          if (ready) start = std::max(start, it->second);
        }
        const std::int64_t whole = a.phase == Phase::backward ? times.input + times.weight : times.input;
        length += forward ? times.forward : weight ? times.weight : whole;
        if (!weight) ends.push_back({k, forward, a.micro_batch});
      } while (schedule.order[s][i++].woven);
      if (!ready) continue;
      if (spans[s].first < 0) spans[s].first = start;
      spans[s].second = start + length;
      for (const auto& end : ends) ended[end] = spans[s].second;
      next[s] = i;
      moved = true;
    }
  }
  for (int s = 0; s < stages; ++s) EXPECT_EQ(next[s], schedule.order[s].size()) << "stage " << s << " is stuck";
  return spans;
}

// The largest number of forwards, counted in chunks, whose backward (or weight gradient, where that runs separately)
// has not begun.
inline std::int64_t most_in_flight(const std::vector<Action>& order) {
  std::int64_t now = 0, most = 0;
  for (const Action& a : order) {
    now += a.phase == Phase::forward ? 1 : a.phase == Phase::input_gradient ? 0 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace orrery::test
