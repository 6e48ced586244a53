#include "sim/whatif/step_replay.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/random_bits.h"

namespace orrery {
namespace {

double even_time(const RunNode& n) { return n.gap; }

// A graph in which each node waits for up to three others. `gap` holds the node's even time here.
StepGraph random_graph(std::uint64_t& counter, std::size_t size) {
  const auto random = [&](std::uint64_t below) { return test::random_bits(++counter) % below; };
  StepGraph g;
  for (std::uint32_t i = 0; i < size; ++i) {
    RunNode n;
    n.time = static_cast<double>(random(20)) * 0.25;
    n.gap = random(3) == 0 ? n.time : static_cast<double>(random(20)) * 0.25;
    for (std::uint64_t k = random(4); k > 0 && i > 0; --k) n.after.push_back(static_cast<std::uint32_t>(random(i)));
    g.nodes.push_back(n);
  }
  return g;
}

TEST(StepReplay, EqualsAReplayOfTheWholeStep) {
  std::uint64_t counter = 0;
  for (int round = 0; round < 200; ++round) {
    const StepGraph g = random_graph(counter, 1 + test::random_bits(++counter) % 60);
    StepReplay replay(g, even_time);
    for (int question = 0; question < 5; ++question) {
      std::vector<std::uint32_t> nodes;
      for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
        if (test::random_bits(++counter) % 5 == 0) nodes.push_back(i);
      }
      const auto time = [&](const RunNode& n) {
        const auto i = static_cast<std::uint32_t>(&n - g.nodes.data());
        return std::find(nodes.begin(), nodes.end(), i) != nodes.end() ? n.time : n.gap;
      };
      const double whole = replayed(g, time, [](const RunNode&) { return 0.0; });
      EXPECT_EQ(replay.with_measured(nodes), whole);
    }
  }
}

}  // namespace
}  // namespace orrery
