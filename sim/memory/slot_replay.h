#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/memory/allocator.h"
#include "sim/memory/host_times.h"
#include "sim/memory/memory_curve.h"
#include "sim/memory/replay.h"
#include "sim/memory/replay_moments.h"

namespace orrery {

// Notes that replays make of the buffers of a plan. All classes of ranks use one object, as no two share a buffer.
struct PlanBuffers {
  static constexpr int kNotHeld = -1;

  // One buffer, and the block of memory that it lies in.
  struct Held {
    BlockId block = 0;
    int stream = kNotHeld;  // stream on which the buffer was allocated; kNotHeld: the buffer is not allocated
    // end time of the last collective that used the buffer, before which it is not freed; 0 if collectives do not keep
    // it
    Picoseconds used_until = 0;
    // that collective, counted from the first task of the class of ranks, and the step of the replay in which it ended
    TaskId used_by = kNone;
    int used_in = 0;
  };

  explicit PlanBuffers(const Plan& plan) : held(plan.buffers), alive(plan.buffers) {}

  std::vector<Held> held;
  std::vector<char> alive;  // whether largest_alive() has counted the buffer as alive
};

// Replays the allocations of one class of ranks, that of `host`, through the caching allocator. frames: the frames of
// the class. curve: the memory curve to fill, or nullptr. moments: is told what other classes of ranks need to share
// the replay; or nullptr.
SlotMemory replay_slot(const Plan& plan, const Trace& trace, const MemoryOptions& options,
                       const std::vector<std::uint32_t>& frames, const HostTimes& host, PlanBuffers& buffers,
                       MemoryCurve* curve, ReplayMoments* moments);

}  // namespace orrery
