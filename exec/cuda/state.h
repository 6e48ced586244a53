#pragma once

#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "exec/cuda/handles.h"
#include "exec/host/run_state.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/rotary.h"
#include "kernels/cuda/tensor.h"

namespace orrery::cuda {

// Data that the kernels of one rank use besides their operands: the cuBLASLt handle, scratch memory, the rotary table,
// sums over a step, and host memory for token ids and scalars that are copied to and from the device. All of it belongs
// to the current GPU; only tasks of the compute lane use the scratch memory.
class CudaState {
 public:
  // workspace: scratch memory; if kernels need more, a separate allocation replaces it.
  CudaState(RunState& state, std::span<std::byte> workspace);

  // begin_step() sets the sum of the step's losses to zero; end_step() copies the sum to the host.
  void begin_step(cudaStream_t stream);
  void end_step();

  kernels::cuda::Products& products() { return products_; }
  kernels::cuda::Workspace workspace(std::int64_t bytes) const;
  kernels::cuda::DeviceRotaryTable rotary() const;
  double* loss() const { return reinterpret_cast<double*>(sums_.data()); }
  // Returns the address, on the device, of the sum of squares that the tasks of a lane (queue of tasks) compute for the
  // gradient norm. norm_workspace() returns the scratch memory for computing it.
  double* norm(LaneKind lane) const { return reinterpret_cast<double*>(norms_.at(lane).data()); }
  kernels::cuda::Workspace norm_workspace(LaneKind lane) const;
  // Returns whether the host waits for every task and names the task that failed: set by the environment variable
  // ORRERY_CUDA_SYNC. Otherwise a later CUDA call reports the failure.
  bool waits_for_each_task() const { return waits_for_each_task_; }
  // Returns host memory for the token ids that a task loads; separate for each task, so that the host may run ahead of
  // the device.
  std::int64_t* text(TaskId task) const;
  // Returns host memory to which scalars are copied from the device for a task that the host runs.
  float* numbers(TaskId task) const;

  // fail() stores the error of a task that the host ran; check() throws it on the thread that waits. Any thread may
  // call both.
  void fail(std::exception_ptr error);
  void check() const;

  RunState& run;

 private:
  kernels::cuda::Products products_;
  std::span<std::byte> workspace_;
  void place_on_host();

  bool waits_for_each_task_;
  Memory own_workspace_, rotary_, sums_;
  std::map<LaneKind, Memory> norms_;
  Memory text_, numbers_;  // host memory for token ids and for scalars
  std::map<TaskId, Bytes> text_at_, numbers_at_;
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

// Returns the bytes of scratch memory that the most demanding task of the rank's plan needs.
Bytes workspace_bytes(const Rank& rank);

}  // namespace orrery::cuda
