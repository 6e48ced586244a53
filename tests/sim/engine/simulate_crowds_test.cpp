#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/simulate.h"
#include "tests/random_bits.h"
#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

// When tasks end that start at given times and share one link, each of which alone would fill it.
std::vector<double> ends_of(const std::vector<double>& starts, std::vector<double> left) {
  std::vector<double> ends(left.size());
  for (double now = 0;;) {
    std::size_t running = 0;
    double next = 1e300;
    for (std::size_t i = 0; i < left.size(); ++i) running += ends[i] == 0 && starts[i] <= now ? 1 : 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (ends[i] != 0) continue;
      next = std::min(next, starts[i] > now ? starts[i] : now + left[i] * static_cast<double>(running));
    }
    if (next == 1e300) return ends;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (ends[i] != 0 || starts[i] > now) continue;
      left[i] -= (next - now) / static_cast<double>(running);
      if (left[i] < 1e-3) ends[i] = next;
    }
    now = next;
  }
}

// Sixty ranks compute for a while and then send over one link: too many for each to be followed by itself.
TEST(Simulate, FairSharesOfACrowdedLinkAreThoseOfFewTransfers) {
  constexpr std::uint32_t kRanks = 60;
  TinyPlan p;
  std::vector<TaskId> moved;
  std::vector<double> starts, lengths;
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    starts.push_back(static_cast<double>(test::random_bits(2 * r) % 20'000'000));
    lengths.push_back(static_cast<double>(1'000'000 + test::random_bits(2 * r + 1) % 5'000'000));
    const auto work = p.op("work", LaneKind::compute, {.duration = static_cast<Picoseconds>(starts[r])});
    const auto move = p.op("move", LaneKind::data_reduce,
                           {.duration = static_cast<Picoseconds>(lengths[r]), .nic = kFullRate, .in = false});
    p.slot(r);
    moved.push_back(p.task(move, {p.task(work)}));
    SlotLinks links;
    links.nic_out = 0;
    links.nic_in = 1;
    links.flows.fill(1);
    p.timing().links.push_back(links);
  }
  p.timing().link_count = 2;
  p.finish();
  const Trace trace = p.run();
  const std::vector<double> expected = ends_of(starts, lengths);
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    EXPECT_NEAR(static_cast<double>(trace.spans[moved[r]].ended), expected[r], 1e-5 * expected[r]) << r;
  }
}

}  // namespace
}  // namespace orrery
