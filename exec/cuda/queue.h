#pragma once

#include <deque>
#include <vector>

#include "exec/cuda/call.h"
#include "exec/cuda/state.h"
#include "exec/host/task_queue.h"

namespace orrery::cuda {

// The marks of one rank: a CUDA event for the end of every task, in as many sets as there are steps, so that times are
// read only when the run is over; beyond a limit on the number of events, sets are read and used again between steps.
class Marks {
 public:
  Marks(TaskId tasks, std::int64_t steps);

  // Called when all earlier work has ended. Measures when, on the host's clock, the device reached the set's base
  // event.
  void begin_step(cudaStream_t stream);
  cudaEvent_t of(TaskId task) const { return sets_[set_].ends[task].get(); }
  std::vector<std::vector<Picoseconds>> ends();
  Picoseconds uncertainty() const { return uncertainty_; }

 private:
  // Events of one step. The device reached event `base` at host time `begun`.
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
  std::vector<std::vector<Picoseconds>> ends_;  // end times of the steps whose events have been read
  Picoseconds uncertainty_ = 0;
};

// A queue that is a CUDA stream.
class CudaQueue final : public TaskQueue {
 public:
  CudaQueue(CudaState& state, Marks& marks) : state_(state), marks_(marks) {}
  ~CudaQueue() override { cudaStreamSynchronize(stream()); }  // enqueued host functions read this object

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
  std::vector<Memory> scratch_;  // the last buffer is current; enqueued work may still use the earlier ones
  std::vector<Memory> packing_;  // by transfer of the step
  std::size_t packed_ = 0;
  std::deque<HostTask> host_tasks_;  // host tasks of the current step
};

}  // namespace orrery::cuda
