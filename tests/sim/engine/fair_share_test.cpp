#include "sim/engine/fair_share.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <ostream>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/random_bits.h"

namespace orrery {
namespace {

struct Given {
  std::vector<LinkUse> uses;
  Rate limit = kFullRate;
  std::int64_t multiplicity = 1;
};

// One flow that stands for all copies of a flow.
Given all_of(Given flow) {
  for (LinkUse& use : flow.uses) use.weight *= flow.multiplicity;
  return flow;
}

// Rates of flows added one by one to fresh links.
std::vector<Rate> rates(const std::vector<std::int64_t>& capacities, const std::vector<Given>& flows) {
  FairShare share;
  for (const std::int64_t c : capacities) share.add_link(c);
  std::vector<FlowId> ids;
  for (const Given& g : flows) {
    ids.push_back(share.add_flow(all_of(g).uses, g.limit));
    share.update();
  }
  std::vector<Rate> result;
  for (const FlowId id : ids) result.push_back(share.rate(id));
  return result;
}

// The flows whose rates an update says may have changed, in rising order.
std::vector<FlowId> flows_of(const FairShare& share, const FairShare::Changes& changes) {
  std::vector<FlowId> flows(changes.flows.begin(), changes.flows.end());
  for (const LinkId link : changes.links) {
    for (const FlowTable::Entry entry : share.table().links[link].flows) {
      if (share.holder(entry.flow) == link) flows.push_back(entry.flow);
    }
  }
  std::sort(flows.begin(), flows.end());
  flows.erase(std::unique(flows.begin(), flows.end()), flows.end());
  return flows;
}

Rate fraction(double x) { return static_cast<Rate>(x * static_cast<double>(kFullRate)); }

TEST(FairShare, UncontendedFlowsRunAtTheirLimits) {
  EXPECT_EQ(rates({100}, {{{{0, 60}}}, {{{0, 40}}}}), (std::vector{kFullRate, kFullRate}));
  EXPECT_EQ(rates({100}, {{{{0, 100}}, kFullRate / 2}, {{{0, 50}}}}), (std::vector{kFullRate / 2, kFullRate}));
  EXPECT_EQ(rates({}, {{{}, 77}}), (std::vector<Rate>{77}));
}

TEST(FairShare, TwoCollectivesOnOneNicGetHalfOfItEach) {
  const Rate half = fraction(0.5 / 0.95);
  EXPECT_EQ(rates({100000}, {{{{0, 95000}}}, {{{0, 95000}}}}), (std::vector{half, half}));
  // The same, said in bandwidths: rates are parts of the NIC.
  const Rate limit = fraction(0.95);
  EXPECT_EQ(rates({100000}, {{{{0, 100000}}, limit}, {{{0, 100000}}, limit}}),
            (std::vector{kFullRate / 2, kFullRate / 2}));
}

TEST(FairShare, BandwidthThatASlowFlowLeavesGoesToTheOthers) {
  EXPECT_EQ(rates({100}, {{{{0, 100}}, kFullRate / 4}, {{{0, 100}}}, {{{0, 100}}}}),
            (std::vector{kFullRate / 4, kFullRate * 3 / 8, kFullRate * 3 / 8}));
}

// Bertsekas and Gallager's example shape: a long flow over two links, one short flow on the narrow link and two on the
// wide one.
TEST(FairShare, AFlowIsHeldByItsNarrowestLink) {
  EXPECT_EQ(rates({100, 300}, {{{{0, 100}, {1, 100}}}, {{{0, 100}}}, {{{1, 200}}}, {{{1, 200}}}}),
            (std::vector{kFullRate / 2, kFullRate / 2, kFullRate * 5 / 8, kFullRate * 5 / 8}));
}

TEST(FairShare, UpdateTellsOfTheFlowsWhoseRatesChanged) {
  FairShare share;
  for (int i = 0; i < 3; ++i) share.add_link(100);
  std::map<FlowId, Rate> known;
  const auto on = [&](LinkId link) {
    const LinkUse use{link, 100};
    const FlowId id = share.add_flow({&use, 1});
    known[id] = share.rate(id);
    return id;
  };
  const auto update = [&] {
    std::vector<FlowId> flows = flows_of(share, share.update());
    std::erase_if(flows, [&](FlowId id) { return std::exchange(known[id], share.rate(id)) == share.rate(id); });
    return flows;
  };
  const FlowId a = on(0), b = on(1);
  EXPECT_FALSE(share.stale());  // nobody is slowed: both have their limits at once
  EXPECT_EQ(share.rate(a), kFullRate);
  EXPECT_EQ(share.rate(b), kFullRate);
  EXPECT_EQ(update(), std::vector<FlowId>{});
  const FlowId c = on(1);
  EXPECT_EQ(share.rate(c), 0);
  EXPECT_TRUE(share.stale());
  EXPECT_EQ(update(), (std::vector{b, c}));
  EXPECT_FALSE(share.stale());
  on(2);
  EXPECT_EQ(update(), std::vector<FlowId>{});
  share.remove_flow(b);
  EXPECT_EQ(update(), (std::vector{c}));
  EXPECT_EQ(share.rate(c), kFullRate);
  // One leaves and another comes at the same instant: nobody else notices.
  const FlowId e = on(1);
  update();
  share.remove_flow(e);
  const FlowId f = on(1);
  EXPECT_EQ(update(), (std::vector{f}));
  EXPECT_EQ(update(), std::vector<FlowId>{});
}

// --- Random cases against references ---------------------------------------------------------------------------------

using test::random_bits;

struct Random {
  std::uint64_t counter;
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_bits(++counter) % static_cast<std::uint64_t>(n));
  }
};

