#pragma once

#include <chrono>
#include <cstdint>
#include <queue>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/engine/heap.h"

// The hold model (Jones, An empirical comparison of priority-queue and event-set implementations, CACM 1986): each
// operation removes the first event of a queue and inserts one at a random later time. The simulation engine's rate is
// compared with the rate of these operations.
namespace orrery::bench {

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
class HoldLoop {
 public:
  explicit HoldLoop(std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) queue_.push({delay(), static_cast<std::uint32_t>(i)});
  }
  void next() {
    const TimedId first = queue_.top();
    benchmark::DoNotOptimize(queue_.hold({first.time + delay(), first.id}));
  }

 private:
  Picoseconds delay() {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<Picoseconds>(random_ >> 40);
  }

  Queue queue_;
  std::uint64_t random_ = 1;
};

template <class Queue>
double hold_seconds(std::size_t size, std::size_t events) {
  HoldLoop<Queue> loop(size);
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < events; ++i) loop.next();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace orrery::bench
