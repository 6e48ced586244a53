#include "sim/memory/allocator.h"

#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

namespace orrery {
namespace {

constexpr Bytes kMiB = 1 << 20;

// Replays the allocations of a training step: the forward pass allocates the activations of each layer, the backward
// pass frees them in reverse order, and temporary buffers come and go in between. state.range(0) is the number of
// layers; state.range(1) says whether the allocator uses expandable segments.
void allocator_training_step(benchmark::State& state) {
  const auto layers = state.range(0);
  const Bytes kept[] = {32 * kMiB, 96 * kMiB, 32 * kMiB, 4 * kMiB, 128 * kMiB, 600'000};
  CachingAllocator allocator({400LL << 30, state.range(1) != 0});
  std::vector<BlockId> stack;
  std::int64_t pairs = 0;
  for (auto _ : state) {
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      for (const Bytes size : kept) {
        const BlockId temporary = *allocator.malloc(size / 2 + 1000, 0);
        stack.push_back(*allocator.malloc(size, 0));
        allocator.free(temporary);
        pairs += 2;
      }
    }
    for (; !stack.empty(); stack.pop_back()) {
      const BlockId temporary = *allocator.malloc(allocator.size(stack.back()) / 3, 0);
      allocator.free(stack.back());
      allocator.free(temporary);
      ++pairs;
    }
  }
  state.counters["pair"] =
      benchmark::Counter(static_cast<double>(pairs), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(allocator_training_step)->ArgsProduct({{8, 80}, {0, 1}});

// Allocates and frees blocks of random sizes with random lifetimes on two streams. That leaves many free blocks of
// different sizes, the worst case for the allocator's search for a free block.
void allocator_random(benchmark::State& state) {
  CachingAllocator allocator({400LL << 30, state.range(1) != 0});
  std::vector<BlockId> live;
  std::uint64_t random = 1;
  const auto next = [&] { return (random = random * 6364136223846793005ULL + 1442695040888963407ULL) >> 33; };
  const auto draw = [&] { return *allocator.malloc(static_cast<Bytes>(next() % (16 * kMiB)) + 1, next() % 2 != 0); };
  for (std::int64_t i = 0; i < state.range(0); ++i) live.push_back(draw());
  for (auto _ : state) {
    BlockId& victim = live[next() % live.size()];
    allocator.free(victim);
    victim = draw();
  }
}
BENCHMARK(allocator_random)->ArgsProduct({{100, 1000, 10000}, {0, 1}});

}  // namespace
}  // namespace orrery
