#pragma once

#include <deque>
#include <vector>

#include "exec/cuda/call.h"
#include "exec/cuda/state.h"
#include "exec/host/task_queue.h"

namespace orrery::cuda {

// The marks of one rank: a CUDA event for the end of every task. Every step whose times are wanted has a set of timed
// events of its own, which are read when the run is over; if that needs too many events, sets are read and used again
// between steps. Timed events keep the device from running small kernels back to back, so a run may time only each k-th
// step and use events without times in the other steps.
class Marks {
 public:
  // every: tasks are timed in one step out of this many, beginning with the first step.
  Marks(TaskId tasks, std::int64_t steps, std::int64_t every);

  // begin_step() is called when all work enqueued earlier has ended. The clocks of host and device are compared once
  // before the first step and once in ends(); the offset at times in between is interpolated, so that no step waits for
  // a comparison.
  void begin_step(cudaStream_t stream);
  cudaEvent_t of(TaskId task) const { return set_->ends[task].get(); }
  // Returns, for each step, the end times of all tasks on the host's clock; the list of a step whose tasks were not
  // timed is empty.
  std::vector<std::vector<Picoseconds>> ends();
  Picoseconds uncertainty() const { return uncertainty_; }

 private:
  // The CUDA events of one step. ends: for each task, its end. base: the begin of the step; begun: the time of `base`
  // on the device's clock. step: the number of the step.
  struct Set {
    std::vector<Event> ends;
    Event base{true};
    Picoseconds begun = 0;
    std::size_t step = 0;
    bool unread = false;  // whether the events were recorded but their times not read yet
  };
  // A moment that was measured on both clocks, the host's and the device's. Times on the device's clock count from the
  // first such moment.
  struct Anchor {
    Event event{true};
    Picoseconds host = 0, device = 0;
  };
  static Set make_set(TaskId tasks, bool timed);
  void synchronise(Anchor& anchor, cudaStream_t stream);
  void note_begin();
  void read(Set& set);

  std::int64_t every_;
  std::vector<Set> timed_;
  std::vector<Set> plain_;  // two sets of CUDA events without times, used in turn
  std::size_t next_timed_ = 0, next_plain_ = 0, steps_ = 0;
  Set* set_ = nullptr;      // the CUDA events of the current step
  Set* earlier_ = nullptr;  // the CUDA events of the step before
  cudaStream_t stream_ = nullptr;
  Anchor first_;
  std::vector<std::vector<Picoseconds>> ends_;  // for each step, the end times of tasks on the device's clock
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
  // Scratch memory. New work uses the last buffer; the earlier, smaller buffers are kept because work enqueued before
  // may still use them.
  std::vector<Memory> scratch_;
  std::vector<Memory> packing_;  // for each transfer of the step, memory in which its scattered elements are packed
  std::size_t packed_ = 0;
  // memory for packing that became too small for a larger transfer of a later step; freed at the end of the run
  std::vector<Memory> outgrown_;
  std::deque<HostTask> host_tasks_;  // tasks of the current step that the host computes
};

}  // namespace orrery::cuda
