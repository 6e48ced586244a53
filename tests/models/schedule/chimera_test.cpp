// Two pipelines in opposite directions: closed forms of the papers by the tests' own evaluator.
#include "models/schedule/chimera.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/models/play_orders.h"

namespace orrery {
namespace {

std::int64_t bubble_of(const char* name, std::int64_t p, std::int64_t m, const PhaseTimes& t) {
  std::int64_t end = 0;
  for (const auto& [first, last] : test::spans_of(make_schedule(name, {p, m, 1, {}}), t)) end = std::max(end, last);
  return end - m * (t.forward + t.input + t.weight);
}

// Li and Hoefler 2021, table 2: with p micro-batches whose backward takes twice their forward, bubbles are (p - 2) /
// (3p / 2 + p - 2) of the step, which is 2 (p - 2) forwards.
TEST(Chimera, WaitsAsThePaperSays) {
  for (const std::int64_t p : {2, 4, 8, 16}) EXPECT_EQ(bubble_of("chimera", p, p, {1, 1, 1}), 2 * (p - 2)) << p;
}

// Li and Hoefler 2021: with f pipelines in each direction, 2 (p / f - 2) forwards of 3 m + 2 (p / f - 2) are bubbles,
// which is (p - 2f) / (1.5 f m + p - 2f), for as many micro-batches as stages; orders that are found step by step reach
// this, except for up to two forwards in long pipelines.
TEST(Chimera, WaitsLessWithMoreCopies) {
  for (const auto& [name, f] : {std::pair{"chimera-4", 2}, {"chimera-8", 4}}) {
    for (const std::int64_t p : {2 * f, 4 * f, 6 * f})
      EXPECT_EQ(bubble_of(name, p, p, {1, 1, 1}), 2 * (p / f - 2)) << p;
    EXPECT_EQ(bubble_of(name, 8 * f, 8 * f, {1, 1, 1}), 12 + 1) << f;
    EXPECT_EQ(bubble_of(name, 16 * f, 16 * f, {1, 1, 1}), 28 + 2) << f;
  }
}

// Every stage (place in the pipeline) holds one virtual stage of each copy, and the stages that hold the same weights,
// which reduce gradients together, hold the same set.
TEST(Chimera, SpreadsCopiesEvenly) {
  const Schedule s = make_schedule("chimera-4", {8, 8, 1, {}});
  ASSERT_EQ(s.copies, 4);
  std::map<int, std::multiset<int>> held;
  for (std::size_t k = 0; k < s.stage_of.size(); ++k) held[s.stage_of[k]].insert(static_cast<int>(k % 8));
  EXPECT_EQ(held[0], (std::multiset<int>{0, 3, 4, 7}));
  for (const int same : {3, 4, 7}) EXPECT_EQ(held[same], held[0]);
  EXPECT_EQ(held[1], (std::multiset<int>{1, 2, 5, 6}));
}

TEST(Chimera, KeepsNoMoreThanOneForwardOneBackward) {
  for (const std::int64_t p : {2, 4, 6, 8}) {
    for (const std::int64_t m : {2 * p, 4 * p, 4 * p + 2}) {
      for (const auto& order : chimera_orders({p, m, 1, {}}))
        EXPECT_LE(test::most_in_flight(order), p) << p << " " << m;
      if (p % 4 != 0 || m % 4 != 0) continue;
      for (const auto& order : chimera_orders({p, m, 1, {}}, 4))
        EXPECT_LE(test::most_in_flight(order), p) << p << " " << m;
    }
  }
}

// DeepSeek-AI 2024, table 2: (p / 2 - 1)(F&B + B - 3W) and p + 1 activations; without overlap F&B takes F + B.
TEST(Chimera, DualpipeWaitsAsTheTableSays) {
  for (const std::int64_t p : {2, 4, 8, 16}) {
    for (const PhaseTimes& t : {PhaseTimes{1, 1, 1}, {10, 12, 8}, {3, 4, 2}}) {
      const std::int64_t m = 2 * p + 2, backward = t.input + t.weight;
      EXPECT_EQ(bubble_of("dualpipe", p, m, t), (p / 2 - 1) * (t.forward + backward + backward - 3 * t.weight)) << p;
      for (const auto& order : make_schedule("dualpipe", {p, m, 1, {}}).order)
        EXPECT_LE(test::most_in_flight(order), p + 1);
    }
  }
}

}  // namespace
}  // namespace orrery
