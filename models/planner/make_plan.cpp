#include "models/planner/make_plan.h"

#include <algorithm>
#include <memory>
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
#include "models/planner/copy_class.h"
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

// Writes the classes of ranks of one replica of a pipeline stage. Kinds of ranks that do the same work are written once
// and copied.
static void write_classes(Draft& draft, TaskWriter& writer, StepWalk& walk, std::int64_t stage, std::int64_t replica) {
  std::vector<std::pair<int, std::uint32_t>> written;  // kinds of ranks whose tasks were written, and their slots
  for (int c = 0; c < static_cast<int>(draft.kinds.size()); ++c) {
    enter_class(draft, c);
    enter(draft, stage, replica);
    const auto alike = std::ranges::find_if(written, [&](const auto& w) { return do_the_same(draft, w.first, c); });
    if (alike != written.end()) {
      copy_class(draft, writer.ends(), alike->second);
      continue;
    }
    written.emplace_back(c, draft.at.slot);
    lay_out(draft);
    walk.write_slot();
  }
}

// Returns the plan of the ranks of one model.
static Plan plan_of_model(const Spec& spec) {
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
    write_classes(draft, writer, walk, stage, place - s.first_position(stage));
  }
  Plan& plan = draft.plan;
  plan.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(plan.dependencies.size())});
  link_matches(plan, writer.ends());
  return std::move(plan);
}

Plan make_unchecked_plan(const Spec& spec) {
  refuse_combinations(spec, Limit::plan);
  refuse_virtual_stages(spec);
  if (!has_second_apart(spec)) return plan_of_model(spec);
  return join_models(spec, plan_of_model(spec), plan_of_model(second_spec(spec)));
}

Plan make_plan(const Spec& spec) {
  Plan plan = make_unchecked_plan(spec);
  check_plan(plan);
  return plan;
}

}  // namespace orrery
