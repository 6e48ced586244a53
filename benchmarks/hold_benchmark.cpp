// Measures the speed of bare event queues of several sizes with the hold model (see hold.h).
#include "benchmarks/hold.h"

namespace orrery {
namespace {

template <class Queue>
void hold(benchmark::State& state) {
  bench::HoldLoop<Queue> loop(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) loop.next();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(hold<bench::StdQueue>)->RangeMultiplier(4)->Range(64, 65536);
BENCHMARK(hold<bench::PopAndPush>)->RangeMultiplier(4)->Range(64, 65536);
BENCHMARK(hold<bench::ReplaceTop>)->RangeMultiplier(4)->Range(64, 65536);

}  // namespace
}  // namespace orrery
