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

// The device that executes one rank: memory, reading and writing it, and the lanes. CPU ranks and GPUs differ only
// here; which task is issued when, and which memory a buffer gets, is decided on the host and is the same for both
// (execute.h).
class RankDevice {
 public:
  virtual ~RankDevice() = default;

  virtual SegmentSource segments() = 0;
  // Source of host memory for buffers that are offloaded from the device.
  virtual SegmentSource host_memory() { return host_segments(); }
  // Bytes of the caching allocator's memory that kernels keep for themselves (Buffers::workspace).
  virtual Bytes workspace() const { return 0; }
  // The next three have ended when they return; the lanes must be idle during the calls.
  virtual void clear(std::span<std::byte> bytes) = 0;
  virtual void set_initial(const InitialRun& run) = 0;
  virtual void read(std::byte* to, const std::byte* from, std::size_t bytes) = 0;  // copies to host memory

  // Runs a task at once, while the lanes are idle: used to redo a wrong optimizer update, which GPU ranks refuse.
  virtual void run(RunState&, const Launch&) { throw Error("the device rolls no update back", 1); }

  // `state` must outlive the lanes, which read its step number and leave the step's loss there. steps: number of steps
  // of the whole run.
  virtual std::unique_ptr<Lanes> lanes(RunState& state, std::span<std::byte> workspace, Watcher watcher,
                                       std::int64_t steps) = 0;

  // Fills in capacity and peak_device when the run has ended. use: bytes counted by the rank's caching allocator.
  virtual void count(const MemoryUse& use, MeasuredMemory& memory) = 0;
};

}  // namespace orrery