struct Case {
  std::vector<std::int64_t> capacities;
  std::vector<Given> flows;
};

Case random_case(std::uint64_t seed) {
  Random random{seed << 20};
  Case c;
  const std::int64_t links = 1 + random.below(8);
  for (std::int64_t i = 0; i < links; ++i) c.capacities.push_back(1000 + random.below(500'000));
  const std::int64_t flows = 1 + random.below(24);
  for (std::int64_t i = 0; i < flows; ++i) {
    Given g;
    std::vector<LinkId> order(static_cast<std::size_t>(links));
    std::iota(order.begin(), order.end(), 0U);
    for (std::int64_t n = random.below(std::min<std::int64_t>(links, 4) + 1); n > 0; --n) {
      const auto at = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(order.size())));
      g.uses.push_back({order[at], random.below(3) == 0 ? 100'000 : 1 + random.below(300'000)});
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (random.below(2)) g.limit = 1 + random.below(kFullRate);
    if (random.below(3) == 0) g.multiplicity = 1 + random.below(6);
    c.flows.push_back(g);
  }
  return c;
}

// Flows with every multiplicity expanded; origin: the flow that each came from.
std::vector<Given> unfolded(const std::vector<Given>& flows, std::vector<std::size_t>* origin) {
  std::vector<Given> result;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    for (std::int64_t k = 0; k < flows[i].multiplicity; ++k) {
      result.push_back({flows[i].uses, flows[i].limit, 1});
      origin->push_back(i);
    }
  }
  return result;
}

// Max-min fair rates by the textbook algorithm over all links and single flows, one event per round. Number is Rate for
// the exact result with its rounding, double for the real one.
template <class Number>
std::vector<Number> textbook(const std::vector<std::int64_t>& capacities, const std::vector<Given>& flows) {
  std::vector<Number> result(flows.size());
  std::vector<bool> fixed(flows.size(), false);
  for (;;) {
    std::vector<Number> level(capacities.size());
    std::vector<bool> used(capacities.size(), false);
    Number first_link = static_cast<Number>(4 * kFullRate), first_limit = first_link;
    for (LinkId l = 0; l < capacities.size(); ++l) {
      Number left = static_cast<Number>(capacities[l]) * static_cast<Number>(kFullRate), weight = 0;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        for (const LinkUse& u : flows[f].uses) {
          if (u.link != l) continue;
          (fixed[f] ? left : weight) +=
              fixed[f] ? -static_cast<Number>(u.weight) * result[f] : static_cast<Number>(u.weight);
        }
      }
      used[l] = weight > 0;
      if (used[l]) level[l] = left / weight;
      if (used[l]) first_link = std::min(first_link, level[l]);
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (!fixed[f]) first_limit = std::min(first_limit, static_cast<Number>(flows[f].limit));
    }
    if (std::find(fixed.begin(), fixed.end(), false) == fixed.end()) return result;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (fixed[f]) continue;
      bool stops = first_limit <= first_link && static_cast<Number>(flows[f].limit) == first_limit;
      for (const LinkUse& u : flows[f].uses)
        stops |= first_link < first_limit && used[u.link] && level[u.link] == first_link;
      if (!stops) continue;
      fixed[f] = true;
      result[f] = std::min(first_limit, first_link);
    }
  }
}

