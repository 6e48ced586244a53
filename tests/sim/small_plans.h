#pragma once

// Plans of a small model under strategies with different communication, and timings in which different things are late.

#include <cstdint>
#include <string>
#include <vector>

#include "models/load/load_spec.h"
#include "models/plan/plan.h"
#include "models/planner/make_plan.h"
#include "models/spec/spec.h"
#include "sim/engine/timing.h"
#include "tests/random_bits.h"

namespace orrery {

inline const std::vector<std::string>& small_strategies() {
  static const std::vector<std::string> strategies = {
      "{global_batch: 8}",
      "{tensor: 2, pipeline: 2, global_batch: 8}",
      "{tensor: 2, pipeline: 4, global_batch: 4, schedule: gpipe, overlap: {pipeline: false}}",
      "{pipeline: 2, virtual_stages: 2, schedule: interleaved, global_batch: 8, sharding: zero1}",
      "{pipeline: 4, global_batch: 8, sharding: zero1, overlap: {parameter_gather: false}}",
      "{sharding: fsdp, global_batch: 16, units_in_flight: 1}",
  };
  return strategies;
}

inline Plan small_plan(const std::string& strategy) {
  return make_plan(
      parse_spec("model: {name: small, layers: 8, hidden: 64, heads: 4, feed_forward: 256, vocab: 512,"
                 " tied_embeddings: true}\n"
                 "sequence: 128\ncluster: {node: dgx-a100, nodes: 1}\ngpus: 8\nstrategy: " +
                     strategy,
                 "small.yaml"));
}

// A number that depends on nothing but its two arguments.
inline std::uint64_t scrambled(std::uint64_t seed, std::uint64_t counter) {
  return test::random_bits(test::random_bits(seed + 1) + counter);
}

// Durations below 100 us, every eighth 0; launches below `issue`. No pressure.
inline Timing random_timing(const Plan& plan, std::uint64_t seed, Picoseconds issue) {
  Timing timing;
  for (std::uint32_t s = 0; s < plan.classes.size(); ++s) {
    timing.row_of_slot.push_back(s);
    timing.rows.emplace_back();
    for (std::uint32_t op = 0; op < plan.ops.size(); ++op) {
      const std::uint64_t x = scrambled(seed, s * plan.ops.size() + op);
      const std::uint64_t duration = x % 8 == 0 ? 0 : x / 8 % 100'000'000;
      const std::uint64_t launch = issue == 0 ? 0 : scrambled(x, 1) % static_cast<std::uint64_t>(issue);
      timing.rows.back().push_back({static_cast<Picoseconds>(duration), static_cast<Picoseconds>(launch)});
    }
  }
  return timing;
}

}  // namespace orrery
