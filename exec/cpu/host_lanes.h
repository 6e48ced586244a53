#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/host/lanes.h"
#include "exec/host/prepare.h"
#include "exec/transport/transport.h"

namespace orrery {

// The lanes (in-order queues of tasks) of one CPU rank: a thread that computes, a thread for each lane of copies or of
// optimizer updates on the host that the plan uses, and one thread that drives the transfers of all other lanes. The
// watcher is called from these threads; wait() rethrows their errors.
class HostLanes final : public Lanes {
 public:
  HostLanes(const Rank& rank, Transport& transport, std::function<void(const Launch&)> compute, Watcher watcher);
  ~HostLanes() override;

  void submit(Launch launch, Picoseconds issued) override;
  void flush() override;
  void wait(TaskId task) override;
  void wait_entered(TaskId task) override;
  void wait_all() override;
  bool completed(TaskId task) const override { return done_[task].load(std::memory_order_acquire) != 0; }
  bool entered(TaskId task) const override { return entered_[task].load(std::memory_order_acquire) != 0; }
  void begin_step() override;
  void end_step() override;
  std::vector<std::vector<Span>> spans() override { return steps_; }

 private:
  struct Batch {
    std::vector<Launch> launches;
    // The prepared collectives of the batch, one for each element of `launches`, kept until they have ended because the
    // transport uses them.
    std::vector<PreparedCollective> collectives;
    // For each element of `launches`, the memory into which the scattered elements of its collective are packed.
    std::vector<std::vector<std::byte>> packed;
    std::vector<std::unique_ptr<Pending>> pending;
    bool started = false;
  };

  // A lane (in-order queue of tasks) whose tasks run on a thread of its own.
  struct Worker {
    std::deque<Launch> queue;
    std::thread thread;
  };

  void work_loop(std::size_t lane);
  void transfer_loop();
  bool progress();
  bool ready(const Batch& batch) const;
  bool dependencies_done(const Launch& launch) const;
  void start(Batch& batch);
  bool finish(Batch& batch);
  void run_inline(const Launch& launch);
  void enter(TaskId task);
  void end(TaskId task);
  void signal();
  template <class Condition>
  void wait_until(const Condition& condition);
  void fail();
  std::size_t lane_of(TaskId t) const { return rank_.plan.tasks[t].lane % kLanes; }

  const Rank& rank_;
  Transport& transport_;
  std::function<void(const Launch&)> compute_;
  Watcher watcher_;
  std::vector<std::atomic<std::uint8_t>> done_, entered_;
  std::vector<Span> spans_;  // times (issued, entered, ended) of the tasks of the current step
  std::vector<std::vector<Span>> steps_;
  // counter that grows whenever a task is submitted or ends, so that threads can wait for a change
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<bool> stopping_{false}, failed_{false}, computing_{false};
  std::exception_ptr error_;
  std::mutex mutex_;  // protects the queues and error_
  // for each lane, the thread that runs its tasks; null for lanes of transfers
  std::array<std::unique_ptr<Worker>, kLanes> workers_;
  std::array<std::deque<std::shared_ptr<Batch>>, kLanes> transfer_queues_;
  std::shared_ptr<Batch> open_;  // the batch to which submit() adds transfers; null: none yet
  TaskId submitted_ = 0;
  std::atomic<TaskId> ended_{0};
  std::thread transfer_thread_;
};

}  // namespace orrery
