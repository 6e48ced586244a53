#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/buffers.h"
#include "exec/calls.h"
#include "exec/transport.h"
#include "models/trace.h"

namespace orrery {

// Told when a task begins and ends, from the lane's thread.
using Watcher = std::function<void(TaskId, bool entered)>;

// The lanes of one CPU rank: a thread that computes, and one that lets every other lane's transfers progress. Lanes are
// in order; a task starts when its dependencies have ended; transfers of one batch start together. Errors of either
// thread are rethrown by wait().
class Lanes {
 public:
  Lanes(const Rank& rank, Transport& transport, std::function<void(const Launch&)> compute, Watcher watcher);
  ~Lanes();

  void submit(Launch launch, Picoseconds issued);  // in issue order
  void flush();                                    // nothing joins the last transfer any more
  void wait(TaskId task);                          // until it has ended
  void wait_entered(TaskId task);
  void wait_all();  // until all submitted have
  bool completed(TaskId task) const { return done_[task].load(std::memory_order_acquire) != 0; }
  bool entered(TaskId task) const { return entered_[task].load(std::memory_order_acquire) != 0; }

  // Forgets the step that has ended.
  void begin_step();
  const std::vector<Span>& spans() const { return spans_; }  // of the step; times on the machine's steady clock
  static Picoseconds now();

 private:
  struct Batch {
    std::vector<Launch> launches;
    std::vector<PreparedCollective> collectives;  // by launch; kept until their calls have ended
    std::vector<std::unique_ptr<Pending>> pending;
    bool started = false;
  };

  void compute_loop();
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
  std::vector<Span> spans_;
  std::atomic<std::uint32_t> epoch_{0};  // rises with every end and every submission
  std::atomic<bool> stopping_{false}, failed_{false}, computing_{false};
  std::exception_ptr error_;
  std::mutex mutex_;  // of the queues and error_
  std::deque<Launch> compute_queue_;
  std::array<std::deque<std::shared_ptr<Batch>>, kLanes> transfer_queues_;
  std::shared_ptr<Batch> open_;  // the host's
  TaskId submitted_ = 0;
  std::atomic<TaskId> ended_{0};
  std::thread compute_thread_, transfer_thread_;
};

}  // namespace orrery
