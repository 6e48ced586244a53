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

// What kernels of one rank read and write beside their operands: the products' library, scratch memory, the rotary
// table, sums that grow over a step, and the texts and numbers on their way to and from the device. Everything is of
// the current GPU; only the compute lane's queue uses the scratch memory.
class CudaState {
 public:
  // workspace: scratch memory, as far as it reaches; where kernels need more, all of it is taken beside.
  CudaState(RunState& state, std::span<std::byte> workspace);

  // The sum of the step's losses begins at zero; the host's part of the step is over when it is read.
  void begin_step(cudaStream_t stream);
  void end_step();

  kernels::cuda::Products& products() { return products_; }
  kernels::cuda::Workspace workspace(std::int64_t bytes) const;
  kernels::cuda::DeviceRotaryTable rotary() const;
  double* loss() const { return reinterpret_cast<double*>(sums_.data()); }
  // Where a lane's squares are added up, and scratch memory for that.
  double* norm(LaneKind lane) const { return reinterpret_cast<double*>(norms_.at(lane).data()); }
  kernels::cuda::Workspace norm_workspace(LaneKind lane) const;
  // Where the host puts the ids of a task that loads some; of its own, so that the host may run ahead.
  std::int64_t* text(TaskId task) const;
  // Where numbers of the device come that a task of a host's lane reads.
  float* numbers(TaskId task) const;

  // A host's task has failed; check() throws it, on the thread that waits. Any thread may call them.
  void fail(std::exception_ptr error);
  void check() const;

  RunState& run;

 private:
  kernels::cuda::Products products_;
  std::span<std::byte> workspace_;
  void place_on_host();

  Memory own_workspace_, rotary_, sums_;
  std::map<LaneKind, Memory> norms_;
  Memory text_, numbers_;  // the host's
  std::map<TaskId, Bytes> text_at_, numbers_at_;
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

// Scratch memory that the tasks of a rank's plan need at most.
Bytes workspace_bytes(const Rank& rank);

}  // namespace orrery::cuda
