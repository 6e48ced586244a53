#pragma once

#include <deque>
#include <vector>

#include "exec/cuda/call.h"
#include "exec/cuda/state.h"
#include "exec/host/task_queue.h"

namespace orrery::cuda {

// The marks of one rank, which are CUDA events for the ends of tasks. There is a set of events for each step, so that
// times are read only when the run is over; if that would be too many events, sets are read between steps and used
// again.
class Marks {
 public:
  Marks(TaskId tasks, std::int64_t steps);

  // Called when all earlier work has ended. Measures the time on the host's clock at which the device reached the base
  // event of the step.
  void begin_step(cudaStream_t stream);
  cudaEvent_t of(TaskId task) const { return sets_[set_].ends[task].get(); }
  std::vector<std::vector<Picoseconds>> ends();
  Picoseconds uncertainty() const { return uncertainty_; }

 private:
  // Events of one step. The device reached event `bases[base]` at host time `begun`.
  struct Set {
    std::vector<Event> ends;
    std::vector<Event> bases;
    std::size_t base = 0;
    Picoseconds begun = 0;
    bool used = false;
  };
  void read(Set& set);

  std::vector<Set> sets_;
  std::size_t set_ = 0;
  // For each step whose events have been read, the end times of its tasks.
  std::vector<std::vector<Picoseconds>> ends_;
  Picoseconds uncertainty_ = 0;
};

// A CUDA stream as the queue of a lane.
class CudaQueue final : public TaskQueue {
 public:
  CudaQueue(CudaState& state, Marks& marks) : state_(state), marks_(marks) {}
  // Waits for the stream, because host functions that are still enqueued use this object.
  ~CudaQueue() override { cudaStreamSynchronize(stream()); }

  void after(MoveQueue& other) override;
  void copy(std::byte* to, const std::byte* from, Bytes bytes) override;
  void combine(Element element, Reduction reduction, const std::byte* from, std::byte* into,
               std::int64_t elements) override;
  std::byte* scratch(Bytes bytes) override;
  std::byte* packing(Bytes bytes) override;
  void begin(const Launch& launch) override;
  void clear(std::span<std::byte> bytes) override;
  void run(const Launch& launch) override;
  void mark_end(TaskId task) override;
  void wait_for(TaskId task) override;

  void begin_step();
  cudaStream_t stream() const { return stream_.get(); }

 private:
  CudaState& state_;
  Marks& marks_;
  Stream stream_;
  Event meeting_{false};
  // Scratch buffers: new work uses the last one, and enqueued work may still use the earlier ones.
  std::vector<Memory> scratch_;
  std::vector<Memory> packing_;  // for each transfer of the step, memory in which its scattered elements are packed
  std::size_t packed_ = 0;
  std::deque<HostTask> host_tasks_;  // tasks of the current step that the host computes
};

}  // namespace orrery::cuda
