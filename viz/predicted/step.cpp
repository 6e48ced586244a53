#include "viz/predicted/step.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collectives/algorithms.h"
#include "models/partition/rank_groups.h"
#include "models/trace/measured_times.h"
#include "sim/generate/generated_steps.h"
#include "sim/print/text.h"
#include "sim/report/critical_path.h"
#include "viz/predicted/phases.h"
#include "viz/timeline/op_shape.h"
#include "viz/timeline/timeline_builder.h"

namespace orrery {
namespace {

constexpr std::int64_t kHostLane = kLanes;

std::string_view name_of(Phase phase) {
  static constexpr std::array<std::string_view, 5> names = {"forward", "backward", "input gradient", "weight gradient",
                                                            "step"};
  return names[static_cast<std::size_t>(phase)];
}

// The pass of a generation that a frame belongs to: "prefill", "decode 3".
std::string pass_name(const Spec& spec, const Frame& frame) {
  const std::int64_t micro_batch = std::max<std::int64_t>(0, frame.micro_batch);
  const auto pass = static_cast<std::size_t>(micro_batch / spec.strategy.micro_batches());
  return names_of(spec, {generation_passes(*spec.generation).at(pass)}).front();
}

std::string picosecond_text(Picoseconds t) { return time_text(seconds(t)); }

// Details of a task, shown when it is clicked. The key of the details is task * 2, plus 1 for the bar that shows the
// task waiting.
class PlanDetails : public DetailSource {
 public:
  explicit PlanDetails(std::shared_ptr<const Step> step) : step_(std::move(step)) {}

  Details details(std::uint64_t key) const override {
    const auto t = static_cast<TaskId>(key >> 1);
    const Plan& plan = step_->prediction.plan;
    const Op& op = plan.op_of(t);
    Details d;
    add_place(d, t);
    const Cost cost = cost_of(op.work, plan.element_bytes);
    const WorkShape shape = shape_of(op.work, plan.element_bytes);
    if (!moves(op)) d.emplace_back("shape", fmt::format("{} [{:.0f}]", shape.kind, fmt::join(shape.sizes, ", ")));
    if (cost.flops > 0) d.emplace_back("flops", count_text(cost.flops));
    if (cost.bytes > 0) d.emplace_back("bytes", volume_text(cost.bytes));
    if (moves(op)) add_transfer(d, t, op);
    add_times(d, t, op, cost);
    return d;
  }

  std::string shape(std::uint64_t key) const override {
    const Plan& plan = step_->prediction.plan;
    const Op& op = plan.op_of(static_cast<TaskId>(key >> 1));
    if (const auto* c = std::get_if<Collective>(&op.work)) return shape_words(orrery::name_of(c->kind), c->bytes);
    if (const auto* t = std::get_if<Transfer>(&op.work)) return shape_words("message", t->bytes);
    return shape_words(shape_of(op.work, plan.element_bytes));
  }

 private:
  void add_place(Details& d, TaskId t) const {
    const Plan& plan = step_->prediction.plan;
    const Op& op = plan.op_of(t);
    const Frame& frame = plan.frames[plan.tasks[t].frame];
    d.emplace_back("op", op.name);
    d.emplace_back("phase", step_->spec.generation
                                ? pass_name(step_->spec, frame)
                                : std::string(name_of(op.phase)) + (op.recompute ? ", run again" : ""));
    d.emplace_back("on", plan.classes[plan.slot_of(t)].name);
    d.emplace_back("lane", std::string(orrery::name_of(op.lane)));
    d.emplace_back("block", plan.blocks[frame.block].name);
    if (const auto& second = step_->spec.second)
      d.emplace_back("model", plan.blocks[frame.block].second ? name_of(second->role) : trained_name(second->role));
    if (frame.layer >= 0) d.emplace_back("layer", std::to_string(frame.layer));
    if (frame.micro_batch >= 0) d.emplace_back("micro-batch", std::to_string(frame.micro_batch));
    d.emplace_back("task", std::to_string(t));
  }

  void add_transfer(Details& d, TaskId t, const Op& op) const {
    const Plan& plan = step_->prediction.plan;
    const auto& notes = step_->prediction.costs.notes;
    const std::uint32_t index = plan.tasks[t].op;
    if (index < notes.size()) {
      d.emplace_back("link", notes[index].link);
      d.emplace_back("algorithm", notes[index].algorithm);
    }
    const auto* c = std::get_if<Collective>(&op.work);
    const Dimension dimension = c == nullptr ? Dimension::pipeline : c->group;
    const GroupTable& table = plan.dimensions[static_cast<std::size_t>(dimension)];
    const std::int64_t rank = plan.classes[plan.slot_of(t)].representative;
    const std::int32_t group = table.member_of[static_cast<std::size_t>(rank)];
    const auto& ranks = table.groups[static_cast<std::size_t>(group)];
    d.emplace_back("group", fmt::format("{} {}: {} ranks", orrery::name_of(dimension), group, ranks.size()));
    if (plan.tasks[t].match != kNone) d.emplace_back("match", std::to_string(plan.tasks[t].match));
  }

