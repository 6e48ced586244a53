#include "exec/cpu/host_lanes.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace orrery {
namespace {

constexpr int kSpins = 200;  // number of polls, which take some microseconds in all, before a waiting thread sleeps
constexpr int kPolls = 20;   // number of polls before the transfer thread sleeps while a task computes (else kSpins)
// The length of one sleep of the transfer thread while no transfer progresses.
constexpr auto kNap = std::chrono::microseconds(30);

// Asks Linux to let a woken thread run soon. By default Linux lets a computing thread finish a time slice of some
// milliseconds before a woken thread may run, unless the woken thread asks for a shorter slice (Linux 6.12; earlier
// versions ignore the request). The timer slack is lowered too: with the default of 50 us, short sleeps would last that
// much longer than requested.
void ask_for_short_slices() {
  struct {  // first version of the kernel's struct sched_attr, for sched_setattr(2)
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attributes = {.size = sizeof attributes, .policy = 0, .nice = ::getpriority(PRIO_PROCESS, 0), .runtime = 100'000};
  ::syscall(SYS_sched_setattr, 0, &attributes, 0U);
  ::prctl(PR_SET_TIMERSLACK, 1UL);
}

bool works_alone(LaneKind lane) {
  switch (lane) {
    case LaneKind::compute:
    case LaneKind::d2h:
    case LaneKind::h2d:
    case LaneKind::cpu:
    case LaneKind::nvme_read:
    case LaneKind::nvme_write:
      return true;
    default:
      return false;
  }
}

}  // namespace

HostLanes::HostLanes(const Rank& rank, Transport& transport, std::function<void(const Launch&)> compute,
                     Watcher watcher)
    : rank_(rank),
      transport_(transport),
      compute_(std::move(compute)),
      watcher_(std::move(watcher)),
      done_(rank.plan.task_count()),
      entered_(rank.plan.task_count()),
      spans_(rank.plan.task_count()) {
  begin_step();
  for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
    if (works_alone(static_cast<LaneKind>(lane_of(t))) && workers_[lane_of(t)] == nullptr)
      workers_[lane_of(t)] = std::make_unique<Worker>();
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (workers_[lane] != nullptr) workers_[lane]->thread = std::thread([this, lane] { work_loop(lane); });
  }
  transfer_thread_ = std::thread([this] { transfer_loop(); });
}

HostLanes::~HostLanes() {
  stopping_ = true;
  signal();
  for (const auto& worker : workers_) {
    if (worker != nullptr) worker->thread.join();
  }
  transfer_thread_.join();
}

void HostLanes::begin_step() {
  for (auto& d : done_) d.store(0, std::memory_order_relaxed);
  for (auto& e : entered_) e.store(0, std::memory_order_relaxed);
  submitted_ = 0;
  ended_ = 0;
}

void HostLanes::end_step() {
  flush();
  wait_all();
  steps_.push_back(spans_);
}

void HostLanes::signal() {
  epoch_.fetch_add(1, std::memory_order_acq_rel);
  epoch_.notify_all();
}

template <class Condition>
void HostLanes::wait_until(const Condition& condition) {
  for (int i = 0; i < kSpins; ++i) {
    if (condition()) return;
  }
  while (true) {
    const std::uint32_t seen = epoch_.load(std::memory_order_acquire);
    if (condition()) return;
    epoch_.wait(seen, std::memory_order_acquire);
  }
}

void HostLanes::fail() {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  failed_ = true;
  signal();
}

void HostLanes::wait(TaskId task) {
  wait_until([&] { return completed(task) || failed_; });
  if (failed_) std::rethrow_exception(error_);
}

void HostLanes::wait_entered(TaskId task) {
  wait_until([&] { return entered(task) || failed_; });
  if (failed_) std::rethrow_exception(error_);
}

void HostLanes::wait_all() {
  wait_until([&] { return ended_ == submitted_ || failed_; });
  if (failed_) std::rethrow_exception(error_);
}

void HostLanes::submit(Launch launch, Picoseconds issued) {
  const TaskId t = launch.task;
  spans_[t] = {.issued = issued, .cause = kNone};
  ++submitted_;
  const bool joins = (rank_.plan.tasks[t].flags & kJoinsPrevious) != 0;
  if (!joins) flush();
  if (Worker* worker = workers_[lane_of(t)].get(); worker != nullptr) {
    const std::lock_guard lock(mutex_);
    worker->queue.push_back(std::move(launch));
  } else {
    if (open_ == nullptr) open_ = std::make_shared<Batch>();
    open_->launches.push_back(std::move(launch));
  }
  if (open_ == nullptr) signal();
}

void HostLanes::flush() {
  if (open_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::size_t> lanes;
    for (const Launch& l : open_->launches) lanes.push_back(lane_of(l.task));
    std::sort(lanes.begin(), lanes.end());
    lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
    for (const std::size_t lane : lanes) transfer_queues_[lane].push_back(open_);
  }
  open_ = nullptr;
  signal();
}

bool HostLanes::dependencies_done(const Launch& launch) const {
  const auto done = [&](TaskId t) { return completed(t); };
  const auto needs = rank_.plan.dependencies_of(launch.task);
  return std::all_of(needs.begin(), needs.end(), done) && std::all_of(launch.after.begin(), launch.after.end(), done);
}

void HostLanes::enter(TaskId task) {
  spans_[task].entered = spans_[task].matched = host_now();
  entered_[task].store(1, std::memory_order_release);
  signal();
  if (watcher_) watcher_(task, true);
}

void HostLanes::end(TaskId task) {
  spans_[task].ended = host_now();
  if (watcher_) watcher_(task, false);
  done_[task].store(1, std::memory_order_release);
  ended_.fetch_add(1, std::memory_order_acq_rel);
  signal();
}

void HostLanes::run_inline(const Launch& launch) {
  enter(launch.task);
  compute_(launch);
  end(launch.task);
}

void HostLanes::work_loop(std::size_t lane) try {
  std::deque<Launch>& queue = workers_[lane]->queue;
  const bool computes = lane == static_cast<std::size_t>(LaneKind::compute);
  while (true) {
    wait_until([&] {
      if (stopping_ || failed_) return true;
      const std::lock_guard lock(mutex_);
      return !queue.empty();
    });
    if (stopping_ || failed_) return;
    Launch launch;
    {
      const std::lock_guard lock(mutex_);
      launch = std::move(queue.front());
      queue.pop_front();
    }
    wait_until([&] { return dependencies_done(launch) || stopping_ || failed_; });
    if (stopping_ || failed_) return;
    if (computes) computing_ = true;
    run_inline(launch);
    if (computes) computing_ = false;
  }
} catch (...) {
  fail();
}

bool HostLanes::ready(const Batch& batch) const {
  return std::all_of(batch.launches.begin(), batch.launches.end(), [&](const Launch& l) {
    return transfer_queues_[lane_of(l.task)].front().get() == &batch && dependencies_done(l);
  });
}

void HostLanes::start(Batch& batch) {
  batch.started = true;
  batch.collectives.resize(batch.launches.size());
  batch.packed.resize(batch.launches.size());
  for (std::size_t i = 0; i < batch.launches.size(); ++i) {
    const Launch& launch = batch.launches[i];
    const Op& op = rank_.plan.op_of(launch.task);
    if (!moves(op)) {
      run_inline(launch);
      continue;
    }
    enter(launch.task);
    if (const auto* c = std::get_if<Collective>(&op.work)) {
      PreparedCollective& p = batch.collectives[i] = prepare(rank_, *c, launch);
      if (!p.packed.runs.empty()) {
        batch.packed[i].resize(static_cast<std::size_t>(p.packed.bytes()));
        p.pack_into(batch.packed[i].data(), copy_on_host);
      }
      p.placed.pack(p.to, copy_on_host);
      batch.pending.push_back(transport_.start(op.lane, batch.collectives[i].call));
    } else {
      batch.pending.push_back(transport_.start(op.lane, prepare(rank_, std::get<Transfer>(op.work), launch)));
    }
  }
}

// Polls the transfers of a batch; when all have ended, unpacks their results, marks their tasks as ended and returns
// true.
bool HostLanes::finish(Batch& batch) {
  bool all = true;
  for (const auto& p : batch.pending) all = p->done() && all;
  if (!all) return false;
  for (std::size_t i = 0; i < batch.launches.size(); ++i) {
    if (!batch.packed[i].empty()) batch.collectives[i].packed.unpack(batch.packed[i].data(), copy_on_host);
    if (moves(rank_.plan.op_of(batch.launches[i].task))) end(batch.launches[i].task);
  }
  return true;
}

// Polls the transfers of all lanes once; returns whether any of them progressed.
bool HostLanes::progress() {
  std::array<std::shared_ptr<Batch>, kLanes> heads;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      auto& queue = transfer_queues_[lane];
      if (queue.empty()) continue;
      if (queue.front()->started || ready(*queue.front())) heads[lane] = queue.front();
    }
  }
  bool moved = false;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::shared_ptr<Batch>& batch = heads[lane];
    if (batch == nullptr || std::find(heads.begin(), heads.begin() + lane, batch) != heads.begin() + lane) continue;
    if (!batch->started) {
      start(*batch);
      moved = true;
    }
    if (!finish(*batch)) continue;
    moved = true;
    const std::lock_guard lock(mutex_);
    for (auto& queue : transfer_queues_) {
      if (!queue.empty() && queue.front() == batch) queue.pop_front();
    }
  }
  return moved;
}

void HostLanes::transfer_loop() try {
  ask_for_short_slices();
  int idle = 0;
  while (!stopping_ && !failed_) {
    const std::uint32_t seen = epoch_.load(std::memory_order_acquire);
    if (progress()) {
      idle = 0;
      continue;
    }
    bool flying = false;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& queue : transfer_queues_) flying = flying || (!queue.empty() && queue.front()->started);
    }
    if (!flying) {
      if (stopping_ || failed_) return;
      epoch_.wait(seen, std::memory_order_acquire);
    } else if (++idle < (computing_ ? kPolls : kSpins)) {
      if (!computing_) std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
} catch (...) {
  fail();
}

}  // namespace orrery
