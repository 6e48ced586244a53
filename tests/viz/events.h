#pragma once

#include <algorithm>
#include <string>

#include "viz/timeline/timeline_builder.h"

namespace orrery {

// One rank with a lane that computes and one that communicates, times in microseconds of picoseconds:
//   compute  forward 0-10, forward 10-20, backward 30-50
//   tensor   gather 15-25 (hidden until 20), reduce 50-60 (exposed)
inline Timeline two_lanes() {
  constexpr Picoseconds us = 1'000'000;
  TimelineBuilder b;
  Process p;
  p.name = "rank 0";
  p.rank = 0;
  p.counters.push_back({"memory", {"parameters", "activations"}, {0, 20 * us, 40 * us}, {4, 0, 4, 6, 4, 2}});
  b.add_process(p);
  const auto compute = b.add_thread(0, "compute", 0), tensor = b.add_thread(0, "tensor", 1);
  const auto forward = b.label("qkv", Kind::forward), backward = b.label("qkv gradient", Kind::backward);
  const auto gather = b.label("gather", Kind::tensor);
  b.add({30 * us, 50 * us, compute, backward, 0}, {0, 3, 0});
  b.add({0, 10 * us, compute, forward, 0}, {0, 3, 0});
  b.add({10 * us, 20 * us, compute, forward, 0}, {1, 3, 0});
  b.add({15 * us, 25 * us, tensor, gather, 0}, {0, 3, 0});
  b.add({50 * us, 60 * us, tensor, gather, 0}, {1, 3, 0});
  return b.finish(0);
}

// Two stages, eight micro-batches, 1F1B: forward 10 us, backward 20 us in four events each; sends on lanes of their
// own, memory that grows by forward and shrinks by backward. factor: of all durations.
inline Timeline made_pipeline(Picoseconds factor = 1) {
  const Picoseconds us = 1'000'000 * factor;
  constexpr int kMicroBatches = 8;
  TimelineBuilder b;
  const auto forward = b.label("mlp up", Kind::forward), backward = b.label("mlp up gradient", Kind::backward);
  const auto again = b.label("norm", Kind::recompute), reduce = b.label("reduce gradients", Kind::data);
  const auto send = b.label("send", Kind::pipeline), wait = b.label("wait", Kind::wait);
  const auto update = b.label("update", Kind::optimizer), gather = b.label("gather", Kind::tensor);
  std::uint32_t compute[2], tensor[2], transfer[2];
  for (std::uint32_t s = 0; s < 2; ++s) {
    Process p;
    p.name = "stage " + std::to_string(s);
    p.rank = s;
    p.order = s;
    p.coordinates[2] = s;
    p.capacity = 100'000'000'000;
    p.reserved = 70'000'000'000;
    p.counters.push_back({"memory", {"parameters", "gradients", "optimizer", "activations"}, {}, {}});
    b.add_process(p);
    compute[s] = b.add_thread(s, "compute", 0);
    tensor[s] = b.add_thread(s, "tensor", 1);
    transfer[s] = b.add_thread(s, s == 0 ? "send next" : "receive previous", 2);
  }
  const auto work = [&](std::uint32_t s, Picoseconds at, Picoseconds length, bool back, int micro_batch) {
    for (int i = 0; i < 4; ++i) {
      const Picoseconds from = at + length * i / 4, to = at + length * (i + 1) / 4;
      b.add({from, to - us / 2, compute[s], back ? (i == 0 ? again : backward) : forward, 0},
            {micro_batch, static_cast<std::int16_t>(i), 0});
      b.add({to - us, to, tensor[s], gather, 0}, {micro_batch, static_cast<std::int16_t>(i), 0});
    }
    Counter& memory = b.process(s).counters[0];
    const double held = memory.times.empty() ? 0 : memory.values.back();
    memory.times.push_back(at + length);
    for (const double v : {8e9, 16e9, 24e9, std::max(0.0, held + (back ? -6e9 : 6e9))}) memory.values.push_back(v);
  };
  for (int m = 0; m < kMicroBatches; ++m) {
    const Picoseconds at = 12 * us + m * 30 * us;
    work(0, m < 2 ? m * 10 * us : at - 16 * us, 10 * us, false, m);
    work(1, at, 10 * us, false, m);
    work(1, at + 10 * us, 20 * us, true, m);
    work(0, at + 32 * us, m + 1 < kMicroBatches ? 10 * us : 20 * us, true, m);
    b.add({at - 8 * us, at - 2 * us, transfer[1], wait, 0}, {m, -1, 0});
    b.add({at - 2 * us, at, transfer[0], send, 0}, {m, -1, 0});
    b.add({at - 2 * us, at, transfer[1], send, 0}, {m, -1, 0});
    b.add_arrow({transfer[0], transfer[1], at - 2 * us, at});
  }
  b.add({280 * us, 290 * us, tensor[0], reduce, 0});
  b.add({290 * us, 295 * us, compute[0], update, 0});
  b.timeline().title = "made pipeline";
  b.timeline().source = "made up";
  return b.finish(0);
}

// A generated text on two stages: a prefill of 40 us, then eight passes of one token, 10 us each, with a sum over the
// tensor ranks after each; keys and values that grow.
inline Timeline made_generation() {
  constexpr Picoseconds us = 1'000'000;
  constexpr int kPasses = 9;
  TimelineBuilder b;
  b.timeline().phases = {"prefill", "decode"};
  for (int i = 0; i < kPasses; ++i)
    b.timeline().pass_of_batch.push_back(i == 0 ? "prefill" : "decode " + std::to_string(i));
  for (std::uint32_t s = 0; s < 2; ++s) {
    Process p;
    p.name = "stage " + std::to_string(s);
    p.rank = s;
    p.order = s;
    p.capacity = 80'000'000'000;
    p.counters.push_back({"memory", {"parameters", "activations", "buffers"}, {}, {}});
    p.counters.push_back({kCacheCounter, {"in use"}, {}, {}});
    b.add_process(p);
    const auto compute = b.add_thread(s, "compute", 0), tensor = b.add_thread(s, "tensor", 1);
    for (int i = 0; i < kPasses; ++i) {
      const std::int8_t phase = i == 0 ? 0 : 1;
      const Picoseconds begin = (i == 0 ? 0 : 44 + 12 * (i - 1)) * us + s * us, length = (i == 0 ? 40 : 10) * us;
      const auto attention = b.label("attention", Kind::forward, KernelClass::attention, phase);
      const auto mlp = b.label("mlp up", Kind::forward, KernelClass::gemm, phase);
      const auto sum = b.label("mlp down reduce", Kind::tensor, KernelClass::collective, phase);
      b.add({begin, begin + length / 2, compute, attention, 0}, {i, 0, 0});
      b.add({begin + length / 2, begin + length, compute, mlp, 0}, {i, 0, 0});
      b.add({begin + length - us, begin + length + us, tensor, sum, 0}, {i, 0, 0});
      Counter &memory = b.process(s).counters[0], &cache = b.process(s).counters[1];
      for (Counter* c : {&memory, &cache}) c->times.push_back(begin);
      for (const double v : {30e9, i == 0 ? 12e9 : 2e9, 20e9}) memory.values.push_back(v);
      cache.values.push_back(16e9 + 0.5e9 * i);
    }
  }
  b.timeline().title = "made text";
  b.timeline().source = "made up";
  return b.finish(0);
}

}  // namespace orrery
