#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "exec/cpu/launch.h"
#include "exec/host/device.h"
#include "exec/host/queue_lanes.h"
#include "exec/host/task_queue.h"
#include "exec/transport/combine.h"

// Queues of a device on the host, where everything happens at once, on the thread that enqueues it.
namespace orrery::test {

// A queue whose work runs at once, on the calling thread. Scratch memory is filled with ones, so that no code relies on
// zeros.
class HostQueue : public TaskQueue {
 public:
  void after(MoveQueue& other) override { waited_for.push_back(&other); }
  void copy(std::byte* to, const std::byte* from, Bytes bytes) override {
    std::memmove(to, from, static_cast<std::size_t>(bytes));
  }
  void combine(Element element, Reduction reduction, const std::byte* from, std::byte* into,
               std::int64_t elements) override {
    orrery::combine(element, reduction, from, into, elements);
  }
  std::byte* scratch(Bytes bytes) override {
    scratch_.assign(static_cast<std::size_t>(bytes), std::byte{0xff});
    return scratch_.data();
  }
  std::byte* packing(Bytes bytes) override {
    return packed_.emplace_back(static_cast<std::size_t>(bytes), std::byte{0xff}).data();
  }
  void clear(std::span<std::byte> bytes) override { clear_on_host(bytes); }
  void run(const Launch&) override {}
  void mark_end(TaskId) override {}
  void wait_for(TaskId) override {}

  std::vector<MoveQueue*> waited_for;

 private:
  std::vector<std::byte> scratch_;
  std::deque<std::vector<std::byte>> packed_;
};

// Ends are known only when somebody has looked a few times, as a device's are.
class HostQueues : public QueueDevice {
 public:
  HostQueues(const Rank& rank, RunState& state, int looks) : rank_(rank), state_(state), looks_(looks) {}

  struct Wait {
    TaskId task, on;  // kNone: clear
  };

  std::unique_ptr<TaskQueue> queue() override { return std::make_unique<Queue>(*this, queues_++); }
  void begin_step() override {
    ends_.emplace_back(rank_.plan.task_count(), 0);
    left_.assign(rank_.plan.task_count(), looks_);
    queue_of.assign(rank_.plan.task_count(), -1);
    waits.clear();
  }
  void end_step() override {}
  bool has_ended(TaskId task) override {
    EXPECT_GE(queue_of[task], 0) << "looked for before its end was marked";
    return --left_[task] <= 0;
  }
  std::vector<std::vector<Picoseconds>> ends() override { return ends_; }
  int queues() const { return queues_; }

  std::vector<int> queue_of;                  // by task of the last step; -1: not marked
  std::vector<std::pair<int, TaskId>> waits;  // which queue waits for what

 private:
  struct Queue : HostQueue {
    Queue(HostQueues& all, int n) : owner(all), number(n) {}
    void run(const Launch& launch) override { launch_on_cpu(owner.state_, launch); }
    void mark_end(TaskId task) override {
      owner.ends_.back()[task] = host_now();
      owner.queue_of[task] = number;
    }
    void wait_for(TaskId task) override {
      EXPECT_GE(owner.queue_of[task], 0) << "waits for an end that was not marked";
      owner.waits.emplace_back(number, task);
    }
    HostQueues& owner;
    int number;
  };

  const Rank& rank_;
  RunState& state_;
  int looks_;
  int queues_ = 0;
  std::vector<int> left_;
  std::vector<std::vector<Picoseconds>> ends_;
};

// The device of a rank whose lanes are such queues.
class QueuedHostDevice : public RankDevice {
 public:
  QueuedHostDevice(const Rank& rank, QueuedTransport& transport, bool one_queue = false)
      : rank_(rank), transport_(transport), one_queue_(one_queue) {}
  SegmentSource segments() override { return host_segments(); }
  void clear(std::span<std::byte> bytes) override { clear_on_host(bytes); }
  void set_initial(const InitialRun& run) override { initial_on_host(run); }
  void read(std::byte* to, const std::byte* from, std::size_t bytes) override { copy_on_host(to, from, bytes); }
  std::unique_ptr<Lanes> lanes(RunState& state, std::span<std::byte>, Watcher watcher, std::int64_t) override {
    queues_ = std::make_unique<HostQueues>(rank_, state, 3);
    return std::make_unique<QueueLanes>(rank_, *queues_, transport_, std::move(watcher), one_queue_);
  }
  void count(const MemoryUse&, MeasuredMemory&) override {}
  HostQueues& queues() { return *queues_; }

 private:
  const Rank& rank_;
  QueuedTransport& transport_;
  bool one_queue_;
  std::unique_ptr<HostQueues> queues_;
};

}  // namespace orrery::test
