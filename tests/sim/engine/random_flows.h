#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/flow_table.h"
#include "tests/random_bits.h"

namespace orrery::test {

// A flow of a random set, and its links.
struct RandomFlow {
  std::vector<LinkUse> uses;
  Rate limit = kFullRate;
};

// A random network, and the flows that may cross it. Every fifth network has equal links and weights, so that many
// links fill at one level or, by rounding, a few units apart; every fifth has so little capacity that levels are small
// whole numbers; the others are mixed, with a few flows that load a link with nothing.
struct RandomFlows {
  explicit RandomFlows(std::uint64_t seed) : counter(seed << 20), kind(below(5)) {
    const std::int64_t links = 1 + below(kind == 1 ? 24 : 8), base = 1000 + below(500'000);
    for (std::int64_t i = 0; i < links; ++i)
      capacities.push_back(kind == 1 ? base : kind == 2 ? 1 + below(50) : 1000 + below(500'000));
    const std::int64_t count = 1 + below(kind == 1 ? 48 : 24);
    for (std::int64_t i = 0; i < count; ++i) flows.push_back(flow(base));
  }

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_bits(++counter) % static_cast<std::uint64_t>(n));
  }

  RandomFlow flow(std::int64_t base) {
    RandomFlow f;
    std::vector<LinkId> order(capacities.size());
    std::iota(order.begin(), order.end(), 0U);
    for (std::int64_t n = below(std::min<std::int64_t>(std::ssize(order), 4) + 1); n > 0; --n) {
      const auto at = static_cast<std::size_t>(below(std::ssize(order)));
      const std::int64_t mixed = below(3) == 0 ? 100'000 : below(10) == 0 ? 0 : 1 + below(300'000);
      const std::int64_t weight = kind == 1 ? base : mixed;
      f.uses.push_back({order[at], weight});
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (kind != 1 && below(2)) f.limit = 1 + below(kind == 2 ? 100 : kFullRate);
    return f;
  }

  std::uint64_t counter;
  std::int64_t kind;
  std::vector<std::int64_t> capacities;
  std::vector<RandomFlow> flows;
};

inline FlowTable table_of(const std::vector<std::int64_t>& capacities) {
  FlowTable table;
  for (const std::int64_t capacity : capacities) table.links.emplace_back().full = capacity * kFullRate;
  return table;
}

// Checks what a link counts of the flows of which it is the holder.
inline void expect_counted(const FlowTable& table, LinkId id) {
  const FlowTable::Link& link = table.links[id];
  std::int64_t own = 0;
  std::map<LinkId, std::pair<std::uint32_t, std::int64_t>> expected, counted;
  for (const FlowTable::Entry entry : link.flows) {
    if (table.holders[entry.flow] != id) continue;
    const FlowTable::Flow& flow = table.flows[entry.flow];
    own += flow.uses[entry.use].weight;
    EXPECT_LE(link.least_limit, flow.limit);
    for (const FlowTable::Use& use : flow.all()) {
      if (use.link == id) continue;
      ++expected[use.link].first;
      expected[use.link].second += use.weight;
    }
  }
  EXPECT_EQ(own, link.own);
  if (!link.fanned) return;
  for (const Fans::Fan& fan : link.fans.all()) counted[fan.link] = {fan.count, fan.weight};
  EXPECT_EQ(counted, expected);
}

}  // namespace orrery::test
