// Two pipelines in opposite directions: closed forms of the papers by the tests' own evaluator.
#include "models/chimera.h"

#include <gtest/gtest.h>

#include "tests/models/play_orders.h"

namespace orrery {
namespace {

std::int64_t bubble_of(const char* name, std::int64_t p, std::int64_t m, const PhaseTimes& t) {
  std::int64_t end = 0;
  for (const auto& [first, last] : test::spans_of(make_schedule(name, {p, m, 1, {}}), t)) end = std::max(end, last);
  return end - m * (t.forward + t.input + t.weight);
}

// Li and Hoefler 2021, table 2: of p micro-batches whose backward takes twice their forward the bubbles are
// (p - 2) / (3p / 2 + p - 2) of the step, which is 2 (p - 2) forwards.
TEST(Chimera, WaitsAsThePaperSays) {
  for (const std::int64_t p : {2, 4, 8, 16}) EXPECT_EQ(bubble_of("chimera", p, p, {1, 1, 1}), 2 * (p - 2)) << p;
}

TEST(Chimera, KeepsNoMoreThanOneForwardOneBackward) {
  for (const std::int64_t p : {2, 4, 6, 8}) {
    for (const std::int64_t m : {2 * p, 4 * p, 4 * p + 2}) {
      for (const auto& order : chimera_orders({p, m, 1, {}}))
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
