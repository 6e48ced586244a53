#pragma once

// A made-up machine: every kind of op that a plan has, at 10 GFLOP/s or 5 GB/s, and transfers at 1 GB/s.

#include <map>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "sim/cost/costs.h"

namespace orrery {

inline Profile cpu_profile(const Plan& plan) {
  Profile p;
  p.name = "made up";
  p.memory_bytes = Bytes{1} << 40;
  p.fingerprint = {{"library", "none"}, {"link", "air"}};
  std::map<std::string, OpTable> ops;
  for (const Op& op : plan.ops) {
    const WorkShape shape = shape_of(op.work, plan.element_bytes);
    if (shape.amount <= 0) continue;
    const double rate = shape.kind.starts_with("gemm") || shape.kind.starts_with("attention") ? 10e9 : 5e9;
    ops[shape.kind].kind = shape.kind;
    ops[shape.kind].samples.push_back({shape.sizes, shape.amount, shape.amount / rate, 0, 10});
  }
  for (const auto& [kind, table] : ops) p.measured.ops.push_back(table);
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "message"})
    for (const std::int64_t ranks : {2, 4})
      p.measured.transfers.push_back({kind, ranks, {{4, 10e-6}, {1'000'000, 1010e-6}}});
  return p;
}

}  // namespace orrery
