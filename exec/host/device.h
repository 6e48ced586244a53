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

// The device that executes one rank: its memory, and its lanes (queues of tasks). CPU ranks and GPU ranks differ only
// in this class; the order in which tasks are issued, and the memory that each buffer gets, are decided on the host in
// the same way for both (execute.h).
class RankDevice {
 public:
  virtual ~RankDevice() = default;

  virtual SegmentSource segments() = 0;
  // Returns a source of host memory for buffers that are offloaded from the device.
  virtual SegmentSource host_memory() { return host_segments(); }
  // Returns the bytes of the workspace that kernels have in the caching allocator's memory during the complete run
  // (Buffers::workspace).
  virtual Bytes workspace() const { return 0; }
  // clear(), set_initial() and read() return only when their work on the device has ended; no task may be running
  // during the calls.
  virtual void clear(std::span<std::byte> bytes) = 0;
  virtual void set_initial(const InitialRun& run) = 0;
  virtual void read(std::byte* to, const std::byte* from, std::size_t bytes) = 0;  // copies device memory to the host

  // Runs one task and returns when it has ended; no other task may be running. It is used to redo a wrong optimizer
  // update (post-update validation), which GPU ranks do not support.
  virtual void run(RunState&, const Launch&) { throw Error("the device rolls no update back", 1); }

  // Creates the lanes (queues of tasks) of the rank. The lanes read the step number from `state`, store the step's loss
  // there, and must not outlive `state`. steps: number of steps of the run.
  virtual std::unique_ptr<Lanes> lanes(RunState& state, std::span<std::byte> workspace, Watcher watcher,
                                       std::int64_t steps) = 0;

  // Sets MeasuredMemory::capacity and peak_device after the run. use: bytes counted by the rank's caching allocator.
  virtual void count(const MemoryUse& use, MeasuredMemory& memory) = 0;
};

}  // namespace orrery
