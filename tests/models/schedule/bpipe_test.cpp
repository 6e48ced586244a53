// The activations that BPipe evicts to another stage: the paper's bound, counted by an independent evaluator.
#include "models/schedule/bpipe.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

namespace orrery {
namespace {

// Begin and end of every action, with F taking 1 and B 2, transfers no time.
std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> play(const Schedule& s) {
  const int p = static_cast<int>(s.order.size());
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> times(p);
  std::map<std::tuple<bool, int, int>, std::int64_t> ended;
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < p; ++stage) {
      if (times[stage].size() == s.order[stage].size()) continue;
      const Action& a = s.order[stage][times[stage].size()];
      const bool forward = a.phase == Phase::forward;
      const int from = forward ? stage - 1 : stage + 1;
      const auto it = ended.find({forward, from, a.micro_batch});
      if (from >= 0 && from < p && it == ended.end()) continue;
      const std::int64_t before = times[stage].empty() ? 0 : times[stage].back().second;
      const std::int64_t begin = std::max(before, it == ended.end() ? 0 : it->second);
      times[stage].emplace_back(begin, begin + (forward ? 1 : 2));
      ended[{forward, stage, a.micro_batch}] = times[stage].back().second;
      moved = true;
    }
  }
  return times;
}

TEST(Bpipe, NoStageKeepsMoreThanThePaperSays) {
  for (const std::int64_t p : {1, 2, 3, 4, 5, 8, 12, 16}) {
    for (const std::int64_t m : {std::int64_t{1}, p, p + 1, 3 * p + 1, 5 * p}) {
      const Schedule s = make_schedule("bpipe", {p, m, 1, {}});
      const auto times = play(s);
      for (std::int64_t stage = 0; stage < p; ++stage) {
        std::vector<std::pair<std::int64_t, int>> changes;  // at equal times evictions come first
        for (std::size_t i = 0; i < s.order[stage].size(); ++i) {
          const bool forward = s.order[stage][i].phase == Phase::forward;
          changes.emplace_back(forward ? times[stage][i].first : times[stage][i].second, forward ? 1 : -1);
        }
        for (const Eviction& move : s.moves) {
          if (move.stage != stage && move.partner != stage) continue;
          const int sign = move.stage == stage ? 1 : -1;
          changes.emplace_back(times[move.stage][move.leaves].second, -sign);
          changes.emplace_back(times[move.stage][move.returns - 1].first, sign);
        }
        std::sort(changes.begin(), changes.end());
        std::int64_t now = 0, most = 0;
        for (const auto& [time, change] : changes) most = std::max(most, now += change);
        EXPECT_LE(most, (p + 2 + 1) / 2) << "p " << p << " m " << m << " stage " << stage;
        EXPECT_EQ(now, 0);
      }
    }
  }
}

TEST(Bpipe, MovesLieBetweenForwardAndBackward) {
  const Schedule s = make_schedule("bpipe", {8, 24, 1, {}});
  EXPECT_FALSE(s.moves.empty());
  for (const Eviction& move : s.moves) {
    const std::vector<Action>& order = s.order[move.stage];
    EXPECT_EQ(move.stage + move.partner, 7);
    EXPECT_LT(move.stage, 4);
    EXPECT_EQ(order[move.leaves].phase, Phase::forward);
    EXPECT_EQ(order[move.leaves].micro_batch, move.micro_batch);
    EXPECT_EQ(order[move.returns].phase, Phase::backward);
    EXPECT_EQ(order[move.returns].micro_batch, move.micro_batch);
    EXPECT_GT(move.returns, move.leaves + 1);
  }
}

}  // namespace
}  // namespace orrery
