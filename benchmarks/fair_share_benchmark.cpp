#include "sim/engine/fair_share.h"

#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

namespace orrery {
namespace {

// Measures the fair sharing of 64 links among state.range(0) flows, each of which uses state.range(1) links drawn at
// random. Every round ends one flow and begins another, and updates the rates of all flows after each of the two
// events.
void fair_share_events(benchmark::State& state) {
  constexpr std::uint64_t kLinks = 64;
  constexpr std::int64_t kCapacity = 50'000'000;  // capacity of a link: a 400 Gb/s NIC, in kB/s
  FairShare share;
  for (std::uint64_t i = 0; i < kLinks; ++i) share.add_link(kCapacity);
  std::uint64_t random = 1;
  const auto next = [&] { return (random = random * 6364136223846793005ULL + 1442695040888963407ULL) >> 33; };
  const auto spread = static_cast<std::uint64_t>(state.range(1));
  const auto add = [&](std::uint64_t link) {
    LinkUse uses[FairShare::kMaxUses];
    for (std::uint64_t i = 0; i < spread; ++i) {
      uses[i] = {static_cast<LinkId>((link + (i ? 1 + next() % (kLinks - 1) : 0)) % kLinks), kCapacity * 95 / 100};
    }
    return share.add_flow({uses, spread});
  };
  struct Flow {
    FlowId id;
    std::uint64_t link;
  };
  std::vector<Flow> flows;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    const std::uint64_t link = static_cast<std::uint64_t>(i) % kLinks;
    flows.push_back({add(link), link});
  }
  share.update();
  std::size_t changed = 0;
  for (auto _ : state) {
    Flow& flow = flows[next() % flows.size()];
    share.remove_flow(flow.id);
    changed += share.update().links.size();
    flow.id = add(flow.link);
    changed += share.update().links.size();
  }
  const auto events = static_cast<double>(2 * state.iterations());
  state.counters["events"] = benchmark::Counter(events, benchmark::Counter::kIsRate);
  state.counters["levels/event"] = static_cast<double>(changed) / events;
}
BENCHMARK(fair_share_events)
    ->ArgNames({"flows", "links"})
    ->Args({128, 1})  // this and the next cases: 2, 3, 4 and 8 flows on each NIC
    ->Args({192, 1})
    ->Args({256, 1})
    ->Args({512, 1})
    ->Args({32, 2})    // flows of two links each, few of which share a link
    ->Args({512, 2});  // flows of two links each, all connected by shared links

// An all-to-all among 64 NICs, with eight flows per NIC, each over the links of sender and receiver: all 512 flows
// begin at one time and end at another, with one update of the rates each time.
void fair_share_all_to_all(benchmark::State& state) {
  constexpr LinkId kNics = 64;
  constexpr std::int64_t kCapacity = 50'000'000;
  FairShare share;
  for (LinkId i = 0; i < 2 * kNics; ++i) share.add_link(kCapacity);
  std::vector<FlowId> flows;
  std::int64_t events = 0;
  for (auto _ : state) {
    for (LinkId from = 0; from < kNics; ++from) {
      for (LinkId hop = 1; hop <= 8; ++hop) {
        const LinkUse uses[] = {{from, kCapacity}, {kNics + (from + hop) % kNics, kCapacity}};
        flows.push_back(share.add_flow(uses));
      }
    }
    benchmark::DoNotOptimize(share.update().links.size());
    events += static_cast<std::int64_t>(2 * flows.size());
    for (; !flows.empty(); flows.pop_back()) share.remove_flow(flows.back());
    benchmark::DoNotOptimize(share.update().links.size());
  }
  state.counters["events"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK(fair_share_all_to_all);

}  // namespace
}  // namespace orrery
