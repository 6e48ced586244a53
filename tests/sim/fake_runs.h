#pragma once

// Synthetic measurements: the files that the ranks of a plan would have written if every step had gone as simulated.

#include <cstdint>
#include <vector>

#include "models/plan/hash.h"
#include "models/plan/plan.h"
#include "models/plan/runtime_sizes.h"
#include "models/plan/unfold.h"
#include "models/trace/trace_file.h"
#include "sim/engine/simulate.h"
#include "tests/sim/small_plans.h"

namespace orrery {

// The runtime sizes that a rank would have noted if they were those that the plan assumes.
inline std::vector<std::int64_t> planned_sizes(const Plan& unfolded, const RankClass& slot) {
  std::vector<std::int64_t> sizes;
  const std::vector<std::size_t> counts = counted_sizes(unfolded);
  for (std::size_t f = 0; f < counts.size(); ++f) {
    const Frame& frame = unfolded.frames[f];
    if (&unfolded.classes[frame.slot] != &slot) continue;
    for (std::size_t i = 0; i < counts[f]; ++i)
      sizes.push_back(unfolded.blocks[frame.block].runtime_sizes[i].predicted);
  }
  return sizes;
}

// Ranks whose clocks are off by 1000 s times their number; step k takes k further microseconds before it begins.
inline std::vector<RankRun> runs_of(const Plan& unfolded, const Trace& trace, const std::string& hash,
                                    std::size_t steps) {
  constexpr Picoseconds kOff = 1'000'000'000'000'000, kLater = 1'000'000;
  std::vector<RankRun> runs;
  for (const RankClass& slot : unfolded.classes) {
    RankRun run{.plan_hash = hash, .rank = slot.representative, .ranks = unfolded.ranks, .device = "fake"};
    run.library = "none";
    run.link = "air";
    const std::vector<std::int64_t> sizes = planned_sizes(unfolded, slot);
    run.clock_offset = -kOff * slot.representative;
    run.clock_uncertainty = 10 * slot.representative;
    Picoseconds begin = 0;
    for (std::size_t k = 0; k < steps; ++k) {
      begin += static_cast<Picoseconds>(k) * kLater;
      const Picoseconds at = begin - run.clock_offset;
      MeasuredStep& step = run.steps.emplace_back();
      step.begin = at;
      step.sizes = sizes;
      for (TaskId t = slot.begin; t < slot.end; ++t) {
        const Span& s = trace.spans[t];
        step.spans.push_back({s.issued + at, s.entered + at, s.ended + at});
        step.end = std::max(step.end, s.ended + at);
      }
      run.losses.push_back(4.0 - static_cast<double>(k) + static_cast<double>(slot.representative));
      begin += trace.step_time;
    }
    run.memory = {.capacity = 1 << 30, .first_step_peak = 900, .peak = 1000 + slot.representative};
    run.memory.peak_reserved = run.memory.peak_device = 2048;
    run.memory.tier_peak[index_of(MemoryTier::host)] = 5000;
    run.memory.peak_task = 1;
    run.memory.at_peak[0] = run.memory.peak;
    runs.push_back(run);
  }
  return runs;
}

inline std::vector<RankRun> fake_runs(const Plan& folded, std::size_t steps) {
  const Plan unfolded = unfold(folded);
  return runs_of(unfolded, simulate(unfolded, random_timing(unfolded, 7, 1000)), plan_hash(folded), steps);
}

}  // namespace orrery
