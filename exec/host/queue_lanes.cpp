#include "exec/host/queue_lanes.h"

#include <algorithm>
#include <cassert>
#include <thread>

#include "exec/host/prepare.h"

namespace orrery {
namespace {

constexpr int kPollsBetweenChecks =
    // Number of times that a waiting host asks the device whether a task has ended before it checks the transport for
    // errors; so many queries take about a millisecond.
    4096;

}  // namespace

QueueLanes::QueueLanes(const Rank& rank, QueueDevice& device, QueuedTransport& transport, Watcher watcher,
                       bool one_queue)
    : rank_(rank), device_(device), transport_(transport), watcher_(std::move(watcher)) {
  std::array<std::uint8_t, kLanes> queue_of_lane{};
  std::array<bool, kLanes> known{};
  for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
    const std::uint32_t lane = rank.plan.tasks[t].lane % kLanes;
    if (!known[lane]) {
      known[lane] = true;
      if (held_.empty() || !one_queue) held_.push_back({device.queue(), {}, 0});
      queue_of_lane[lane] = static_cast<std::uint8_t>(held_.size() - 1);
    }
    queue_of_.push_back(queue_of_lane[lane]);
  }
  place_.resize(rank.plan.task_count(), kNone);
}

void QueueLanes::begin_step() {
  device_.begin_step();
  for (Held& h : held_) {
    h.tasks.clear();
    h.ended = 0;
  }
  std::fill(place_.begin(), place_.end(), kNone);
  steps_.push_back({std::vector<Picoseconds>(rank_.plan.task_count(), 0), {}});
}

void QueueLanes::submit(Launch launch, Picoseconds) {
  poll();
  const TaskId t = launch.task;
  if ((rank_.plan.tasks[t].flags & kJoinsPrevious) == 0) flush();
  for (const TaskId before : launch.after) steps_.back().after.emplace_back(t, before);
  if (rank_.plan.tasks[t].lane % kLanes == static_cast<std::uint32_t>(LaneKind::compute))
    launch_now(launch);
  else
    batch_.push_back(std::move(launch));
}

// Enqueues waits for the tasks on which a launch depends. Since queues run in order, one wait per other queue is
// enough: for the last of these tasks in that queue.
void QueueLanes::wait_for_dependencies(const Launch& launch) {
  std::vector<std::uint32_t> last(held_.size(), kNone);
  const std::uint8_t own = queue_of_[launch.task];
  const auto add = [&](TaskId before) {
    const std::uint8_t queue = queue_of_[before];
    assert(place_[before] != kNone);  // enqueued before, since tasks of one batch do not depend on each other
    if (queue == own || completed(before)) return;
    if (last[queue] == kNone || place_[before] > last[queue]) last[queue] = place_[before];
  };
  for (const TaskId t : rank_.plan.dependencies_of(launch.task)) add(t);
  for (const TaskId t : launch.after) add(t);
  for (std::size_t q = 0; q < held_.size(); ++q) {
    if (last[q] != kNone) held_[own].queue->wait_for(held_[q].tasks[last[q]]);
  }
}

void QueueLanes::launch_now(const Launch& launch) {
  wait_for_dependencies(launch);
  TaskQueue& queue = *held_by(launch.task).queue;
  queue.begin(launch);
  for (const auto& zeroed : launch.zeroed) queue.clear(zeroed);
  queue.run(launch);
  ended(launch.task);
}

// Enqueues the mark (event) of a task's end, and records that the queue now holds the task.
void QueueLanes::ended(TaskId t) {
  Held& h = held_by(t);
  h.queue->mark_end(t);
  place_[t] = static_cast<std::uint32_t>(h.tasks.size());
  h.tasks.push_back(t);
  steps_.back().issued[t] = host_now();
  if (watcher_ && h.ended + 1 == h.tasks.size()) watcher_(t, true);
}

void QueueLanes::flush() {
  if (batch_.empty()) return;
  for (const Launch& l : batch_) {
    if (!moves(rank_.plan.op_of(l.task))) launch_now(l);
  }
  std::erase_if(batch_, [&](const Launch& l) { return !moves(rank_.plan.op_of(l.task)); });
  if (!batch_.empty()) start_transfers();
  batch_.clear();
}

