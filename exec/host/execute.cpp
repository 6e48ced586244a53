#include "exec/host/execute.h"

#include <sys/resource.h>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "kernels/cuda/attention_limits.h"
#include "models/base/error.h"
#include "models/layers/blocks.h"
#include "models/load/combinations.h"

namespace orrery {
namespace {

class HostThread {
 public:
  HostThread(const Rank& rank, RankDevice& device, const Text& text, const ExecuteOptions& options)
      : rank_(rank),
        device_(device),
        options_(options),
        memory_(device.segments(), [this] { drain(); }),
        buffers_(
            rank, memory_, [&device](std::span<std::byte> bytes) { device.clear(bytes); }, device.workspace(),
            device.host_memory()),
        state_(run_state(rank, text, options.training)),
        lanes_(device.lanes(with_routing(state_, options), buffers_.workspace(), options.watcher, options.steps)) {
    has_lanes_ = true;
  }

  Execution run() {
    set_initial_weights(rank_, options_.training.seed, buffers_,
                        [this](const InitialRun& run) { device_.set_initial(run); });
    if (rank_.spec.strategy.precision == Precision::fp16) set_initial_loss_scale();
    for (std::int64_t step = options_.first_step; step < options_.steps; ++step) run_step(step);
    validate_last();
    if (options_.on_end) options_.on_end(buffers_);
    result_.skipped_updates = state_.scaling.skipped;
    count_tokens_made();
    count_times();
    count_memory();
    return std::move(result_);
  }

 private:
  void set_initial_loss_scale() {
    std::byte* number = buffers_.state(rank_.plan.classes.front().frame, kLossScale);
    if (number != nullptr) *reinterpret_cast<float*>(number) = static_cast<float>(options_.training.loss_scale);
  }

  static RunState& with_routing(RunState& state, const ExecuteOptions& options) {
    state.on_routing = options.on_routing;
    if (state.generated && options.prompt) state.generated->prompt = options.prompt;
    if (state.generated) state.generated->keeps_logits = options.keep_logits;
    for (const GeneratedSequence& text : options.follow) state.generated->follows.push_back(text.tokens);
    return state;
  }

  // Waits until no task is running. If the first buffers already exceed the memory, the allocator calls drain() before
  // the lanes (queues of tasks) exist; then no task can be running.
  void drain() {
    if (!has_lanes_) return;
    lanes_->flush();
    lanes_->wait_all();
  }

  void run_step(std::int64_t step) {
    if (options_.on_step) options_.on_step(step);
    if (options_.on_begin) options_.on_begin(step, buffers_, result_.losses);
    state_.round = step;
    state_.losses.assign(static_cast<std::size_t>(rank_.plan.steps), {});
    if (state_.generated) state_.generated->clear();
    lanes_->begin_step();
    const Picoseconds begin = host_now();
    const TaskId validated = rank_.plan.classes.front().validated;
    if (validated != kNone) issue_validated(step, 0, validated + 1);
    bool updating = false;
    for (TaskId t = validated == kNone ? 0 : validated + 1; t < rank_.plan.task_count(); ++t) {
      if (!updating && std::holds_alternative<Update>(rank_.plan.op_of(t).work)) {
        updating = true;
        if (options_.on_gradients) {
          drain();
          options_.on_gradients(step, buffers_);
        }
      }
      issue(t);
    }
    lanes_->end_step();
    ends_.push_back(host_now());
    buffers_.end_step();
    begins_.push_back(begin);
    sizes_.emplace_back();
    for (const auto& [frame, sizes] : buffers_.sizes())
      sizes_.back().insert(sizes_.back().end(), sizes.begin(), sizes.end());
    for (const StepLoss& l : state_.losses) {
      if (l.tokens > 0) result_.losses.push_back(l.sum / static_cast<double>(l.tokens));
    }
    if (step == options_.first_step) result_.memory.first_step_peak = memory_.use().peak_allocated;
  }

  // Issues the tasks of a step that run before the previous step's update is validated, up to the wait for the gradient
  // norm of all pipeline stages. If that update was wrong, all stages redo it and run these tasks again with the
  // corrected weights.
  void issue_validated(std::int64_t step, TaskId begin, TaskId end) {
    for (TaskId t = begin; t < end; ++t) issue(t);
    if (step == options_.first_step || !update_was_wrong()) return;
    set_update_right(step - 1);
    for (TaskId t = begin; t < end; ++t) issue(t);
  }

  bool update_was_wrong() const {
    const RankClass& slot = rank_.plan.classes.front();
    const std::byte* number = buffers_.state(slot.frame, rank_.plan.op_of(slot.validated).operands[0].slot);
    return kernels::is_clipped(*reinterpret_cast<const float*>(number), options_.training.clip);
  }

  void set_update_right(std::int64_t step) {
    drain();
    buffers_.abandon_step();
    state_.round = step;
    state_.redoes_update = true;
    for (TaskId t = 0; t < rank_.plan.task_count(); ++t) {
      if (!std::holds_alternative<Update>(rank_.plan.op_of(t).work)) continue;
      device_.run(state_, buffers_.issue(t, [](TaskId) { return true; }));
    }
    state_.redoes_update = false;
    state_.round = step + 1;
    state_.losses.assign(static_cast<std::size_t>(rank_.plan.steps), {});
    lanes_->begin_step();
  }

