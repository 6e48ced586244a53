#include "models/planner/make_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "models/layout/layout.h"
#include "models/layout/rank_kinds.h"
#include "models/layout/replicas.h"
#include "models/load/combinations.h"
#include "models/plan/check.h"
#include "models/planner/activation_eviction.h"
#include "models/planner/activation_offload.h"
#include "models/planner/asynchronous.h"
#include "models/planner/data_parallel.h"
#include "models/planner/device_update.h"
#include "models/planner/eight_bit_casts.h"
#include "models/planner/emit.h"
#include "models/planner/host_units.h"
#include "models/planner/host_update.h"
#include "models/planner/order.h"
#include "models/planner/post_validation.h"
#include "models/planner/refusals.h"
#include "models/planner/servers.h"
#include "models/planner/shared_gradients.h"
#include "models/planner/units.h"
#include "models/planner/vocabulary_exchange.h"
#include "models/tasks/join_models.h"

namespace orrery {

template <class Part, class... More>
static Part* add_part(StepParts& parts, Draft& draft, TaskWriter& writer, More... more) {
  auto part = std::make_unique<Part>(draft, writer, more...);
  Part* added = part.get();
  parts.push_back(std::move(part));
  return added;
}

// Returns the step parts (one per technique, step_part.h) that the spec needs, in the order in which their hooks are
// called.
static StepParts parts_of(Draft& draft, TaskWriter& writer) {
  StepParts parts;
  const PlanFacts& facts = draft.facts;
  if (facts.forward_only()) {
    if (!facts.spec.generation) add_part<RunAhead>(parts, draft, writer);
    return parts;
  }
  PostValidation* validation = nullptr;
  if (facts.validates) validation = add_part<PostValidation>(parts, draft, writer);
  if (!draft.schedule.moves.empty()) add_part<ActivationEviction>(parts, draft, writer);
  if (draft.schedule.spreads_vocabulary()) add_part<VocabularyExchange>(parts, draft, writer);
  const bool offloads = facts.host_frozen() || facts.host_gradients() || facts.host_update();
  // whether activations stay on the device from forward to backward, without offload
  const bool keeps = facts.spec.strategy.offload.activations == MemoryTier::device;
  if (!keeps) add_part<ActivationOffload>(parts, draft, writer);
  HostUnits* host = offloads ? add_part<HostUnits>(parts, draft, writer) : nullptr;
  if (facts.row.shards_parameters || facts.unit_gradients) add_part<Units>(parts, draft, writer, host);
  if (!keeps) add_part<ActivationUploads>(parts, draft, writer);
  const bool apart = facts.row.master || facts.row.servers;  // whether only some ranks update the weights
  Servers* servers = apart ? add_part<Servers>(parts, draft, writer) : nullptr;
  if (!facts.unit_gradients) add_part<BucketReduction>(parts, draft, writer, servers);
  add_part<SharedGradients>(parts, draft, writer);
  const bool gathers = facts.row.shards_optimizer && !facts.row.shards_parameters;
  ParameterGather* gather = gathers ? add_part<ParameterGather>(parts, draft, writer) : nullptr;
  if (is_eight_bit(facts.spec.strategy.precision) && !facts.row.shards_parameters)
    add_part<EightBitCasts>(parts, draft, writer);
  AsynchronousUpdates* asynchronous =
      draft.asynchronous() ? add_part<AsynchronousUpdates>(parts, draft, writer) : nullptr;
  if (facts.host_update())
    add_part<HostUpdate>(parts, draft, writer);
  else
    add_part<DeviceUpdate>(parts, draft, writer, validation, asynchronous, gather);
  return parts;
}

// Selects one class of the ranks of a pipeline stage: blocks and groups that are built from now on belong to these
// ranks. number: index of the class in Draft::kinds.
static void enter_class(Draft& draft, int number) {
  const RankKind& ranks = draft.kinds[number];
  draft.at.rank_kind = number;
  draft.at.slot = static_cast<std::uint32_t>(draft.plan.classes.size());
  draft.context.load = ranks.load;
  draft.context.ring_block = ranks.ring_block;
  draft.context.duty = ranks.duty;
  if (!draft.second) return;
  draft.second->context.load = ranks.load;
  draft.second->context.ring_block = ranks.ring_block;
}

namespace {

// How far ids of the copied class lie behind those of the class that it is a copy of.
struct Distance {
  std::uint32_t frame = 0, buffer = 0, slot = 0;
  TaskId task = 0;