class RandomCases : public testing::Test {
 protected:
  static constexpr std::uint64_t kCases = 1500;
};

TEST_F(RandomCases, EqualTheTextbookBitForBitFoldedOrNot) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = random_case(seed);
    std::vector<std::size_t> origin;
    const std::vector<Given> singles = unfolded(c.flows, &origin);
    const std::vector<Rate> expected = textbook<Rate>(c.capacities, singles);
    const std::vector<Rate> folded = rates(c.capacities, c.flows);
    ASSERT_EQ(rates(c.capacities, singles), expected) << "seed " << seed;
    for (std::size_t i = 0; i < singles.size(); ++i) ASSERT_EQ(folded[origin[i]], expected[i]) << "seed " << seed;
  }
}

TEST_F(RandomCases, AreWithinRoundingOfRealNumbers) {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = random_case(seed);
    std::vector<std::size_t> origin;
    const std::vector<Given> singles = unfolded(c.flows, &origin);
    const std::vector<double> expected = textbook<double>(c.capacities, singles);
    const std::vector<Rate> got = rates(c.capacities, singles);
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]) / static_cast<double>(kFullRate));
    }
  }
  EXPECT_LT(worst, 1e-4);
}

TEST_F(RandomCases, DoNotDependOnHistory) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = random_case(seed);
    const std::vector<Rate> expected = rates(c.capacities, c.flows);
    Random random{(seed << 20) + 500'000};
    FairShare share;
    for (const std::int64_t capacity : c.capacities) share.add_link(capacity);
    std::map<std::size_t, FlowId> in;
    std::map<FlowId, Rate> known;  // rates known to a caller that asks once and then listens to update()
    const auto toggle = [&](std::size_t i) {
      if (const auto it = in.find(i); it != in.end()) {
        share.remove_flow(it->second);
        in.erase(it);
      } else {
        in[i] = share.add_flow(all_of(c.flows[i]).uses, c.flows[i].limit);
        known[in[i]] = share.rate(in[i]);
      }
    };
    const auto update = [&] {
      for (const FlowId id : flows_of(share, share.update())) known[id] = share.rate(id);
    };
    const auto count = static_cast<std::int64_t>(c.flows.size());
    for (int step = 0; step < 60; ++step) {
      toggle(static_cast<std::size_t>(random.below(count)));
      if (random.below(3)) update();
    }
    for (std::size_t i = c.flows.size(); i-- > 0;) {
      if (!in.count(i)) toggle(i);
    }
    update();
    for (const auto& [i, id] : in) {
      ASSERT_EQ(share.rate(id), expected[i]) << "seed " << seed;
      ASSERT_EQ(known[id], expected[i]) << "seed " << seed;
    }
  }
}

// Max-min fairness itself: no link is overfull, and each flow is at its limit or has a full link on which no one is
// faster. Full means that one more unit for all who are as fast as this flow would not fit.
TEST_F(RandomCases, GiveEachFlowItsLimitOrABottleneck) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = random_case(seed);
    const std::vector<Rate> got = rates(c.capacities, c.flows);
    std::vector<std::int64_t> load(c.capacities.size()), weight(c.capacities.size());
    std::vector<Rate> fastest(c.capacities.size());
    for (std::size_t f = 0; f < got.size(); ++f) {
      for (const LinkUse& u : c.flows[f].uses) {
        load[u.link] += u.weight * c.flows[f].multiplicity * got[f];
        weight[u.link] += u.weight * c.flows[f].multiplicity;
        fastest[u.link] = std::max(fastest[u.link], got[f]);
      }
    }
    for (std::size_t l = 0; l < load.size(); ++l) ASSERT_LE(load[l], c.capacities[l] * kFullRate) << "seed " << seed;
    for (std::size_t f = 0; f < got.size(); ++f) {
      bool held = got[f] == c.flows[f].limit;
      for (const LinkUse& u : c.flows[f].uses) {
        held |= fastest[u.link] == got[f] && load[u.link] + weight[u.link] > c.capacities[u.link] * kFullRate;
      }
      ASSERT_TRUE(held) << "seed " << seed << " flow " << f;
    }
  }
}

}  // namespace
}  // namespace orrery
