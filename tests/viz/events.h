#pragma once

#include <string>

#include "viz/timeline_builder.h"

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

}  // namespace orrery
