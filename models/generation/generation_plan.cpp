#include "models/generation/generation_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "models/generation/token_hand_over.h"
#include "models/plan/check.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

// Joins the plans of passes into one. Buffers that outlive a pass (weights, caches) are those of the first pass.
class PassJoiner {
 public:
  PassJoiner(const Spec& spec, const std::vector<GenerationPass>& passes, bool prepares) {
    for (const GenerationPass& pass : passes) passes_.push_back(make_unchecked_plan(spec_of_pass(spec, pass)));
    const auto chooses = [&](const GenerationPass& pass) { return pass.chooses(*spec.generation); };
    first_choice_ = std::find_if(passes.begin(), passes.end(), chooses) - passes.begin();
    joined_ = passes_.front();
    joined_.tasks.clear();
    joined_.dependencies.clear();
    joined_.matches.clear();
    joined_.match_members.clear();
    joined_.micro_batches *= static_cast<std::int64_t>(passes_.size());
    joined_.update_every = joined_.micro_batches;
    for (std::size_t k = 0; k < passes_.size(); ++k) take_buffers(k);
    if (prepares) {
      prepare_ = static_cast<std::uint32_t>(joined_.ops.size());
      joined_.ops.push_back({.name = kPreparePass, .work = Wait{true}, .lane = LaneKind::cpu, .host_waits = true});
    }
    if (spec.strategy.pipeline > 1) hand_over_.emplace(joined_, spec, passes_.front().micro_batches, first_choice_);
  }