  static std::uint32_t moved(std::uint32_t id, std::uint32_t by) { return id == kNone ? kNone : id + by; }
  std::uint32_t frame_of(std::uint32_t id) const { return moved(id, frame); }
  TaskId task_of(TaskId id) const { return moved(id, task); }
};

// The first frame of a class, and the frame after its last; the frames of a class lie one after another.
std::pair<std::size_t, std::size_t> frames_of(const Plan& plan, std::uint32_t slot) {
  const auto first = std::ranges::lower_bound(plan.frames, slot, {}, &Frame::slot);
  const auto last = std::ranges::upper_bound(plan.frames, slot, {}, &Frame::slot);
  return {first - plan.frames.begin(), last - plan.frames.begin()};
}

// Copies the frames of a class, and the blocks that only this class has (those without a key in Draft::blocks).
void copy_frames(Draft& draft, std::pair<std::size_t, std::size_t> range, const Distance& by) {
  Plan& plan = draft.plan;
  std::set<std::uint32_t> shared;
  for (const auto& [key, block] : draft.blocks) shared.insert(block);
  std::map<std::uint32_t, std::uint32_t> own;  // for each block that only one class has, the id of its copy
  for (std::size_t f = range.first; f < range.second; ++f) {
    Frame frame = plan.frames[f];
    if (!shared.contains(frame.block)) {
      const auto [it, fresh] = own.try_emplace(frame.block, static_cast<std::uint32_t>(plan.blocks.size()));
      if (fresh) plan.blocks.push_back(Block(plan.blocks[frame.block]));
      frame.block = it->second;
    }
    frame.first_buffer += by.buffer;
    frame.slot += by.slot;
    for (std::uint32_t Frame::*other :
         {&Frame::next, &Frame::previous, &Frame::beside, &Frame::unit, &Frame::state, &Frame::weights})
      frame.*other = by.frame_of(frame.*other);
    plan.frames.push_back(frame);
  }
}

// Makes room in a list of tasks, or of what they wait for, for one more class and, so that the list does not move each
// time that it grows, for all classes to come: if these have as much as those before, and a little more.
template <class List>
void make_room(List& list, std::size_t added, const Draft& draft) {
  if (list.size() + added <= list.capacity()) return;
  const std::size_t classes = draft.kinds.size() * static_cast<std::size_t>(draft.facts.spec.strategy.places());
  const std::size_t all = list.size() / draft.plan.classes.size() * classes;
  list.reserve(std::max(all + all / 16, list.size() + added));
}

void copy_tasks(Draft& draft, const RankClass& of, const Distance& by) {
  Plan& plan = draft.plan;
  const std::size_t first = plan.tasks[of.begin].first_dependency;
  const std::size_t last = of.end == plan.tasks.size() ? plan.dependencies.size() : plan.tasks[of.end].first_dependency;
  make_room(plan.tasks, of.end - of.begin, draft);
  make_room(plan.dependencies, last - first, draft);
  const auto further = static_cast<std::uint32_t>(plan.dependencies.size() - first);
  for (TaskId t = of.begin; t < of.end; ++t) {
    Task task = plan.tasks[t];
    task.frame = by.frame_of(task.frame);
    task.lane += by.slot * kLanes;
    task.first_dependency += further;
    plan.tasks.push_back(task);
  }
  for (std::size_t d = first; d < last; ++d) plan.dependencies.push_back(by.task_of(plan.dependencies[d]));
}

// Copies the ends of transfers of a class's tasks; ends are listed in the order of their tasks.
void copy_ends(std::vector<TransferEnds::End>& ends, const RankClass& of, const Distance& by, int kind) {
  const auto at = [&](TaskId t) {
    return std::ranges::lower_bound(ends, t, {}, &TransferEnds::End::task) - ends.begin();
  };
  const auto first = at(of.begin), last = at(of.end);
  for (auto e = first; e < last; ++e) {
    TransferEnds::End end = ends[static_cast<std::size_t>(e)];
    end.transfer.kind = kind;
    end.task = by.task_of(end.task);
    ends.push_back(end);
  }
}

}  // namespace

// Returns whether two kinds of ranks (indices in Draft::kinds) do the same work on every pipeline stage, so that their
// classes differ only in the ranks that belong to them: kinds that slow ranks alone tell apart (cluster.stragglers).
static bool do_the_same(const Draft& draft, int kind, int other) {
  const RankKind &a = draft.kinds[kind], &b = draft.kinds[other];
  // Tensor ranks with other rows of a micro-batch write other transfers, and a partner of an eviction (BPipe) finds the
  // evicted buffers by the kind of ranks that laid them out.
  const bool apart = draft.facts.spec.strategy.row_parts() > 1 || !draft.schedule.moves.empty();
  return !apart && a.duty == Duty::worker && b.duty == Duty::worker && !draft.facts.row.servers && a.load == b.load &&
         a.ring_block == b.ring_block;
}

// Adds to the plan the class of ranks that Draft::at names, as a copy of the class with index `of`, whose ranks are of
// the same pipeline stage and do the same work: its frames, tasks, dependencies and ends of transfers, with new ids.
// Gives the same plan as laying the class out and writing its tasks, in less time.
static void copy_class(Draft& draft, TransferEnds& ends, std::uint32_t of) {
  Plan& plan = draft.plan;
  RankClass copy = plan.classes[of];
  const RankClass from = copy;
  const auto frames = frames_of(plan, of);
  const Distance by = {.frame = static_cast<std::uint32_t>(plan.frames.size() - frames.first),
                       .buffer = plan.buffers - plan.frames[frames.first].first_buffer,
                       .slot = draft.at.slot - of,
                       .task = static_cast<TaskId>(plan.tasks.size()) - from.begin};
  const Frame& last = plan.frames[frames.second - 1];
  const std::uint32_t end = last.first_buffer + static_cast<std::uint32_t>(plan.blocks[last.block].buffers.size());
  copy_frames(draft, frames, by);
  plan.buffers = end + by.buffer;
  find_ranks(draft, copy);
  copy.begin = by.task_of(from.begin);
  copy.end = by.task_of(from.end);
  copy.frame = by.frame_of(from.frame);
  copy.validation = by.task_of(from.validation);
  copy.validated = by.task_of(from.validated);
  plan.classes.push_back(copy);
  copy_tasks(draft, from, by);
  copy_ends(ends.transfers, from, by, draft.at.rank_kind);
}

// Writes the classes of ranks of one replica of a pipeline stage.
static void write_classes(Draft& draft, TaskWriter& writer, StepWalk& walk, std::int64_t stage, std::int64_t replica,
                          AlikeClasses how) {
  std::vector<std::pair<int, std::uint32_t>> written;  // kinds of ranks whose tasks were written, and their slots
  for (int c = 0; c < static_cast<int>(draft.kinds.size()); ++c) {
    enter_class(draft, c);
    enter(draft, stage, replica);
    const auto alike = std::ranges::find_if(written, [&](const auto& w) { return do_the_same(draft, w.first, c); });
    if (how == AlikeClasses::copied && alike != written.end()) {
      copy_class(draft, writer.ends(), alike->second);
      continue;
    }
    written.emplace_back(c, draft.at.slot);
    lay_out(draft);
    walk.write_slot();
  }
}

// Returns the plan of the ranks of one model.
static Plan plan_of_model(const Spec& spec, AlikeClasses how) {
  Draft draft(spec);
  add_servers(draft);
  choose_schedule(draft);
  tell_kinds_apart(draft);
  TaskWriter writer(draft.plan);
  const StepParts parts = parts_of(draft, writer);
  StepWalk walk(draft, writer, parts);
  const Strategy& s = spec.strategy;
  for (std::int64_t place = 0, stage = 0; place < s.places(); ++place) {
    while (s.first_position(stage + 1) <= place) ++stage;
    write_classes(draft, writer, walk, stage, place - s.first_position(stage), how);
  }
  Plan& plan = draft.plan;
  plan.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(plan.dependencies.size())});
  link_matches(plan, writer.ends());
  return std::move(plan);
}

Plan make_unchecked_plan(const Spec& spec, AlikeClasses how) {
  refuse_combinations(spec, Limit::plan);
  refuse_virtual_stages(spec);
  if (!has_second_apart(spec)) return plan_of_model(spec, how);
  return join_models(spec, plan_of_model(spec, how), plan_of_model(second_spec(spec), how));
}

Plan make_plan(const Spec& spec) {
  Plan plan = make_unchecked_plan(spec);
  check_plan(plan);
  return plan;
}

}  // namespace orrery
