#include "exec/execute.h"

#include "exec/initial.h"

namespace orrery {
namespace {

// As far as a host runs ahead of its device at most: CUDA queues 1,024 launches.
constexpr TaskId kLaunchQueue = 1024;

class HostThread {
 public:
  HostThread(const Rank& rank, Transport& transport, const Text& text, const ExecuteOptions& options)
      : rank_(rank),
        options_(options),
        memory_(host_segments()),
        buffers_(rank, memory_),
        state_(run_state(rank, text, options.training)),
        lanes_(
            rank, transport, [this](const Launch& l) { launch_on_cpu(state_, l); }, options.watcher) {}

  Execution run() {
    set_initial_weights(rank_, options_.training.seed, buffers_);
    for (std::int64_t step = 0; step < options_.steps; ++step) run_step(step);
    if (options_.on_end) options_.on_end(buffers_);
    result_.memory = memory_.use();
    result_.at_peak = buffers_.at_peak();
    return std::move(result_);
  }

 private:
  void run_step(std::int64_t step) {
    state_.step = step;
    state_.loss = 0;
    lanes_.begin_step();
    bool updating = false;
    for (TaskId t = 0; t < rank_.plan.task_count(); ++t) {
      const Op& op = rank_.plan.op_of(t);
      if (!updating && std::holds_alternative<Update>(op.work)) {
        updating = true;
        if (options_.on_gradients) {
          lanes_.flush();
          lanes_.wait_all();
          options_.on_gradients(step, buffers_);
        }
      }
      issue(t, op);
    }
    lanes_.flush();
    lanes_.wait_all();
    buffers_.end_step();
    finish_step(step);
  }

  void issue(TaskId t, const Op& op) {
    if (op.host_waits) {
      lanes_.flush();
      for (const TaskId before : rank_.plan.dependencies_of(t)) lanes_.wait(before);
    }
    if (t >= kLaunchQueue && !lanes_.entered(t - kLaunchQueue)) {
      lanes_.flush();
      lanes_.wait(t - kLaunchQueue);
    }
    const Picoseconds issued = lanes_.now();
    lanes_.submit(buffers_.issue(t, [&](TaskId done) { return lanes_.completed(done); }), issued);
  }

  void finish_step(std::int64_t step) {
    Trace trace;
    trace.source = "measured";
    trace.spans = lanes_.take_spans();
    for (const Span& s : trace.spans) trace.step_time = std::max(trace.step_time, s.ended);
    result_.steps.push_back(std::move(trace));
    result_.losses.push_back(state_.loss);
    if (step == 0) result_.first_step_peak = memory_.use().peak_allocated;
  }

  const Rank& rank_;
  const ExecuteOptions& options_;
  CachingMemory memory_;
  Buffers buffers_;
  RunState state_;
  Lanes lanes_;
  Execution result_;
};

}  // namespace

Execution execute(const Rank& rank, Transport& transport, const Text& text, const ExecuteOptions& options) {
  return HostThread(rank, transport, text, options).run();
}

}  // namespace orrery
