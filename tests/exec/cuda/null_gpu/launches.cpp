// Kernels: nvcc's objects register them before main(), and launch them by the address of their host function.
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "exec/cuda/call.h"
#include "exec/cuda/observe.h"
#include "models/plan/plan.h"
#include "tests/exec/cuda/null_gpu/machine.h"

namespace orrery::null_gpu {
namespace {

constexpr double kKernel = 4e-6;  // seconds of a kernel
// CUDA C++ programming guide, table "Technical specifications per compute capability", 9.0.
constexpr std::int64_t kMostThreads = 1024, kMostDepth = 64, kMostBlocks = 2147483647, kMostRows = 65535;
constexpr std::int64_t kGranted = 48 << 10, kMostShared = 227 << 10;

struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local Configuration pushed;

std::string wrong_launch(dim3 grid, dim3 block, std::int64_t shared, std::int64_t granted) {
  const std::int64_t threads = std::int64_t{block.x} * block.y * block.z;
  if (threads < 1 || threads > kMostThreads || block.z > kMostDepth)
    return fmt::format("{} threads in a block", threads);
  const bool none = grid.x == 0 || grid.y == 0 || grid.z == 0;
  if (none || grid.x > kMostBlocks || grid.y > kMostRows || grid.z > kMostRows)
    return fmt::format("a grid of {} x {} x {} blocks", grid.x, grid.y, grid.z);
  if (shared > granted) return fmt::format("{} bytes of shared memory, {} are granted", shared, granted);
  return "";
}

std::string name_of(const Launch& launch, const Rank& rank) {
  const Plan& plan = rank.plan;
  const Frame& frame = plan.frames[plan.tasks[launch.task].frame];
  return fmt::format("rank {}'s {} of micro-batch {}", rank.number, plan.op_of(launch.task).name, frame.micro_batch);
}

void check_task_operand(Stream& stream, const std::string& name, std::span<const std::byte> bytes,
                        std::uintptr_t element, bool writes) {
  if (!on_device(bytes.data(), bytes.size()) && !is_pinned(bytes.data(), bytes.size()))
    complain(fmt::format("{}: an operand goes beyond an allocation", name));
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % element != 0)
    complain(fmt::format("{}: an operand is not aligned to its elements", name));
  access(stream, name, bytes.data(), bytes.size(), writes);
}

// The bytes of an operand that a task works on: all, but for an op that scales a part of the gradients.
std::span<const std::byte> bytes_of(const Op& op, const Argument& a) {
  const auto* part = std::get_if<Multiply>(&op.work);
  if (part == nullptr || part->factor == 0) return {a.data, static_cast<std::size_t>(a.bytes)};
  const std::int64_t first = a.operand.scope == Scope::rank ? 0 : part->first;
  return {a.data + first * part->width, static_cast<std::size_t>(part->elements * part->width)};
}

}  // namespace
}  // namespace orrery::null_gpu

using namespace orrery::null_gpu;

// The bytes that a task reads and writes, as its plan says; a kernel's arguments do not tell. Transfers and tasks that
// only copy tell more exactly by their copies, sums and NCCL calls.
extern "C" void orrery_observe_task(const orrery::cuda::ObservedTask& task) {
  const Lock lock(gpu().mutex);
  Stream* stream = stream_of(task.stream);
  if (stream == nullptr) return;
  enqueue(*stream, 0);
  const orrery::Op& op = task.rank.plan.op_of(task.launch.task);
  const bool copies = std::holds_alternative<orrery::PlaceCopy>(op.work) && !orrery::cuda::runs_on_host(op.lane);
  if (orrery::moves(op) || copies) return;
  const std::string name = name_of(task.launch, task.rank);
  for (const orrery::Argument& a : task.launch.arguments) {
    const bool writes = a.operand.access != orrery::Access::read;
    const std::span<const std::byte> bytes = bytes_of(op, a);
    if (a.disk != nullptr)
      access(*stream, name, reinterpret_cast<const void*>(a.at), bytes.size(), writes, a.disk);
    else if (a.data != nullptr)
      check_task_operand(*stream, name, bytes, static_cast<std::uintptr_t>(task.rank.plan.element_bytes), writes);
  }
}

extern "C" void orrery_observe_sum(const orrery::cuda::ObservedSum& sum) {
  const Lock lock(gpu().mutex);
  Stream* stream = stream_of(sum.stream);
  if (stream == nullptr) return;
  enqueue(*stream, 0);
  if (!on_device(sum.from, sum.bytes) || !on_device(sum.into, sum.bytes))
    complain("a sum goes beyond an allocation of the device");
  access(*stream, "a sum", sum.from, sum.bytes, false);
  access(*stream, "a sum", sum.into, sum.bytes, true);
}

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  gpu().kernels[host] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream) {
  pushed = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared = pushed.shared;
  *static_cast<cudaStream_t*>(stream) = pushed.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void**, std::size_t shared,
                               cudaStream_t handle) {
  if (fails("cudaLaunchKernel")) return error(cudaErrorUnknown);
  Gpu& g = gpu();
  const Lock lock(g.mutex);
  const auto known = g.kernels.find(kernel);
  if (known == g.kernels.end()) {
    complain("a launch of what is no kernel");
    return error(cudaErrorInvalidDeviceFunction);
  }
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return error(cudaErrorInvalidResourceHandle);
  if (last_error() != cudaSuccess) complain("a launch would report the error of an earlier call");
  const auto granted = g.shared.find(kernel);
  const std::string wrong = wrong_launch(grid, block, static_cast<std::int64_t>(shared),
                                         granted == g.shared.end() ? kGranted : granted->second);
  if (!wrong.empty()) {
    complain(fmt::format("launch of {}: {}", known->second, wrong));
    return error(cudaErrorInvalidConfiguration);
  }
  enqueue(*stream, kKernel);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (fails("cudaFuncSetAttribute")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value > kMostShared) {
    complain(fmt::format("cudaFuncSetAttribute asks for {} bytes of shared memory", value));
    return error(cudaErrorInvalidValue);
  }
  gpu().shared[kernel] = std::max<std::int64_t>(kGranted, value);
  return cudaSuccess;
}
}
