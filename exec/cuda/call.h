#pragma once

#include "exec/cuda/state.h"
#include "exec/host/op_call.h"
#include "kernels/cuda/tensor.h"

namespace orrery::cuda {

namespace gpu = kernels::cuda;

inline gpu::Type type_of(Bytes width) { return width == 4 ? gpu::Type::fp32 : gpu::Type::bf16; }

// A task that is being enqueued on a stream, with its operands as the views that the kernels take.
struct CudaCall : OpCall {
  CudaCall(CudaState& s, const Launch& launch, cudaStream_t on)
      : OpCall(s.run, launch), gpu_state(s), task(launch.task), stream(on) {}

  // Activations have the plan's bytes per element (Plan::element_bytes); weights and their gradients have the bytes per
  // element of their buffer.
  gpu::Array activation(const Argument& a) const { return {a.data, type_of(rank.plan.element_bytes)}; }
  gpu::Matrix matrix(const Argument& a, std::int64_t rows, std::int64_t columns) const {
    return gpu::matrix(activation(a), rows, columns);
  }
  static gpu::Array weight(const Argument& a) { return {a.data, type_of(a.width)}; }
  static gpu::Matrix weight(const Argument& a, std::int64_t rows, std::int64_t columns) {
    return gpu::matrix(weight(a), rows, columns);
  }
  // Returns the part of a flat buffer that begins at element `first`.
  static gpu::Array flat(const Argument& a, std::int64_t first) { return {a.data + first * a.width, type_of(a.width)}; }
  static float* floats(const Argument& a, std::int64_t first = 0) { return reinterpret_cast<float*>(a.data) + first; }

  // Returns the gradient of the token-embedding table. If the modelled framework's autograd first makes a separate
  // dense gradient of the table, and adds it to the table's gradient later, returns that dense gradient.
  gpu::Array table_gradient() const { return gradients.empty() ? activation(updates[0]) : weight(gradients[0]); }

  gpu::Workspace workspace(std::int64_t bytes) const { return gpu_state.workspace(bytes); }

  CudaState& gpu_state;
  TaskId task;
  cudaStream_t stream;
};

// Enqueues the kernels of a task that transfers nothing between ranks.
void launch_on_cuda(CudaState& state, const Launch& launch, cudaStream_t stream);

// Returns whether the host runs the tasks of this lane: optimizer updates on the host, and reads and writes of disks.
inline bool runs_on_host(LaneKind lane) {
  return lane == LaneKind::cpu || lane == LaneKind::nvme_read || lane == LaneKind::nvme_write;
}

// A task that the host runs in a stream's order. The object lives from when the task is enqueued until the step is
// over. Scalars on the device that the task reads are copied to host memory first.
struct HostTask {
  CudaState& state;
  Launch launch;
};

// Enqueues a host task on a stream, after memcpys of the device scalars that it reads; `task` must stay at this address
// until the task has ended. A failure of the task is stored in the CudaState.
void enqueue_on_host(HostTask& task, cudaStream_t stream);

// Functions that enqueue ops that run once per step, defined in step.cpp.
void run_cast(const CudaCall& c, const Cast& work);
void run_accumulate(const CudaCall& c, const Accumulate& work);
void run_squared_norm(const CudaCall& c, const SquaredNorm& work);
void run_multiply(const CudaCall& c, const Multiply& work);
void run_update(const CudaCall& c, const Update& work);
// Functions that enqueue matrix products and attention, defined in products.cpp.
void run_product(const CudaCall& c, const Gemm& work);
void run_attention(const CudaCall& c, const FlashAttention& work);
void run_move_heads(const CudaCall& c, const MoveHeads& work);

}  // namespace orrery::cuda
