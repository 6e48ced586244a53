#include "exec/cuda/queue.h"

#include <algorithm>
#include <utility>

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

Picoseconds elapsed(const Event& from, const Event& to) {
  float ms = 0;
  ORRERY_CHECK_CUDA(cudaEventElapsedTime(&ms, from.get(), to.get()));
  return static_cast<Picoseconds>(static_cast<double>(ms) * 1e9);
}

}  // namespace

Marks::Set Marks::make_set(TaskId tasks, bool timed) {
  Set set;
  for (TaskId t = 0; t < tasks; ++t) set.ends.emplace_back(timed);
  return set;
}

Marks::Marks(TaskId tasks, std::int64_t steps, std::int64_t every) : every_(every) {
  const std::int64_t marked = std::max<std::int64_t>(1, (steps + every - 1) / every);
  // There are at least two sets of CUDA events, because the begin of a step is measured relative to the begin of the
  // step before.
  const std::int64_t most = std::max<std::int64_t>(2, kMostEvents / std::max<std::int64_t>(tasks, 1));
  for (std::int64_t i = 0; i < std::min(std::max<std::int64_t>(marked, 2), most); ++i)
    timed_.push_back(make_set(tasks, true));
  for (int i = 0; i < 2 && every > 1; ++i) plain_.push_back(make_set(tasks, false));
  set_ = &timed_.back();
}

// Measures the offset between the host's and the device's clock: records an event and waits for it, several times, and
// keeps the shortest round trip (Cristian 1989). The device is taken to have reached the event in the middle of the
// round trip, with an error of at most half of the round trip.
void Marks::synchronise(Anchor& anchor, cudaStream_t stream) {
  Picoseconds best = -1;
  for (int i = 0; i < kRoundTrips; ++i) {
    Event event{true};
    const Picoseconds sent = host_now();
    ORRERY_CHECK_CUDA(cudaEventRecord(event.get(), stream));
    ORRERY_CHECK_CUDA(cudaEventSynchronize(event.get()));
    const Picoseconds half = (host_now() - sent) / 2;
    if (best >= 0 && half >= best) continue;
    best = half;
    anchor.event = std::move(event);
    anchor.host = sent + half;
  }
  uncertainty_ = std::max(uncertainty_, best);
}

void Marks::begin_step(cudaStream_t stream) {
  stream_ = stream;
  if (steps_ == 0) synchronise(first_, stream);
  note_begin();
  earlier_ = steps_ == 0 ? nullptr : set_;
  const bool marked = static_cast<std::int64_t>(steps_) % every_ == 0;
  set_ = marked ? &timed_[next_timed_++ % timed_.size()] : &plain_[next_plain_++ % plain_.size()];
  read(*set_);
  set_->step = steps_++;
  set_->unread = marked;
  ends_.emplace_back();
  ORRERY_CHECK_CUDA(cudaEventRecord(set_->base.get(), stream));
}

// Computes when the current step began on the device's clock. Called when all work of the step has ended, because only
// then the times of its events can be read.
void Marks::note_begin() {
  if (steps_ == 0) return;
  set_->begun =
      earlier_ == nullptr ? elapsed(first_.event, set_->base) : earlier_->begun + elapsed(earlier_->base, set_->base);
}

void Marks::read(Set& set) {
  if (!set.unread) return;
  for (const Event& e : set.ends) ends_[set.step].push_back(set.begun + elapsed(set.base, e));
  set.unread = false;
}

std::vector<std::vector<Picoseconds>> Marks::ends() {
  note_begin();
  for (Set& set : timed_) read(set);
  if (steps_ == 0) return {};
  Anchor last;
  synchronise(last, stream_);
  last.device = set_->begun + elapsed(set_->base, last.event);
  // rate: the picoseconds of the host's clock that pass in one picosecond of the device's clock.
  const double rate =
      last.device > 0 ? static_cast<double>(last.host - first_.host) / static_cast<double>(last.device) : 1;
  for (std::vector<Picoseconds>& step : ends_) {
    for (Picoseconds& t : step) t = first_.host + static_cast<Picoseconds>(static_cast<double>(t) * rate);
  }
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
  // Memory that became too small is kept, not freed: a free of device memory waits for all streams of the device, and
  // so for ranks that may wait for this rank.
  if (memory.bytes() < bytes) outgrown_.push_back(std::exchange(memory, Memory(Memory::Place::device, bytes)));
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
  const Plan& plan = state_.run.rank.plan;
  // The host does not wait until a transfer has ended, because two ranks that both waited for their sends would never
  // receive.
  if (!state_.waits_for_each_task() || moves(plan.op_of(task))) return;
  const cudaError_t code = cudaStreamSynchronize(stream());
  state_.check();
  if (code == cudaSuccess) return;
  throw Error(fmt::format("{} of micro-batch {}: {}", plan.op_of(task).name,
                          plan.frames[plan.tasks[task].frame].micro_batch, cudaGetErrorString(code)),
              1);
}

void CudaQueue::wait_for(TaskId task) { ORRERY_CHECK_CUDA(cudaStreamWaitEvent(stream(), marks_.of(task), 0)); }

}  // namespace orrery::cuda
