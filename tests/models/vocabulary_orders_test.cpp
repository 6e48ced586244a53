// 1F1B of stages that share the vocabulary, played by an evaluator of the test's own.
#include "models/vocabulary_orders.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/models/play_orders.h"

namespace orrery {
namespace {

// When the last stage has ended, what stages exchange taking no time. Chunks 0: layers, 1: words, 2: logits.
std::int64_t end_of(const Schedule& schedule, const std::vector<PhaseTimes>& times) {
  const auto p = static_cast<int>(schedule.order.size());
  std::map<std::tuple<int, bool, int, int>, std::int64_t> ended;  // chunk, whether forward, stage, micro-batch
  std::vector<std::int64_t> now(p, 0);
  std::vector<std::size_t> next(p, 0);
  const auto of_all = [&](int chunk, bool forward, int i) {
    std::int64_t last = 0;
    for (int s = 0; s < p; ++s) {
      const auto it = ended.find({chunk, forward, s, i});
      last = it == ended.end() || last < 0 ? -1 : std::max(last, it->second);
    }
    return last;
  };
  const auto of = [&](int chunk, bool forward, int stage, int i) {
    const auto it = ended.find({chunk, forward, stage, i});
    return it == ended.end() ? std::int64_t{-1} : it->second;
  };
  const auto ready = [&](int s, const Action& a) {
    const bool forward = a.phase == Phase::forward;
    const int i = a.micro_batch;
    if (a.chunk == 1) return forward ? 0 : of(0, false, 0, i);
    if (a.chunk == 2) return forward ? of(0, true, p - 1, i) : of_all(2, true, i);
    if (forward) return s == 0 ? of_all(1, true, i) : of(0, true, s - 1, i);
    return s < p - 1 ? of(0, false, s + 1, i) : of_all(2, schedule.barriers == 1, i);
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < p; ++s) {
      if (next[s] == schedule.order[s].size()) continue;
      const Action& a = schedule.order[s][next[s]];
      const std::int64_t begin = ready(s, a);
      if (begin < 0) continue;
      const PhaseTimes& t = times[a.chunk == 0 ? s : a.chunk == 2 ? p : p + 1];
      const bool forward = a.phase == Phase::forward;
      now[s] = std::max(now[s], begin) + (forward ? t.forward : t.input + t.weight);
      ended[{a.chunk, forward, s, a.micro_batch}] = now[s];
      ++next[s];
      moved = true;
    }
  }
  for (int s = 0; s < p; ++s) EXPECT_EQ(next[s], schedule.order[s].size()) << "stage " << s << " is stuck";
  return *std::max_element(now.begin(), now.end());
}

std::int64_t most_of_chunk(const std::vector<Action>& order, std::int32_t chunk) {
  std::vector<Action> some;
  std::copy_if(order.begin(), order.end(), std::back_inserter(some), [&](const Action& a) { return a.chunk == chunk; });
  return test::most_in_flight(some);
}

std::vector<PhaseTimes> times_of(std::int64_t p, const PhaseTimes& layers, const PhaseTimes& logits) {
  std::vector<PhaseTimes> times(p, layers);
  times.push_back(logits);
  times.push_back({1, 0, 1});  // words
  return times;
}

// Yeung et al. 2024, section 5: p + 1 micro-batches with one barrier, p + 2 with two; of logits a stage keeps few.
TEST(VocabularyOrders, KeepAsManyAsThePaperSays) {
  for (const auto& [name, barriers] : {std::pair{"vocab-1f1b", 1}, {"vocab-1f1b-alg1", 2}}) {
    for (const std::int64_t p : {2, 3, 4, 8}) {
      for (const std::int64_t m : {std::int64_t{1}, p, 4 * p + 1}) {
        const Schedule s = make_schedule(name, {p, m, 1, times_of(p, {10, 10, 10}, {3, 3, 3})});
        EXPECT_EQ(s.barriers, barriers);
        for (std::int64_t stage = 0; stage < p; ++stage) {
          EXPECT_LE(most_of_chunk(s.order[stage], 0), std::min(m, p - stage + barriers)) << name;
          EXPECT_LE(most_of_chunk(s.order[stage], 2), 3) << name << " " << p << " " << m << " " << stage;
        }
      }
    }
  }
}

// Stages do m times all their work without waiting, but to fill and to empty the pipeline: no stage waits for the last
// one's logits as in 1F1B. The steady state is full: twice the micro-batches take their work more.
TEST(VocabularyOrders, WaitOnlyToFillAndToEmpty) {
  for (const auto& [name, barriers] : {std::pair{"vocab-1f1b", 1}, {"vocab-1f1b-alg1", 2}}) {
    for (const std::int64_t p : {2, 4, 8, 16}) {
      for (const PhaseTimes& logits : {PhaseTimes{3, 3, 3}, {10, 10, 10}, {1, 1, 1}}) {
        const PhaseTimes layers = {30, 30, 30};
        const auto times = times_of(p, layers, logits);
        const std::int64_t work = 90 + logits.forward + logits.input + logits.weight + 2;
        const std::int64_t m = 4 * p;
        const auto end = [&](std::int64_t micro_batches) {
          return end_of(make_schedule(name, {p, micro_batches, 1, times}), times);
        };
        EXPECT_LE(end(m), m * work + (p - 1) * 90 + (barriers + 1) * work) << name << " " << p << " " << logits.forward;
        EXPECT_LE(end(2 * m) - end(m), m * work + work) << name << " " << p << " " << logits.forward;
      }
    }
  }
}

// A stage alone holds all of the vocabulary, and runs 1F1B.
TEST(VocabularyOrders, AreThoseOf1f1bOnOneStage) {
  const Schedule alone = make_schedule("vocab-1f1b", {1, 4, 1}), plain = make_schedule("1f1b", {1, 4, 1});
  EXPECT_FALSE(alone.spreads_vocabulary());
  ASSERT_EQ(alone.order[0].size(), plain.order[0].size());
}

}  // namespace
}  // namespace orrery
