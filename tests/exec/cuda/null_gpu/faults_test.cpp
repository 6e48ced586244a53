// Each check of the null GPU, by a fault that is planted for it.
#include <atomic>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/cuda/handles.h"
#include "exec/cuda/initial.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/products.h"
#include "tests/exec/cuda/null_gpu/null_gpu.h"

namespace orrery {
namespace {

using cuda::Event;
using cuda::Memory;
using cuda::Stream;
using testing::HasSubstr;

constexpr std::size_t kBytes = 1 << 16;

// Exactly one complaint, once, which says so.
void expect_complaint(const std::string& part) {
  const std::vector<std::string> all = null_gpu::complaints();
  ASSERT_EQ(all.size(), 1U) << "expected: " << part << testing::PrintToString(all);
  EXPECT_THAT(all[0], HasSubstr(part));
}

struct Planted : testing::Test {
  Stream one, two;
  Memory a{Memory::Place::device, kBytes}, b{Memory::Place::device, kBytes}, host{Memory::Place::host, kBytes};

  void copy(const Memory& to, const Memory& from, const Stream& stream) const {
    ORRERY_CHECK_CUDA(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDefault, stream.get()));
  }
  static void clear(const Memory& memory, const Stream& stream) {
    ORRERY_CHECK_CUDA(cudaMemsetAsync(memory.data(), 0, kBytes, stream.get()));
  }
  static void synchronise() { ORRERY_CHECK_CUDA(cudaDeviceSynchronize()); }
  void TearDown() override { synchronise(); }
};

TEST_F(Planted, AccessesWithoutAnOrder) {
  clear(a, one);
  copy(b, a, two);
  expect_complaint("a copy from device to device reads what a clearing writes, and no event orders the two");
  clear(a, one);
  expect_complaint("a clearing writes what a copy from device to device reads");
  synchronise();
  clear(a, one);
  clear(a, two);
  expect_complaint("a clearing writes what a clearing writes");
}

// The check accepts accesses that are ordered by an event, a chain of events, a host that has waited, or one stream.
TEST_F(Planted, OrderedAccessesAreRight) {
  const Event first(false), second(false);
  clear(a, one);
  clear(a, one);
  ORRERY_CHECK_CUDA(cudaEventRecord(first.get(), one.get()));
  ORRERY_CHECK_CUDA(cudaStreamWaitEvent(two.get(), first.get(), 0));
  copy(b, a, two);
  ORRERY_CHECK_CUDA(cudaEventRecord(second.get(), two.get()));
  ORRERY_CHECK_CUDA(cudaStreamWaitEvent(one.get(), second.get(), 0));
  clear(b, one);
  ORRERY_CHECK_CUDA(cudaStreamSynchronize(one.get()));
  clear(a, two);
  clear(b, two);
  EXPECT_THAT(null_gpu::complaints(), testing::IsEmpty());
}

// An event orders only the work that was in its stream when it was recorded, not later work.
TEST_F(Planted, AccessBehindTheEventThatIsWaitedFor) {
  const Event event(false);
  ORRERY_CHECK_CUDA(cudaEventRecord(event.get(), one.get()));
  clear(a, one);
  ORRERY_CHECK_CUDA(cudaStreamWaitEvent(two.get(), event.get(), 0));
  copy(b, a, two);
  expect_complaint("reads what a clearing writes");
}

TEST_F(Planted, AccessAfterFree) {
  Memory gone(Memory::Place::device, kBytes);
  std::byte* const at = gone.data();
  gone = Memory();
  EXPECT_EQ(cudaMemsetAsync(at, 0, kBytes, one.get()), cudaErrorInvalidValue);
  expect_complaint("a clearing goes beyond an allocation of the device");
  EXPECT_EQ(cudaFree(at), cudaErrorInvalidValue);
  expect_complaint("cudaFree of what is no allocation");
}

TEST_F(Planted, ExtentBeyondAnAllocation) {
  EXPECT_EQ(cudaMemsetAsync(a.data() + 16, 0, kBytes, one.get()), cudaErrorInvalidValue);
  expect_complaint("a clearing goes beyond an allocation of the device");
  EXPECT_EQ(cudaMemcpy2DAsync(a.data(), 512, b.data(), 512, 256, kBytes / 512 + 1, cudaMemcpyDeviceToDevice, one.get()),
            cudaErrorInvalidValue);
  expect_complaint("a copy of rows goes beyond an allocation of the device");
}

TEST_F(Planted, WrongKindOfCopy) {
  EXPECT_EQ(cudaMemcpyAsync(a.data(), host.data(), kBytes, cudaMemcpyDeviceToDevice, one.get()), cudaErrorInvalidValue);
  expect_complaint("a copy from device to device does not read device memory");
  EXPECT_EQ(cudaMemcpy(host.data(), b.data(), kBytes, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect_complaint("a copy from host to device does not write device memory");
}

TEST_F(Planted, PageableMemory) {
  const std::vector<std::byte> pageable(kBytes);
  ORRERY_CHECK_CUDA(cudaMemcpyAsync(a.data(), pageable.data(), kBytes, cudaMemcpyHostToDevice, one.get()));
  expect_complaint("a copy from host to device is asynchronous, but the host's memory is pageable");
  synchronise();
}

TEST_F(Planted, HostChangesWhatIsBeingCopied) {
  // The copy's own thread may have read before this one changes a byte; then it is tried again.
  std::vector<std::string> all;
  for (int i = 0; i < 100 && all.empty(); ++i) {
    copy(a, host, one);
    host.data()[7] ^= std::byte{1};
    synchronise();
    all = null_gpu::complaints();
  }
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(all[0], HasSubstr("the host changes what an asynchronous copy to the device has not read yet"));
}

TEST_F(Planted, EventThatWasNeverRecorded) {
  const Event event(false);
  ORRERY_CHECK_CUDA(cudaStreamWaitEvent(one.get(), event.get(), 0));
  expect_complaint("cudaStreamWaitEvent of an event that was never recorded");
  cudaEventQuery(event.get());
  expect_complaint("cudaEventQuery of an event that was never recorded");
}

TEST_F(Planted, TimesOfEventsWithoutTimes) {
  const Event event(false);
  ORRERY_CHECK_CUDA(cudaEventRecord(event.get(), one.get()));
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, event.get(), event.get()), cudaErrorInvalidResourceHandle);
  expect_complaint("cudaEventElapsedTime of events without times");
}

// On a busy machine this thread may come later still, so that one try of many has to see it.
TEST_F(Planted, HostFunctionsComeLate) {
  bool late = false;
  for (int tries = 0; tries < 100 && !late; ++tries) {
    std::atomic<bool> ran{false};
    ORRERY_CHECK_CUDA(cudaLaunchHostFunc(
        one.get(), [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }, &ran));
    const Event behind(false);
    ORRERY_CHECK_CUDA(cudaEventRecord(behind.get(), one.get()));
    late = !ran && cudaEventQuery(behind.get()) == cudaErrorNotReady;
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(one.get()));
    EXPECT_TRUE(ran);
  }
  EXPECT_TRUE(late);
  cudaGetLastError();
}