  // Validates the optimizer update of the last step; the updates of other steps are validated during the step after
  // them.
  void validate_last() {
    const RankClass& slot = rank_.plan.classes.front();
    if (slot.validated == kNone || options_.steps == options_.first_step) return;
    lanes_->begin_step();
    issue_validated(options_.steps, slot.validation, slot.validated + 1);
    drain();
    buffers_.end_step();
  }

  void issue(TaskId t) {
    const Op& op = rank_.plan.op_of(t);
    if (op.host_waits) {
      lanes_->flush();
      for (const TaskId before : rank_.plan.dependencies_of(t)) lanes_->wait(before);
    }
    if (t >= kLaunchQueue && !lanes_->entered(t - kLaunchQueue)) {
      lanes_->flush();
      lanes_->wait_entered(t - kLaunchQueue);
    }
    const Picoseconds issued = host_now();
    Launch launch = buffers_.issue(t, [&](TaskId done) { return lanes_->completed(done); });
    const std::vector<Argument> arguments = launch.arguments;
    lanes_->submit(std::move(launch), issued);
    if (std::holds_alternative<CountTokens>(op.work)) count_tokens(t, arguments);
  }

  // Reads the token counts that a router (mixture of experts) has computed. They give the numbers of rows of buffers
  // that are allocated later.
  void count_tokens(TaskId t, const std::vector<Argument>& counts) {
    lanes_->flush();
    lanes_->wait(t);
    std::vector<std::int64_t> sizes;
    for (const Argument& a : counts) {
      const auto* numbers = reinterpret_cast<const std::int32_t*>(a.data);
      sizes.push_back(std::accumulate(numbers, numbers + a.bytes / 4, std::int64_t{0}));
    }
    buffers_.set_sizes(rank_.plan.tasks[t].frame, std::move(sizes));
  }

  // Notes the tokens of the last step, if this rank is of the last pipeline stage, which chooses them.
  void count_tokens_made() {
    const GroupPosition& stage = rank_.position_in(Dimension::pipeline);
    if (!state_.generated || stage.index + 1 != stage.size) return;
    const Strategy& s = rank_.spec.strategy;
    const auto number = [&](std::int64_t n) {
      return (n / s.micro_batch * s.data + rank_.replica) * s.micro_batch + n % s.micro_batch;
    };
    for (std::size_t q = 0; q < state_.generated->tokens.size(); ++q)
      result_.generated.push_back({number(static_cast<std::int64_t>(q)), state_.generated->chosen[q]});
    result_.logits = state_.generated->logits;
    for (KeptLogits& row : result_.logits) row.sequence = number(row.sequence);
  }

  void count_times() {
    const std::vector<std::vector<Span>> steps = lanes_->spans();
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (steps[k].empty()) {
        if (k > 0 && k < ends_.size()) result_.unmarked.push_back(ends_[k] - ends_[k - 1]);
        continue;
      }
      MeasuredStep measured = {begins_[k], begins_[k], {}, sizes_[k]};
      for (const Span& s : steps[k]) {
        measured.spans.push_back({s.issued, s.entered, s.ended});
        measured.end = std::max(measured.end, s.ended);
      }
      result_.steps.push_back(std::move(measured));
    }
  }

  void count_memory() {
    const MemoryUse& use = memory_.use();
    MeasuredMemory& m = result_.memory;
    m.peak = use.peak_allocated;
    m.peak_reserved = use.peak_reserved;
    device_.count(use, m);
    m.peak_task = buffers_.peak_task();
    m.at_peak = buffers_.at_peak();
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    for (const MemoryTier tier : kTiersBeyond) m.tier_peak[index_of(tier)] = buffers_.peak_in(tier);
    Bytes& host = m.tier_peak[index_of(MemoryTier::host)];
    if (host == 0) host = Bytes{usage.ru_maxrss} * 1024;
  }

  const Rank& rank_;
  RankDevice& device_;
  const ExecuteOptions& options_;
  // has_lanes_ is declared before memory_, whose allocator reads it (in drain()) even before the lanes (queues of
  // tasks) exist.
  bool has_lanes_ = false;
  CachingMemory memory_;
  Buffers buffers_;
  RunState state_;
  // The lanes (queues of tasks) are declared after the members that their threads use, so that they are destroyed
  // first.
  std::unique_ptr<Lanes> lanes_;
  std::vector<Picoseconds> begins_, ends_;  // times at which steps began and ended, on the host's clock
  std::vector<std::vector<std::int64_t>> sizes_;
  Execution result_;
};

}  // namespace

static void check_head_dim(const Spec& spec, std::string_view ranks) {
  const std::int64_t head_dim = spec.model.head_dim;
  const bool sixteen_bits = spec.strategy.precision != Precision::fp32;
  if (ranks == "CPU" || spec.strategy.attention != Attention::flash) return;
  if (kernels::cuda::takes_head_dim(head_dim, sixteen_bits)) return;
  throw Error(
      fmt::format("model.head_dim: {} ranks execute attention: flash with {}at most {}, not {}; choose another, or "
                  "attention: unfused",
                  ranks, sixteen_bits ? "multiples of 8 of " : "", kernels::cuda::kMostHeadDim, head_dim));
}

void check_executable(const Spec& spec, std::string_view ranks) {
  refuse_combinations(spec, ranks == "CPU" ? Limit::ranks : Limit::gpu_ranks);
  check_head_dim(spec, ranks);
}

Execution execute(const Rank& rank, RankDevice& device, const Text& text, const ExecuteOptions& options) {
  return HostThread(rank, device, text, options).run();
}

}  // namespace orrery
