// This file runs tasks of the lanes that the host executes. They are enqueued as CUDA host functions, which run when
// their stream reaches them. CUDA may run the host functions of several streams one after the other.
#include <fmt/format.h>

#include "exec/cuda/call.h"
#include "exec/host/host_call.h"
#include "exec/host/place_copies.h"
#include "models/base/error.h"

namespace orrery::cuda {
namespace {

struct HostKernels {
  const CpuCall& c;

  void operator()(const Update& w) const { orrery::run_update(c, w); }
  void operator()(const Multiply& w) const { orrery::run_multiply(c, w); }
  void operator()(const PlaceCopy& w) const {
    for (const PlacedRun& run : runs_of(c, w)) move_on_host(run);
  }
  // An Exchange (an op that swaps the memory of two buffers) does nothing here: the thread that issues tasks has
  // swapped the addresses.
  void operator()(const Exchange&) const {}
  template <class Other>
  void operator()(const Other&) const {
    // The host runs the tasks of some lanes (queues of tasks); no plan puts an op of this type on such a lane.
    throw Error(fmt::format("{}: the host has no kernel for it", c.op.name), 1);
  }
};

void CUDART_CB run_host_task(void* data) {
  const HostTask& task = *static_cast<const HostTask*>(data);
  try {
    const CpuCall call(task.state.run, task.launch);
    std::visit(HostKernels{call}, call.op.work);
  } catch (...) {
    task.state.fail(std::current_exception());
  }
}

}  // namespace

void enqueue_on_host(HostTask& task, cudaStream_t stream) {
  float* number = task.state.numbers(task.launch.task);
  for (Argument& a : task.launch.arguments) {
    if (a.operand.scope != Scope::rank || a.operand.access != Access::read) continue;
    ORRERY_CHECK_CUDA(cudaMemcpyAsync(number, a.data, sizeof(float), cudaMemcpyDeviceToHost, stream));
    a.data = reinterpret_cast<std::byte*>(number++);
  }
  ORRERY_CHECK_CUDA(cudaLaunchHostFunc(stream, run_host_task, &task));
}

}  // namespace orrery::cuda
