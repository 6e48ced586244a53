// The hold model (Jones, An empirical comparison of priority-queue and event-set implementations, CACM 1986): take the
// first event, put one back at a random later time. A bare queue's rate is what the engine's rate is compared with.

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/heap.h"

namespace orrery {
namespace {

struct Later {
  bool operator()(const TimedId& a, const TimedId& b) const { return b < a; }
};

struct StdQueue : std::priority_queue<TimedId, std::vector<TimedId>, Later> {
  TimedId hold(TimedId key) {
    pop();
    push(key);
    return key;
  }
};

struct PopAndPush : Heap {
  TimedId hold(TimedId key) {
    const TimedId first = pop();
    push(key);
    return first;
  }
};

struct ReplaceTop : Heap {
  TimedId hold(TimedId key) { return replace_top(key); }
};

template <class Queue>
void hold(benchmark::State& state) {
  Queue queue;
  std::uint64_t random = 1;
  const auto delay = [&] {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<Picoseconds>(random >> 40);
  };
  for (std::int64_t i = 0; i < state.range(0); ++i) queue.push({delay(), static_cast<std::uint32_t>(i)});
  for (auto _ : state) {
    const TimedId first = queue.top();
    benchmark::DoNotOptimize(queue.hold({first.time + delay(), first.id}));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(hold<StdQueue>)->RangeMultiplier(4)->Range(64, 65536);
BENCHMARK(hold<PopAndPush>)->RangeMultiplier(4)->Range(64, 65536);
BENCHMARK(hold<ReplaceTop>)->RangeMultiplier(4)->Range(64, 65536);

}  // namespace
}  // namespace orrery
