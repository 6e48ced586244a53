#pragma once

#include <cstdint>
#include <memory>

#include "exec/host/initial.h"
#include "exec/host/lanes.h"
#include "exec/host/run_state.h"
#include "exec/memory/caching_memory.h"
#include "models/base/error.h"
#include "models/trace/trace_file.h"

namespace orrery {

// What executes one rank: its memory, the way into and out of it, and its lanes. All that differs between a CPU rank
// and a GPU; what is issued when, and which memory a buffer gets, is the host's and the same for all (execute.h).
class RankDevice {
 public:
  virtual ~RankDevice() = default;

  virtual SegmentSource segments() = 0;
  // Memory of the host that lies beside the device's.
  virtual SegmentSource host_memory() { return host_segments(); }
  // Of the caching allocator's memory, what kernels keep for themselves (Buffers::workspace).
  virtual Bytes workspace() const { return 0; }
  // These have ended when they return; lanes stand still meanwhile.
  virtual void clear(std::span<std::byte> bytes) = 0;
  virtual void set_initial(const InitialRun& run) = 0;
  virtual void read(std::byte* to, const std::byte* from, std::size_t bytes) = 0;  // to the host

  // Runs a task at once, while lanes stand still: updates that are set right, which GPU ranks refuse.
  virtual void run(RunState&, const Launch&) { throw Error("the device sets no update right", 1); }

  // state outlives the lanes, which read its step and leave the step's loss there. steps: of the whole run.
  virtual std::unique_ptr<Lanes> lanes(RunState& state, std::span<std::byte> workspace, Watcher watcher,
                                       std::int64_t steps) = 0;

  // capacity and peak_device, when the run has ended. use: of the rank's caching allocator.
  virtual void count(const MemoryUse& use, MeasuredMemory& memory) = 0;
};

}  // namespace orrery
