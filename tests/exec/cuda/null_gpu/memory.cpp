// The runtime's memory: pages of the device that the host cannot touch, and page-locked pages of the host.
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

#include <fmt/format.h>

#include "tests/exec/cuda/null_gpu/machine.h"

namespace orrery::null_gpu {
namespace {

constexpr std::size_t kMemory = std::size_t{80} << 30;    // bytes of the device
constexpr std::size_t kContext = std::size_t{500} << 20;  // bytes that the driver keeps

using Allocations = std::map<const char*, std::size_t>;

bool within(const Allocations& all, const void* at, std::size_t bytes) {
  const auto* from = static_cast<const char*>(at);
  auto it = all.upper_bound(from);
  if (it == all.begin()) return false;
  --it;
  return from + bytes <= it->first + it->second;
}

// Without a lock or the heap: the thread may be anywhere.
void on_fault(int, siginfo_t* info, void*) {
  static constexpr char kOnDevice[] = "null GPU: the host touches device memory\n";
  if (info->si_code == SEGV_ACCERR) [[maybe_unused]]
    const auto n = ::write(2, kOnDevice, sizeof kOnDevice - 1);
  ::signal(SIGSEGV, SIG_DFL);  // on return the instruction faults again
}

void catch_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}

cudaError_t allocate(Allocations& all, void** at, std::size_t bytes, int protection) {
  void* made = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return error(cudaErrorMemoryAllocation);
  *at = made;
  all[static_cast<const char*>(made)] = bytes;
  return cudaSuccess;
}

// Freeing waits for all work, as the real one does.
cudaError_t give_back(Allocations& all, void* at, const char* function) {
  if (at == nullptr) return cudaSuccess;
  wait_until(everything());
  Gpu& g = gpu();
  const Lock lock(g.mutex);
  const auto it = all.find(static_cast<const char*>(at));
  if (it == all.end()) {
    complain(fmt::format("{} of what is no allocation", function));
    return error(cudaErrorInvalidValue);
  }
  if (&all == &g.device) g.used -= it->second;
  forget(at, it->second);
  ::munmap(at, it->second);
  all.erase(it);
  return cudaSuccess;
}

}  // namespace

bool on_device(const void* at, std::size_t bytes) { return within(gpu().device, at, bytes); }
bool is_pinned(const void* at, std::size_t bytes) { return within(gpu().pinned, at, bytes); }

}  // namespace orrery::null_gpu

using namespace orrery::null_gpu;

extern "C" {

cudaError_t cudaMalloc(void** at, std::size_t bytes) {
  if (fails("cudaMalloc")) return error(cudaErrorMemoryAllocation);
  Gpu& g = gpu();
  const Lock lock(g.mutex);
  static const bool caught = (catch_faults(), true);
  static_cast<void>(caught);
  *at = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (g.used + bytes > kMemory - kContext) return error(cudaErrorMemoryAllocation);
  g.used += bytes;
  return allocate(g.device, at, bytes, PROT_NONE);
}

cudaError_t cudaMallocHost(void** at, std::size_t bytes) {
  if (fails("cudaMallocHost")) return error(cudaErrorMemoryAllocation);
  const Lock lock(gpu().mutex);
  return allocate(gpu().pinned, at, bytes, PROT_READ | PROT_WRITE);
}

cudaError_t cudaFree(void* at) { return give_back(gpu().device, at, "cudaFree"); }
cudaError_t cudaFreeHost(void* at) { return give_back(gpu().pinned, at, "cudaFreeHost"); }

cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* all) {
  if (fails("cudaMemGetInfo")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  *all = kMemory;
  *left = kMemory - kContext - gpu().used;
  return cudaSuccess;
}
}
