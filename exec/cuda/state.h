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

// Data that the kernels of one rank use beside their operands: the handle of the product library, scratch memory, the
// rotary table, sums that grow over a step, and the texts and numbers on their way to and from the device. Everything
// belongs to the current GPU; only the compute lane's queue uses the scratch memory.
class CudaState {
 public:
  // workspace: memory for scratch; where kernels need more than that, a separate allocation replaces it.
  CudaState(RunState& state, std::span<std::byte> workspace);

  // begin_step() sets the sum of the step's losses to zero; end_step() reads it to the host.
  void begin_step(cudaStream_t stream);
  void end_step();

  kernels::cuda::Products& products() { return products_; }
  kernels::cuda::Workspace workspace(std::int64_t bytes) const;
  kernels::cuda::DeviceRotaryTable rotary() const;
  double* loss() const { return reinterpret_cast<double*>(sums_.data()); }
  // The device's sum of squares for the gradient norm on a lane, and the scratch memory for adding them up.
  double* norm(LaneKind lane) const { return reinterpret_cast<double*>(norms_.at(lane).data()); }
  kernels::cuda::Workspace norm_workspace(LaneKind lane) const;
  // Whether the host waits for every task and names the one that failed: the environment has ORRERY_CUDA_SYNC. Without
  // it a fault is told by whichever call comes next.
  bool waits_for_each_task() const { return waits_for_each_task_; }
  // Host memory for the token ids of a task that loads some; separate for each task, so that the host may run ahead.
  std::int64_t* text(TaskId task) const;
  // Host memory that receives the device's numbers for a task that the host runs.
  float* numbers(TaskId task) const;

  // fail() notes the error of a task that the host runs; check() throws it on the thread that waits. Any thread may
  // call them.
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
  Memory text_, numbers_;  // host memory
  std::map<TaskId, Bytes> text_at_, numbers_at_;
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

// Bytes of the largest scratch memory that a task of the rank's plan needs.
Bytes workspace_bytes(const Rank& rank);

}  // namespace orrery::cuda
