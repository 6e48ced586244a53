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

// The lanes of one CPU rank: a thread that computes, one for each lane on which the host works beside it (copies
// between places, the host's update) that the plan uses, and one that lets every other lane's transfers progress. The
// watcher is called from these threads, and errors of any are rethrown by wait().
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
    std::vector<PreparedCollective> collectives;  // by launch; kept until the transport's calls have ended
    // by launch: memory into which a collective's scattered elements are packed
    std::vector<std::vector<std::byte>> packed;
    std::vector<std::unique_ptr<Pending>> pending;
    bool started = false;
  };

  // A lane that has a thread to itself.
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
  std::vector<Span> spans_;  // spans of the tasks of the current step
  std::vector<std::vector<Span>> steps_;
  std::atomic<std::uint32_t> epoch_{0};  // incremented whenever a task ends or is submitted
  std::atomic<bool> stopping_{false}, failed_{false}, computing_{false};
  std::exception_ptr error_;
  std::mutex mutex_;                                     // guards the queues and error_
  std::array<std::unique_ptr<Worker>, kLanes> workers_;  // by lane; null where the lane holds transfers
  std::array<std::deque<std::shared_ptr<Batch>>, kLanes> transfer_queues_;
  std::shared_ptr<Batch> open_;  // the batch that submit() still adds transfers to
  TaskId submitted_ = 0;
  std::atomic<TaskId> ended_{0};
  std::thread transfer_thread_;
};

}  // namespace orrery