  void add_times(Details& d, TaskId t, const Op& op, const Cost& cost) const {
    const Plan& plan = step_->prediction.plan;
    const Span& span = step_->prediction.trace.spans[t];
    const Picoseconds took = span.ended - span.matched;
    d.emplace_back("took", picosecond_text(took));
    if (!moves(op) && cost.flops > 0 && took > 0)
      d.emplace_back("rate", fmt::format("{:.4g} TFLOP/s", cost.flops / seconds(took) * 1e-12));
    d.emplace_back("issued", picosecond_text(span.issued));
    d.emplace_back("entered", picosecond_text(span.entered));
    if (span.matched > span.entered) {
      const TaskId last = last_to_enter(plan, step_->prediction.trace, plan.tasks[t].match);
      d.emplace_back("waited", fmt::format("{} for {}: {}", picosecond_text(span.matched - span.entered),
                                           plan.classes[plan.slot_of(last)].name, describe_task(plan, last)));
    }
    d.emplace_back("ended", picosecond_text(span.ended));
    if (span.cause == kNone) {
      d.emplace_back("began when", "its host had launched it");
    } else {
      d.emplace_back("began when", fmt::format("{} had ended: {}", plan.classes[plan.slot_of(span.cause)].name,
                                               describe_task(plan, span.cause)));
    }
  }

  std::shared_ptr<const Step> step_;
};

// Returns the index, in its expert-parallel group, of the rank that represents a class of like ranks; -1 if each rank
// has all experts.
std::int64_t expert_coordinate(const Plan& plan, const RankClass& slot) {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(Dimension::expert)];
  const auto rank = static_cast<std::size_t>(slot.representative);
  if (rank >= table.member_of.size()) return -1;
  const auto& group = table.groups[static_cast<std::size_t>(table.member_of[rank])];
  if (group.size() < 2) return -1;
  return std::find(group.begin(), group.end(), slot.representative) - group.begin();
}

// Returns the numbers of the ranks of a class: those at its place of each pipeline. Returns none if the class is
// another part of the ranks, as are ranks that lag.
std::vector<std::int64_t> ranks_of_class(const Plan& plan, const RankClass& slot) {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(Dimension::pipeline)];
  const auto rank = static_cast<std::size_t>(slot.representative);
  if (rank >= table.member_of.size() || std::ssize(table.groups) != slot.multiplicity) return {};
  const auto& own = table.groups[static_cast<std::size_t>(table.member_of[rank])];
  const auto place = static_cast<std::size_t>(std::find(own.begin(), own.end(), slot.representative) - own.begin());
  std::vector<std::int64_t> members;
  for (const auto& group : table.groups) members.push_back(group[place]);
  std::sort(members.begin(), members.end());
  return members;
}

// Returns a rank's index in each group that has more than one rank, as " (DP1 TP0)"; "" if no group has.
std::string coordinates_text(const Coordinates& at, const Strategy& strategy) {
  std::string text;
  struct Row {
    std::string_view name;
    std::int64_t index, size;
  };
  for (const Row& row : {Row{"DP", at.data, strategy.data}, Row{"TP", at.tensor, strategy.tensor},
                         Row{"PP", at.pipeline, strategy.pipeline}, Row{"CP", at.context, strategy.context}}) {
    if (row.size > 1) text += fmt::format("{}{}{}", text.empty() ? "" : " ", row.name, row.index);
  }
  return text.empty() ? "" : " (" + text + ")";
}

Process process_of(const Step& step, std::uint32_t s, std::span<const Coordinates> places) {
  const RankClass& slot = step.prediction.plan.classes[s];
  Process p;
  const Coordinates c = places[static_cast<std::size_t>(slot.representative)];
  p.name = slot.multiplicity == 1
               ? fmt::format("rank {}{}", slot.representative,
                             coordinates_text(c, spec_of_rank(step.spec, slot.representative).strategy))
               : fmt::format("{} (rank {}, x{})", slot.name, slot.representative, slot.multiplicity);
  p.rank = slot.representative;
  p.ranks = slot.multiplicity;
  if (p.ranks > 1) p.members = ranks_of_class(step.prediction.plan, slot);
  p.order = s;
  p.coordinates = {c.data, c.tensor, c.pipeline, c.context, expert_coordinate(step.prediction.plan, slot)};
  const MemoryReport& memory = step.prediction.report.memory;
  p.capacity = memory.capacity;
  if (s < memory.ranks.size()) p.reserved = memory.ranks[s].memory.peak_reserved;
  return p;
}

