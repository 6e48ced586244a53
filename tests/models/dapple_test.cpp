// DAPPLE's planner against every plan there is, weighed a second time.
#include "models/dapple.h"

#include <limits>

#include <gtest/gtest.h>

#include "models/error.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

PipelineCosts costs_of(std::uint64_t seed, std::int64_t layers, std::int64_t places, std::int64_t samples) {
  test::Random random(seed);
  PipelineCosts c;
  for (std::int64_t i = 0; i < layers; ++i) {
    c.forward.push_back(static_cast<double>(1 + random.next() % 9) * 1e-3);
    c.gradients.push_back(static_cast<double>(random.next() % 9) * 1e7);
    c.states.push_back(static_cast<double>(random.next() % 4));
    c.shared_states.push_back(static_cast<double>(random.next() % 4));
  }
  c.hidden_bytes = static_cast<double>(random.next() % 9) * 1e6;
  c.samples = samples;
  c.micro_batches = random.pick<std::int64_t>({1, 2, 8, 32});
  c.copies = random.pick<std::int64_t>({1, 2});
  for (std::int64_t p = 0; p < places; ++p) c.node.push_back(p / 2);
  c.inside_GBps = 100;
  c.between_GBps = 10;
  c.memory = random.flag() ? 1e9 : 8;
  return c;
}

bool fits(const PipelineCosts& c, const StagePlan& plan) {
  std::size_t layer = 0;
  for (std::size_t s = 0; s < plan.layers.size(); ++s) {
    double bytes = 0;
    for (std::int64_t i = 0; i < plan.layers[s]; ++i, ++layer)
      bytes += c.states[layer] + c.shared_states[layer] / static_cast<double>(plan.replicas[s]);
    if (bytes > c.memory) return false;
  }
  return true;
}

// Every stage forward, m - 1 turns of the dearest of stages and transfers, every stage back, and reductions that end
// after the stages before them.
double weighed(const PipelineCosts& c, const StagePlan& plan) {
  const std::size_t stages = plan.layers.size();
  double forward = 0, dearest = 0;
  std::vector<double> back(stages), passed(stages), reduced(stages);
  std::size_t layer = 0, place = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    double run = 0, bytes = 0;
    const auto r = static_cast<std::size_t>(plan.replicas[s]);
    for (std::int64_t i = 0; i < plan.layers[s]; ++i, ++layer) {
      run += c.forward[layer] / static_cast<double>(r);
      bytes += c.gradients[layer];
    }
    const std::size_t next = s + 1 < stages ? static_cast<std::size_t>(plan.replicas[s + 1]) : 0;
    const auto speed = [&](std::size_t last) { return c.node[place] == c.node[last] ? 100e9 : 10e9; };
    if (next > 0) passed[s] = c.hidden_bytes / static_cast<double>(std::min(r, next)) / speed(place + r + next - 1);
    const auto ranks = static_cast<double>(plan.replicas[s] * c.copies);
    reduced[s] = ranks > 1 ? 2 * (ranks - 1) / ranks * bytes / speed(place + r - 1) : 0;
    back[s] = 2 * run;
    forward += run + passed[s];
    dearest = std::max({dearest, 3 * run, 2 * passed[s]});
    place += r;
  }
  double end = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    double until = reduced[s];
    for (std::size_t k = s; k < stages; ++k) until += back[k] + passed[k];
    end = std::max(end, until);
  }
  return forward + static_cast<double>(c.micro_batches - 1) * dearest + end;
}

// The least latency of all plans that go on from this one with so many layers and places left.
double best_of_all(const PipelineCosts& c, StagePlan& plan, std::int64_t layers, std::int64_t places,
                   std::int64_t stages) {
  if (layers == 0 || places == 0) {
    const bool whole = layers == 0 && places == 0 && (stages == 0 || std::ssize(plan.layers) == stages);
    return whole && fits(c, plan) ? weighed(c, plan) : std::numeric_limits<double>::infinity();
  }
  double best = std::numeric_limits<double>::infinity();
  for (std::int64_t n = 1; n <= layers; ++n) {
    for (std::int64_t r = 1; r <= places; ++r) {
      if (c.samples % r != 0) continue;
      plan.layers.push_back(n);
      plan.replicas.push_back(r);
      best = std::min(best, best_of_all(c, plan, layers - n, places - r, stages));
      plan.layers.pop_back();
      plan.replicas.pop_back();
    }
  }
  return best;
}

TEST(Dapple, FindsThePlanOfLeastLatency) {
  int planned = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const PipelineCosts c = costs_of(seed, 2 + static_cast<std::int64_t>(seed % 5),
                                     1 + static_cast<std::int64_t>(seed % 6), seed % 2 == 0 ? 12 : 4);
    for (const std::int64_t stages : {0, 1, 2, 3}) {
      StagePlan none;
      const double best = best_of_all(c, none, std::ssize(c.forward), std::ssize(c.node), stages);
      if (best == std::numeric_limits<double>::infinity()) {
        EXPECT_THROW(plan_stages(c, stages), Error);
        ++refused;
        continue;
      }
      const StagePlan plan = plan_stages(c, stages);
      EXPECT_TRUE(fits(c, plan));
      EXPECT_NEAR(latency(c, plan), weighed(c, plan), 1e-9 * best);
      EXPECT_NEAR(latency(c, plan), best, 1e-9 * best) << "seed " << seed << ", stages " << stages;
      ++planned;
    }
  }
  EXPECT_GT(planned, 100);
  EXPECT_GT(refused, 20);
}

// A heavy head gets as many ranks as the layers before it, so that no stage waits for another.
TEST(Dapple, ReplicatesWhatIsHeavy) {
  PipelineCosts c = costs_of(1, 4, 4, 12);
  c.forward = {1, 1, 1, 9};
  c.gradients = c.states = c.shared_states = {0, 0, 0, 0};
  c.hidden_bytes = 0;
  c.micro_batches = 100;
  const StagePlan plan = plan_stages(c, 2);
  EXPECT_EQ(plan.layers, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(plan.replicas, (std::vector<std::int64_t>{1, 3}));
}

}  // namespace
}  // namespace orrery
