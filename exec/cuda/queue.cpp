#include "exec/cuda/queue.h"

#include <algorithm>

#include <fmt/format.h>

#include "exec/cuda/call.h"
#include "exec/cuda/observe.h"
#include "exec/host/lanes.h"
#include "exec/transport/combine.h"
#include "kernels/cuda/elementwise.h"

namespace orrery::cuda {
namespace {

constexpr std::int64_t kMostEvents = 1 << 18;
// Number of round trips with which the offset between the clocks of host and device is measured.
constexpr int kRoundTrips = 5;

}  // namespace

Marks::Marks(TaskId tasks, std::int64_t steps) {
  const std::int64_t most = std::max<std::int64_t>(1, kMostEvents / std::max<std::int64_t>(tasks, 1));
  sets_.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(steps, 1, most)));
  for (Set& set : sets_) {
    for (TaskId t = 0; t < tasks; ++t) set.ends.emplace_back(true);
    for (int i = 0; i < kRoundTrips; ++i) set.bases.emplace_back(true);
  }
  set_ = sets_.size() - 1;
}

// Records an event and waits for it, several times, and keeps the shortest round trip (Cristian 1989): the device
// reached the event in the middle of that round trip, with an error of at most half of the round trip.
void Marks::begin_step(cudaStream_t stream) {
  set_ = (set_ + 1) % sets_.size();
  if (set_ == 0) {
    for (Set& set : sets_) read(set);
  }
  Set& set = sets_[set_];
  Picoseconds best = -1;
  for (std::size_t i = 0; i < set.bases.size(); ++i) {
    const Picoseconds sent = host_now();
    ORRERY_CHECK_CUDA(cudaEventRecord(set.bases[i].get(), stream));
    ORRERY_CHECK_CUDA(cudaEventSynchronize(set.bases[i].get()));
    const Picoseconds half = (host_now() - sent) / 2;
    if (best >= 0 && half >= best) continue;
    best = half;
    set.base = i;
    set.begun = sent + half;
  }
  set.used = true;
  uncertainty_ = std::max(uncertainty_, best);
}

void Marks::read(Set& set) {
  if (!set.used) return;
  std::vector<Picoseconds> ends;
  for (const Event& e : set.ends) {
    float ms = 0;
    ORRERY_CHECK_CUDA(cudaEventElapsedTime(&ms, set.bases[set.base].get(), e.get()));
    ends.push_back(set.begun + static_cast<Picoseconds>(static_cast<double>(ms) * 1e9));
  }
  ends_.push_back(std::move(ends));
  set.used = false;
}

std::vector<std::vector<Picoseconds>> Marks::ends() {
  for (Set& set : sets_) read(set);
  return std::move(ends_);
}

void CudaQueue::after(MoveQueue& other) {
  const cudaStream_t theirs = static_cast<CudaQueue&>(other).stream();
  ORRERY_CHECK_CUDA(cudaEventRecord(meeting_.get(), theirs));
  ORRERY_CHECK_CUDA(cudaStreamWaitEvent(stream(), meeting_.get(), 0));
}

void CudaQueue::copy(std::byte* to, const std::byte* from, Bytes bytes) {
  ORRERY_CHECK_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream()));
}

void CudaQueue::combine(Element element, Reduction reduction, const std::byte* from, std::byte* into,
                        std::int64_t elements) {
  const gpu::Type type = element == Element::f32 ? gpu::Type::fp32 : gpu::Type::bf16;
  if (orrery_observe_sum != nullptr)
    orrery_observe_sum({from, into, static_cast<std::size_t>(elements * width_of(element)), stream()});
  if (reduction == Reduction::sum)
    gpu::accumulate(elements, {from, type}, {into, type}, stream());
  else
    gpu::accumulate_maximum(elements, {from, type}, {into, type}, stream());
}

std::byte* CudaQueue::scratch(Bytes bytes) {
  if (scratch_.empty() || scratch_.back().bytes() < bytes) scratch_.emplace_back(Memory::Place::device, bytes);
  return scratch_.back().data();
}

std::byte* CudaQueue::packing(Bytes bytes) {
  if (packed_ == packing_.size()) packing_.emplace_back();
  Memory& memory = packing_[packed_++];
  if (memory.bytes() < bytes) memory = Memory(Memory::Place::device, bytes);
  return memory.data();
}

void CudaQueue::begin(const Launch& launch) {
  if (orrery_observe_task != nullptr) orrery_observe_task({state_.run.rank, launch, stream()});
}

void CudaQueue::clear(std::span<std::byte> bytes) {
  ORRERY_CHECK_CUDA(cudaMemsetAsync(bytes.data(), 0, bytes.size(), stream()));
}

void CudaQueue::run(const Launch& launch) {
  if (!runs_on_host(state_.run.rank.plan.op_of(launch.task).lane)) return launch_on_cuda(state_, launch, stream());
  host_tasks_.push_back({state_, launch});
  enqueue_on_host(host_tasks_.back(), stream());
}

void CudaQueue::begin_step() {
  packed_ = 0;
  host_tasks_.clear();
}

void CudaQueue::mark_end(TaskId task) {
  ORRERY_CHECK_CUDA(cudaEventRecord(marks_.of(task), stream()));
  if (!state_.waits_for_each_task()) return;
  const cudaError_t code = cudaStreamSynchronize(stream());
  state_.check();
  const Plan& plan = state_.run.rank.plan;
  if (code == cudaSuccess) return;
  throw Error(fmt::format("{} of micro-batch {}: {}", plan.op_of(task).name,
                          plan.frames[plan.tasks[task].frame].micro_batch, cudaGetErrorString(code)),
              1);
}

void CudaQueue::wait_for(TaskId task) { ORRERY_CHECK_CUDA(cudaStreamWaitEvent(stream(), marks_.of(task), 0)); }

}  // namespace orrery::cuda
