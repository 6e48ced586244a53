#include "exec/cuda/device.h"

#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace orrery::cuda {
namespace {

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string nccl_text() {
  int version = 0;
  ORRERY_CHECK_NCCL(ncclGetVersion(&version));
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string cublaslt_text() {
  const std::size_t version = cublasLtGetVersion();  // the cuBLASLt version as one number: 130002 is 13.0.2
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace

GpuCount count_gpus() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) return {0, cudaGetErrorString(code)};
  return {count, count > 0 ? "" : "the driver shows none"};
}

void use_gpu(int number) { ORRERY_CHECK_CUDA(cudaSetDevice(number)); }

std::string gpu_name(int number) {
  cudaDeviceProp properties{};
  ORRERY_CHECK_CUDA(cudaGetDeviceProperties(&properties, number));
  return properties.name;
}

std::vector<std::pair<std::string, std::string>> gpu_fingerprint(int number) {
  int driver = 0, runtime = 0, sms = 0;
  ORRERY_CHECK_CUDA(cudaDriverGetVersion(&driver));
  ORRERY_CHECK_CUDA(cudaRuntimeGetVersion(&runtime));
  ORRERY_CHECK_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, number));
  return {{"cublasLt", cublaslt_text()},
          {"device", gpu_name(number)},
          {"driver", version_text(driver)},
          {"multiprocessors", fmt::format("{}", sms)},
          {"nccl", nccl_text()},
          {"runtime", version_text(runtime)}};
}

void SharedGpu::add(Bytes bytes) { segments_ += bytes; }

Bytes SharedGpu::beside_segments() {
  std::size_t left = 0, all = 0;
  ORRERY_CHECK_CUDA(cudaMemGetInfo(&left, &all));
  const Bytes beside = static_cast<Bytes>(all - left) - segments_.load();
  Bytes most = most_beside_.load();
  while (beside > most && !most_beside_.compare_exchange_weak(most, beside)) {
  }
  return most_beside_;
}

Bytes SharedGpu::capacity() const {
  std::size_t left = 0, all = 0;
  ORRERY_CHECK_CUDA(cudaMemGetInfo(&left, &all));
  return static_cast<Bytes>(all);
}

CudaDevice::~CudaDevice() {
  cudaDeviceSynchronize();  // the device may still use memory that the destructors of the members free
}

SegmentSource CudaDevice::segments() {
  return {[this](Bytes bytes) -> std::byte* {
            void* at = nullptr;
            const cudaError_t code = cudaMalloc(&at, static_cast<std::size_t>(bytes));
            if (code == cudaErrorMemoryAllocation) {
              cudaGetLastError();  // clears this thread's last CUDA error, so that the next call does not report it
              return nullptr;
            }
            check_cuda(code, "cudaMalloc(&at, bytes)");
            gpu_.add(bytes);
            return static_cast<std::byte*>(at);
          },
          [this](std::byte* at, Bytes bytes) {
            cudaFree(at);
            gpu_.add(-bytes);
          }};
}

// Returns a source of page-locked host memory, because only memcpys to or from such memory run at the same time as
// other work of the device.
SegmentSource CudaDevice::host_memory() {
  return {[](Bytes bytes) -> std::byte* {
            void* at = nullptr;
            const cudaError_t code = cudaMallocHost(&at, static_cast<std::size_t>(bytes));
            if (code == cudaErrorMemoryAllocation) {
              cudaGetLastError();  // clears this thread's last CUDA error, so that the next call does not report it
              return nullptr;
            }
            check_cuda(code, "cudaMallocHost(&at, bytes)");
            return static_cast<std::byte*>(at);
          },
          [](std::byte* at, Bytes) { cudaFreeHost(at); }};
}

// Returns the bytes of the kernels' workspace, as given by the spec's software section. If kernels need more, CudaState
// allocates it outside the caching allocator.
Bytes CudaDevice::workspace() const { return static_cast<Bytes>(rank_.spec.software.memory.workspace_MiB * (1 << 20)); }

void CudaDevice::clear(std::span<std::byte> bytes) {
  ORRERY_CHECK_CUDA(cudaMemset(bytes.data(), 0, bytes.size()));
  ORRERY_CHECK_CUDA(cudaDeviceSynchronize());
}

void CudaDevice::set_initial(const InitialRun& run) {
  initial_on_cuda(run, nullptr);
  ORRERY_CHECK_CUDA(cudaDeviceSynchronize());
}

void CudaDevice::read(std::byte* to, const std::byte* from, std::size_t bytes) {
  ORRERY_CHECK_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

std::unique_ptr<Lanes> CudaDevice::lanes(RunState& state, std::span<std::byte> workspace, Watcher watcher,
                                         std::int64_t steps) {
  state_ = std::make_unique<CudaState>(state, workspace);
  marks_ = std::make_unique<Marks>(rank_.plan.task_count(), steps, mark_every_);
  return std::make_unique<QueueLanes>(rank_, *this, transport_, std::move(watcher), one_queue_);
}

std::unique_ptr<TaskQueue> CudaDevice::queue() {
  auto made = std::make_unique<CudaQueue>(*state_, *marks_);
  queues_.push_back(made.get());
  return made;
}

// Queues are created in the order in which a plan's tasks first use their lanes. Every plan's first task runs on the
// compute lane, so queues_.front() is the CUDA stream of that lane.
void CudaDevice::begin_step() {
  for (CudaQueue* q : queues_) q->begin_step();
  state_->begin_step(queues_.front()->stream());
  marks_->begin_step(queues_.front()->stream());
}

void CudaDevice::end_step() {
  state_->end_step();
  // The memory in use outside the ranks' segments is measured only once, because the query is slow, and after a step,
  // because CUDA's libraries have then allocated their memory.
  if (!std::exchange(seen_, true)) gpu_.beside_segments();
}

bool CudaDevice::has_ended(TaskId task) {
  const cudaError_t code = cudaEventQuery(marks_->of(task));
  state_->check();  // throws if an earlier task on the host has failed
  if (code == cudaErrorNotReady) {
    cudaGetLastError();  // clears cudaErrorNotReady, which the check after the next launch would otherwise report
    return false;
  }
  check_cuda(code, "cudaEventQuery(marks_->of(task))");
  return true;
}

std::vector<std::vector<Picoseconds>> CudaDevice::ends() {
  uncertainty_ = marks_->uncertainty();
  return marks_->ends();
}

void CudaDevice::count(const MemoryUse& use, MeasuredMemory& memory) {
  memory.capacity = gpu_.capacity();
  memory.peak_device = use.peak_reserved + gpu_.beside_segments();
}

}  // namespace orrery::cuda