  Plan run() {
    for (std::uint32_t slot = 0; slot < joined_.classes.size(); ++slot) {
      joined_.classes[slot].begin = next();
      for (std::size_t k = 0; k < passes_.size(); ++k) add(slot, k);
      joined_.tasks.back().flags |= kStepEnd;
      joined_.classes[slot].end = next();
    }
    joined_.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(joined_.dependencies.size())});
    for (const auto& [key, members] : ends_) link(members);
    if (hand_over_) {
      for (const auto& [key, members] : hand_over_->ends()) link(members);
    }
    return std::move(joined_);
  }

 private:
  TaskId next() const { return static_cast<TaskId>(joined_.tasks.size()); }

  // Adds the ops, blocks and buffers of a pass.
  void take_buffers(std::size_t k) {
    const Plan& pass = passes_[k];
    first_op_.push_back(k == 0 ? 0 : static_cast<std::uint32_t>(joined_.ops.size()));
    frames_.emplace_back();
    if (k == 0) {
      for (std::uint32_t f = 0; f < pass.frames.size(); ++f) frames_[0].push_back(f);
      return;
    }
    const auto first_block = static_cast<std::uint32_t>(joined_.blocks.size());
    joined_.ops.insert(joined_.ops.end(), pass.ops.begin(), pass.ops.end());
    for (Block block : pass.blocks) {
      for (std::uint32_t& op : block.forward) op += first_op_.back();
      joined_.blocks.push_back(std::move(block));
    }
    std::uint32_t added = static_cast<std::uint32_t>(joined_.frames.size());
    for (std::uint32_t f = 0; f < pass.frames.size(); ++f)
      frames_[k].push_back(outlives_steps(pass.blocks[pass.frames[f].block].role) ? kept_frame(k, f) : added++);
    const auto renamed = [&](std::uint32_t f) { return f == kNone ? kNone : frames_[k][f]; };
    for (Frame f : pass.frames) {
      if (outlives_steps(pass.blocks[f.block].role)) continue;
      f.block += first_block;
      f.first_buffer = joined_.buffers;
      joined_.buffers += static_cast<std::uint32_t>(joined_.blocks[f.block].buffers.size());
      for (std::uint32_t* other : {&f.next, &f.previous, &f.unit, &f.state, &f.weights}) *other = renamed(*other);
      if (f.micro_batch >= 0)
        f.micro_batch += static_cast<std::int32_t>(static_cast<std::int64_t>(k) * pass.micro_batches);
      joined_.frames.push_back(f);
    }
  }

  // Returns the frame of the first pass that stands for frame f of pass k, which outlives the pass: plans of passes
  // have these frames in the same order.
  std::uint32_t kept_frame(std::size_t k, std::uint32_t f) {
    const auto nth = [](const Plan& plan, std::uint32_t end) {
      return std::count_if(plan.frames.begin(), plan.frames.begin() + end,
                           [&](const Frame& x) { return outlives_steps(plan.blocks[x.block].role); });
    };
    auto left = nth(passes_[k], f);
    const Plan& first = passes_.front();
    for (std::uint32_t g = 0;; ++g) {
      if (outlives_steps(first.blocks[first.frames[g].block].role) && left-- == 0) return g;
    }
  }

  bool computes(const Plan& plan, TaskId t) const {
    return plan.tasks[t].lane % kLanes == static_cast<std::uint32_t>(LaneKind::compute);
  }

  // Appends the host's work before pass k, which waits for the kernels of the pass before it; the pass's first kernel,
  // task `first` of its own plan, is to wait for it.
  TaskId prepare(std::uint32_t slot, std::size_t k, TaskId first) {
    TaskId last = next();
    while (last > joined_.classes[slot].begin && !computes(joined_, last - 1)) --last;
    joined_.tasks.push_back({.op = prepare_,
                             .frame = frames_[k][passes_[k].tasks[first].frame],
                             .lane = slot * kLanes + static_cast<std::uint32_t>(LaneKind::cpu),
                             .first_dependency = static_cast<std::uint32_t>(joined_.dependencies.size())});
    if (last > joined_.classes[slot].begin) joined_.dependencies.push_back(last - 1);
    return next() - 1;
  }

  // Appends the tasks of one class of ranks in one pass, and between them those that hand over tokens.
  void add(std::uint32_t slot, std::size_t k) {
    const Plan& pass = passes_[k];
    const RankClass& from = pass.classes[slot];
    std::vector<TaskId> moved;
    TaskId first = from.begin;
    while (first < from.end && !computes(pass, first)) ++first;
    const bool prepares = prepare_ != kNone && first < from.end;
    const TaskId prepared = prepares ? prepare(slot, k, first) : kNone;
    for (TaskId t = from.begin; t < from.end; ++t) {
      if (hand_over_) hand_over_->before(slot, static_cast<std::int64_t>(k), pass, t);
      moved.push_back(next());
      if (pass.tasks[t].match != kNone) ends_[{k, pass.tasks[t].match}].push_back(next());
      Task task = pass.tasks[t];
      task.op += first_op_[k];
      task.frame = frames_[k][task.frame];
      task.match = kNone;
      task.flags &= static_cast<std::uint8_t>(~kStepEnd);
      task.first_dependency = static_cast<std::uint32_t>(joined_.dependencies.size());
      if (prepares && t == first) joined_.dependencies.push_back(prepared);
      for (const TaskId d : pass.dependencies_of(t)) joined_.dependencies.push_back(moved[d - from.begin]);
      joined_.tasks.push_back(task);
      if (hand_over_) hand_over_->after(slot, static_cast<std::int64_t>(k), pass, t);
    }
  }

  void link(const std::vector<TaskId>& members) {
    for (const TaskId t : members) joined_.tasks[t].match = static_cast<std::uint32_t>(joined_.matches.size());
    joined_.matches.push_back(
        {static_cast<std::uint32_t>(joined_.match_members.size()), static_cast<std::uint32_t>(members.size())});
    joined_.match_members.insert(joined_.match_members.end(), members.begin(), members.end());
  }

  std::vector<Plan> passes_;
  std::ptrdiff_t first_choice_ = 0;
  Plan joined_;
  std::vector<std::uint32_t> first_op_;             // for each pass, the id of its first op
  std::vector<std::vector<std::uint32_t>> frames_;  // for each pass and frame of its own plan, the frame's id
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<TaskId>> ends_;  // by pass and match of its own plan
  std::optional<TokenHandOver> hand_over_;
  std::uint32_t prepare_ = kNone;  // id of the op of the host's work before a pass; kNone if there is none
};

}  // namespace

std::vector<GenerationPass> generation_passes(const Generation& g) {
  std::vector<GenerationPass> passes;
  const std::int64_t chunk = g.chunk > 0 ? g.chunk : g.input;
  for (std::int64_t cached = 0; cached < g.input; cached += chunk)
    passes.push_back({std::min(chunk, g.input - cached), cached});
  // Proposed tokens are taken to be accepted evenly, so that each pass adds the mean number of tokens.
  const double added = g.tokens_a_pass();
  for (double made = 1; made < static_cast<double>(g.output); made += added)
    passes.push_back({g.checked(), g.input + static_cast<std::int64_t>(made) - 1});
  return passes;
}

Spec spec_of_pass(const Spec& spec, const GenerationPass& pass) {
  Spec one = spec;
  one.sequence = pass.tokens;
  one.generation->cached = pass.cached;
  return one;
}

Plan make_generation_plan(const Spec& spec, const std::vector<GenerationPass>& passes, bool prepares) {
  Plan plan = PassJoiner(spec, passes, prepares).run();
  check_plan(plan);
  return plan;
}

Plan make_executed_plan(const Spec& spec) {
  return spec.generation ? make_generation_plan(spec, generation_passes(*spec.generation)) : make_plan(spec);
}

}  // namespace orrery