void add_memory(const Step& step, TimelineBuilder& builder) {
  const Prediction& made = step.prediction;
  const Trace& trace = step.memory ? *step.memory : made.trace;
  Spec spec = step.spec;
  if (step.first) spec.steps = 2;  // the memory of a single step is that of a later one
  for (const MemorySample& sample : memory_samples(spec, made.plan, made.costs, trace, made.profile)) {
    if (step.first && sample.time >= trace.step_time) continue;
    Process& p = builder.process(sample.slot);
    if (p.counters.empty()) {
      p.counters.push_back({"memory", {}, {}, {}});
      for (int c = 0; c < kCategories; ++c)
        p.counters[0].series.emplace_back(orrery::name_of(static_cast<Category>(c)));
    }
    p.counters[0].times.push_back(sample.time);
    for (const Bytes bytes : sample.bytes) p.counters[0].values.push_back(static_cast<double>(bytes));
  }
}

// Labels of the plan's ops, phase by phase.
class OpLabels {
 public:
  OpLabels(const Plan& plan, std::size_t phases, TimelineBuilder& builder) : ops_(plan.ops.size()) {
    for (std::size_t phase = 0; phase < std::max<std::size_t>(1, phases); ++phase) {
      for (const Op& op : plan.ops) {
        const std::string kind = moves(op) ? "" : shape_of(op.work, plan.element_bytes).kind;
        labels_.push_back(builder.label(op.name, kind_of(op),
                                        moves(op) ? KernelClass::collective : class_of_kernel("", kind),
                                        phases == 0 ? kNoPhase : static_cast<std::int8_t>(phase)));
      }
    }
  }
  std::uint32_t of(std::uint32_t op, std::int8_t phase) const {
    return labels_[(phase == kNoPhase ? 0 : static_cast<std::size_t>(phase)) * ops_ + op];
  }

 private:
  std::size_t ops_ = 0;
  std::vector<std::uint32_t> labels_;
};

// Maps the lanes of a plan to the timeline's threads. A thread is added with the first event of its lane.
class Threads {
 public:
  Threads(TimelineBuilder& builder, std::size_t slots) : builder_(builder), known_(slots * kLanes, kNone) {}

  std::uint32_t of(std::uint32_t lane) {
    std::uint32_t& thread = known_[lane];
    if (thread == kNone)
      thread = builder_.add_thread(lane / kLanes, std::string(orrery::name_of(static_cast<LaneKind>(lane % kLanes))),
                                   lane % kLanes);
    return thread;
  }

 private:
  TimelineBuilder& builder_;
  std::vector<std::uint32_t> known_;
};

void add_arrows(const Plan& plan, const Trace& trace, Picoseconds begin, Threads& threads, TimelineBuilder& builder) {
  for (std::uint32_t m = 0; m < plan.matches.size(); ++m) {
    const auto members = plan.members_of(m);
    const auto* first = std::get_if<Transfer>(&plan.op_of(members[0]).work);
    if (first == nullptr || members.size() != 2) continue;
    const TaskId send = first->send ? members[0] : members[1];
    const TaskId receive = first->send ? members[1] : members[0];
    builder.add_arrow({threads.of(plan.tasks[send].lane), threads.of(plan.tasks[receive].lane),
                       begin + trace.spans[send].matched, begin + trace.spans[receive].ended});
  }
}

}  // namespace

Kind kind_of(Dimension d) {
  switch (d) {
    case Dimension::tensor:
    case Dimension::kv:
    case Dimension::tensor_row:
    case Dimension::tensor_column:
    case Dimension::tensor_depth:
      return Kind::tensor;
    case Dimension::context:
    case Dimension::ulysses:
      return Kind::context;
    case Dimension::expert:
    case Dimension::expert_tensor:
      return Kind::expert;
    case Dimension::pipeline:
    case Dimension::embedding:
    case Dimension::vocabulary:
    case Dimension::hand_over:
      return Kind::pipeline;
    case Dimension::data:
    case Dimension::data_in_node:
    case Dimension::data_over_nodes:
    case Dimension::replicate:
    case Dimension::expert_data:
    case Dimension::expert_replicate:
    case Dimension::model:
    case Dimension::world:
      return Kind::data;
  }
  return Kind::communication;
}

Kind kind_of(const Op& op) {
  if (const auto* c = std::get_if<Collective>(&op.work)) return kind_of(c->group);
  if (std::holds_alternative<Transfer>(op.work)) return Kind::pipeline;
  if (std::holds_alternative<PlaceCopy>(op.work)) return Kind::copy;
  if (op.optimizer || op.phase == Phase::step) return Kind::optimizer;
  if (op.recompute) return Kind::recompute;
  return op.phase == Phase::forward ? Kind::forward : Kind::backward;
}