void QueueLanes::start_transfers() {
  std::vector<QueuedCall> calls;
  std::vector<std::pair<Packed, std::byte*>> packed(batch_.size());
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    const Launch& l = batch_[i];
    const Op& op = rank_.plan.op_of(l.task);
    TaskQueue& queue = *held_by(l.task).queue;
    wait_for_dependencies(l);
    queue.begin(l);
    for (const auto& zeroed : l.zeroed) queue.clear(zeroed);
    if (const auto* transfer = std::get_if<Transfer>(&op.work)) {
      calls.push_back({op.lane, &queue, prepare(rank_, *transfer, l)});
      continue;
    }
    PreparedCollective p = prepare(rank_, std::get<Collective>(op.work), l);
    if (!p.packed.runs.empty()) {
      packed[i] = {p.packed, queue.packing(p.packed.bytes())};
      p.pack_into(packed[i].second, [&](std::byte* to, const std::byte* from, std::size_t bytes) {
        queue.copy(to, from, static_cast<Bytes>(bytes));
      });
    }
    p.placed.pack(p.to, [&](std::byte* to, const std::byte* from, std::size_t bytes) {
      queue.copy(to, from, static_cast<Bytes>(bytes));
    });
    calls.push_back({op.lane, &queue, std::move(p.call)});
  }
  transport_.start(calls);
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    TaskQueue& queue = *held_by(batch_[i].task).queue;
    packed[i].first.unpack(packed[i].second, [&](std::byte* to, const std::byte* from, std::size_t bytes) {
      queue.copy(to, from, static_cast<Bytes>(bytes));
    });
    ended(batch_[i].task);
  }
}

void QueueLanes::poll(Held& h) {
  while (h.ended < h.tasks.size() && device_.has_ended(h.tasks[h.ended])) {
    if (watcher_) watcher_(h.tasks[h.ended], false);
    ++h.ended;
    if (watcher_ && h.ended < h.tasks.size()) watcher_(h.tasks[h.ended], true);
  }
}

void QueueLanes::poll() {
  for (Held& h : held_) poll(h);
}

bool QueueLanes::completed(TaskId t) const { return place_[t] != kNone && place_[t] < held_[queue_of_[t]].ended; }

bool QueueLanes::entered(TaskId t) const { return place_[t] != kNone && place_[t] <= held_[queue_of_[t]].ended; }

template <class Condition>
void QueueLanes::wait_until(const Condition& condition) {
  for (int looks = 1;; ++looks) {
    poll();
    if (condition()) return;
    if (looks % kPollsBetweenChecks == 0) transport_.check();
    std::this_thread::yield();
  }
}

void QueueLanes::wait(TaskId task) {
  wait_until([&] { return completed(task); });
}

void QueueLanes::wait_entered(TaskId task) {
  wait_until([&] { return entered(task); });
}

void QueueLanes::wait_all() {
  wait_until(
      [&] { return std::all_of(held_.begin(), held_.end(), [](const Held& h) { return h.ended == h.tasks.size(); }); });
}

void QueueLanes::end_step() {
  flush();
  wait_all();
  device_.end_step();
}

std::vector<Span> QueueLanes::spans_of(const Step& step, const std::vector<Picoseconds>& ends) const {
  std::vector<Span> spans(ends.size());
  std::vector<TaskId> last(held_.size(), kNone);
  std::size_t after = 0;
  for (TaskId t = 0; t < ends.size(); ++t) {
    Picoseconds entered = step.issued[t];
    const auto wait = [&](TaskId before) { entered = std::max(entered, ends[before]); };
    if (last[queue_of_[t]] != kNone) wait(last[queue_of_[t]]);
    for (const TaskId before : rank_.plan.dependencies_of(t)) wait(before);
    for (; after < step.after.size() && step.after[after].first == t; ++after) wait(step.after[after].second);
    entered = std::min(entered, ends[t]);
    spans[t] = {std::min(step.issued[t], entered), entered, entered, ends[t], kNone};
    last[queue_of_[t]] = t;
  }
  return spans;
}

std::vector<std::vector<Span>> QueueLanes::spans() {
  const std::vector<std::vector<Picoseconds>> ends = device_.ends();
  std::vector<std::vector<Span>> all;
  for (std::size_t k = 0; k < ends.size(); ++k)
    all.push_back(ends[k].size() == rank_.plan.task_count() ? spans_of(steps_[k], ends[k]) : std::vector<Span>());
  return all;
}

}  // namespace orrery