TEST_F(Planted, StreamDestroyedWhileBusy) {
  null_gpu::set_slowness(1e5);  // a busy host must not come too late to find the work unfinished
  {
    const Stream busy;
    clear(a, busy);
  }
  null_gpu::set_slowness(1);
  expect_complaint("a stream is destroyed while it has work");
}

TEST_F(Planted, LaunchWithAnEarlierError) {
  const Event event(false);
  ORRERY_CHECK_CUDA(cudaEventRecord(event.get(), one.get()));
  ORRERY_CHECK_CUDA(cudaLaunchHostFunc(
      two.get(), [](void*) {}, nullptr));
  ORRERY_CHECK_CUDA(cudaEventRecord(event.get(), two.get()));
  EXPECT_EQ(cudaEventQuery(event.get()), cudaErrorNotReady);
  const std::int64_t zero = 0;
  const InitialRun run = {.to = a.data(), .width = 4, .count = 1, .in = 1, .rows = {&zero, 1}, .columns = {&zero, 1}};
  EXPECT_THROW(cuda::initial_on_cuda(run, nullptr), std::exception);
  expect_complaint("a launch would report the error of an earlier call");
}

// As nvcc's objects register and launch a kernel.
extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*,
                                       int*);
extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t);

TEST_F(Planted, LaunchLimits) {
  static char kernel, other;
  __cudaRegisterFunction(nullptr, &kernel, nullptr, "planted", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  const auto launch = [&](char* what, dim3 grid, dim3 block, std::size_t shared) {
    const cudaError_t code =
        __cudaLaunchKernel(reinterpret_cast<cudaKernel_t>(what), grid, block, nullptr, shared, one.get());
    cudaGetLastError();
    return code;
  };
  EXPECT_EQ(launch(&kernel, {1}, {1024}, 48 << 10), cudaSuccess);
  EXPECT_EQ(launch(&kernel, {1}, {2048}, 0), cudaErrorInvalidConfiguration);
  expect_complaint("launch of planted: 2048 threads in a block");
  EXPECT_EQ(launch(&kernel, {1, 65536}, {32}, 0), cudaErrorInvalidConfiguration);
  expect_complaint("launch of planted: a grid of 1 x 65536 x 1 blocks");
  EXPECT_EQ(launch(&kernel, {1}, {32}, 64 << 10), cudaErrorInvalidConfiguration);
  expect_complaint("launch of planted: 65536 bytes of shared memory, 49152 are granted");
  ORRERY_CHECK_CUDA(cudaFuncSetAttribute(&kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  EXPECT_EQ(launch(&kernel, {1}, {32}, 64 << 10), cudaSuccess);
  EXPECT_NE(cudaFuncSetAttribute(&kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10), cudaSuccess);
  expect_complaint("cudaFuncSetAttribute asks for 233472 bytes of shared memory");
  EXPECT_EQ(launch(&other, {1}, {32}, 0), cudaErrorInvalidDeviceFunction);
  expect_complaint("a launch of what is no kernel");
}

namespace gpu = kernels::cuda;

// C (64, 64) = A (64, 64) B (64, 64) in bf16.
gpu::Product product(std::byte* a, std::byte* b, std::byte* c) {
  const auto matrix = [](std::byte* at) { return gpu::matrix(gpu::Array{at, gpu::Type::bf16}, 64, 64); };
  gpu::Product p;
  p.a = matrix(a);
  p.b = matrix(b);
  p.c = matrix(c);
  return p;
}

TEST_F(Planted, Products) {
  gpu::Products products;
  products.multiply(product(a.data(), a.data() + 8192, b.data()), one.get());
  EXPECT_THAT(null_gpu::complaints(), testing::IsEmpty());
  products.multiply(product(a.data() + 1, a.data() + 8192 + 256, b.data()), one.get());
  expect_complaint("a product's operand is not aligned to the 2 bytes");
  products.multiply(product(a.data(), a.data() + kBytes - 4096, b.data()), one.get());
  expect_complaint("a product's operand goes beyond an allocation of the device");
  synchronise();
  products.multiply(product(a.data(), a.data() + 8192, b.data()), two.get());
  clear(b, one);
  expect_complaint("a clearing writes what a product writes");
}

TEST_F(Planted, HostTouchesTheDevice) { EXPECT_DEATH(a.data()[0] = std::byte{1}, "the host touches device memory"); }

TEST_F(Planted, ThingsLeftBehind) {
  const std::vector<std::string> before = null_gpu::left_behind();
  const Event event(false);
  const Memory memory(Memory::Place::device, 64);
  EXPECT_THAT(null_gpu::left_behind(), testing::Contains("1 events"));
  EXPECT_THAT(null_gpu::left_behind(), testing::Contains("3 device allocations"));
  EXPECT_THAT(before, testing::Contains("2 streams"));
}

TEST_F(Planted, MemoryRunsOut) {
  void* at = nullptr;
  EXPECT_EQ(cudaMalloc(&at, std::size_t{81} << 30), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
}

}  // namespace
}  // namespace orrery