std::shared_ptr<const Step> predict_step(const Spec& spec, const SpecOptions& options, const std::atomic<bool>* stop) {
  if (!spec.generation)
    return std::make_shared<const Step>(
        Step{spec, predict(spec, profile_for(spec, options.profile), options.unfold, stop)});
  Spec once = spec;  // a generation is shown once, not spec.steps times
  once.steps = 1;
  return std::make_shared<const Step>(
      Step{once, predict_passes(once, profile_for(once, options.profile), shown_passes(once), stop)});
}

StepTimeline timeline_of(std::shared_ptr<const Step> step) {
  const Plan& plan = step->prediction.plan;
  const Trace& trace = step->prediction.trace;
  TimelineBuilder builder;
  builder.timeline().title = step->spec.name;
  builder.timeline().source = trace.source;
  builder.timeline().step_time = trace.step_time;
  const std::uint64_t source = builder.add_source(std::make_shared<PlanDetails>(step));
  std::vector<Coordinates> places = coordinates(step->spec.strategy);
  if (has_second_apart(step->spec))
    std::ranges::copy(coordinates(second_spec(step->spec).strategy), std::back_inserter(places));
  for (std::uint32_t s = 0; s < plan.classes.size(); ++s) builder.add_process(process_of(*step, s, places));
  const Phases phases(step->spec, plan);
  builder.timeline().phases = phases.names();
  builder.timeline().pass_of_batch = phases.passes();
  const OpLabels labels(plan, phases.names().size(), builder);
  std::vector<std::uint32_t> waiting;
  for (const RankClass& slot : plan.classes) waiting.push_back(builder.label("wait for " + slot.name, Kind::wait));
  Threads threads(builder, plan.classes.size());
  // If the plan holds only one step, its tasks are shown spec.steps times, because all steps take the same time; only
  // the memory curves differ from step to step.
  const std::int64_t steps = plan.steps == 1 ? step->spec.steps : 1;
  builder.reserve(static_cast<std::size_t>(steps) * (plan.task_count() + plan.match_members.size()));
  const auto add_task = [&](TaskId t, Picoseconds begin) {
    const Span& span = trace.spans[t];
    const Task& task = plan.tasks[t];
    const Frame& frame = plan.frames[task.frame];
    const OpInstance place{frame.micro_batch, static_cast<std::int16_t>(frame.layer),
                           static_cast<std::int16_t>(frame.chunk)};
    const std::uint32_t thread = threads.of(task.lane);
    const std::uint64_t key = source | std::uint64_t{t} << 1;
    if (span.matched > span.entered) {
      const std::uint32_t label = waiting[plan.slot_of(last_to_enter(plan, trace, task.match))];
      builder.add({begin + span.entered, begin + span.matched, thread, label, key | 1}, place);
    }
    builder.add({begin + span.matched, begin + span.ended, thread, labels.of(task.op, phases.of(frame)), key}, place);
  };
  for (std::int64_t i = 0; i < steps; ++i) {
    for (TaskId t = 0; t < plan.task_count(); ++t) add_task(t, i * trace.step_time);
    add_arrows(plan, trace, i * trace.step_time, threads, builder);
  }
  add_memory(*step, builder);
  StepTimeline result{step, builder.finish(0), std::vector<EventId>(plan.task_count(), kNoEvent)};
  if (step->spec.generation) add_cache_use(*step, result.timeline);
  result.timeline.end = std::max(result.timeline.end, steps * trace.step_time);
  for (EventId e = 0; e < result.timeline.events(); ++e) {
    const std::uint64_t key = result.timeline.detail[e] & 0xffffffffffffffULL;
    EventId& of_task = result.event_of_task[key >> 1];
    const bool first = of_task == kNoEvent || result.timeline.begins[e] < result.timeline.begins[of_task];
    if ((key & 1) == 0 && first) of_task = e;
  }
  return result;
}

CriticalPath critical_path_of(const StepTimeline& s) {
  const Plan& plan = s.step->prediction.plan;
  const Trace& trace = s.step->prediction.trace;
  CriticalPath result;
  for (const TaskId t : critical_path(plan, trace)) result.path.push_back(s.event_of_task[t]);
  result.slack.assign(s.timeline.events(), -1);
  const std::vector<Picoseconds> by_task = slack(plan, trace);
  for (TaskId t = 0; t < plan.task_count(); ++t) result.slack[s.event_of_task[t]] = by_task[t];
  return result;
}

}  // namespace orrery
