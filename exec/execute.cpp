#include "exec/execute.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "exec/initial.h"
#include "models/error.h"

namespace orrery {
namespace {

class HostThread {
 public:
  HostThread(const Rank& rank, Transport& transport, const Text& text, const ExecuteOptions& options)
      : rank_(rank),
        options_(options),
        memory_(host_segments(), [this] { drain(); }),
        buffers_(rank, memory_),
        state_(run_state(rank, text, options.training)),
        lanes_(
            rank, transport, [this](const Launch& l) { launch_on_cpu(state_, l); }, options.watcher) {}

  Execution run() {
    running_ = true;
    set_initial_weights(rank_, options_.training.seed, buffers_);
    for (std::int64_t step = 0; step < options_.steps; ++step) run_step(step);
    if (options_.on_end) options_.on_end(buffers_);
    count_memory();
    return std::move(result_);
  }

 private:
  // The first buffers are taken before there are lanes.
  void drain() {
    if (!running_) return;
    lanes_.flush();
    lanes_.wait_all();
  }

  void run_step(std::int64_t step) {
    if (options_.on_step) options_.on_step(step);
    state_.step = step;
    state_.loss = 0;
    state_.tokens = 0;
    lanes_.begin_step();
    const Picoseconds begin = lanes_.now();
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
    finish_step(step, begin);
  }

  void issue(TaskId t, const Op& op) {
    if (op.host_waits) {
      lanes_.flush();
      for (const TaskId before : rank_.plan.dependencies_of(t)) lanes_.wait(before);
    }
    if (t >= kLaunchQueue && !lanes_.entered(t - kLaunchQueue)) {
      lanes_.flush();
      lanes_.wait_entered(t - kLaunchQueue);
    }
    const Picoseconds issued = lanes_.now();
    lanes_.submit(buffers_.issue(t, [&](TaskId done) { return lanes_.completed(done); }), issued);
  }

  void finish_step(std::int64_t step, Picoseconds begin) {
    MeasuredStep measured = {begin, begin, {}};
    for (const Span& s : lanes_.spans()) {
      measured.spans.push_back({s.issued, s.entered, s.ended});
      measured.end = std::max(measured.end, s.ended);
    }
    result_.steps.push_back(std::move(measured));
    if (state_.tokens > 0) result_.losses.push_back(state_.loss / static_cast<double>(state_.tokens));
    if (step == 0) result_.memory.first_step_peak = memory_.use().peak_allocated;
  }

  void count_memory() {
    const MemoryUse& use = memory_.use();
    MeasuredMemory& m = result_.memory;
    m.capacity = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
    m.peak = use.peak_allocated;
    m.peak_reserved = m.peak_device = use.peak_reserved;
    m.peak_task = buffers_.peak_task();
    m.at_peak = buffers_.at_peak();
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    m.host_peak = Bytes{usage.ru_maxrss} * 1024;
  }

  bool running_ = false;
  const Rank& rank_;
  const ExecuteOptions& options_;
  CachingMemory memory_;
  Buffers buffers_;
  RunState state_;
  Lanes lanes_;
  Execution result_;
};

}  // namespace

void check_executable(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Model& m = spec.model;
  const auto narrow = [](Precision p) { return p == Precision::fp32 || p == Precision::bf16; };
  const std::pair<bool, const char*> limits[] = {
      {!narrow(s.precision), "strategy.precision: CPU ranks execute fp32 and bf16"},
      {!narrow(s.gradient_precision), "strategy.gradient_precision: CPU ranks execute fp32 and bf16"},
      {s.optimizer.moment_bytes != 4 || s.optimizer.master_bytes != 4,
       "strategy.optimizer: CPU ranks keep master weights and moments in fp32"},
      {m.positions == Positions::alibi, "model.positions: CPU ranks execute rope, learned and none"},
      {m.attention_softcap > 0 || m.logit_softcap > 0, "model: CPU ranks do not execute soft caps"},
      {s.overlap.tensor && s.tensor > 1, "strategy.overlap.tensor: CPU ranks do not cut products into pieces"},
  };
  for (const auto& [breaks, line] : limits) {
    if (breaks) throw Error(fmt::format("{}; choose another", line));
  }
}

Execution execute(const Rank& rank, Transport& transport, const Text& text, const ExecuteOptions& options) {
  return HostThread(rank, transport, text, options).run();
}

}  // namespace orrery
