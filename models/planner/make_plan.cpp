#include "models/planner/make_plan.h"

#include "models/layout/layout.h"
#include "models/layout/rank_classes.h"
#include "models/layout/replicas.h"
#include "models/plan/check.h"
#include "models/planner/order.h"
#include "models/planner/plan_builder.h"
#include "models/planner/refusals.h"

namespace orrery {

PlanBuilder::PlanBuilder(Draft& draft, TaskWriter& writer) : StepPart(draft, writer) {
  writer_.watch(*this);
  plan_validation();
}

Plan PlanBuilder::build() {
  const Strategy& s = spec_.strategy;
  for (std::int64_t place = 0, stage = 0; place < s.places(); ++place) {
    while (s.place_of(stage + 1) <= place) ++stage;
    for (draft_.at.rank_class = 0; draft_.at.rank_class < static_cast<int>(draft_.classes.size());
         ++draft_.at.rank_class) {
      draft_.at.slot = static_cast<std::uint32_t>(plan_.slots.size());
      context_.load = draft_.classes[draft_.at.rank_class].load;
      context_.ring_block = draft_.classes[draft_.at.rank_class].ring_block;
      context_.duty = draft_.classes[draft_.at.rank_class].duty;
      enter(draft_, stage, place - s.place_of(stage));
      lay_out(draft_);
      emit_stage(stage);
    }
  }
  plan_.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size())});
  link_matches(plan_, ends_);
  return std::move(plan_);
}

Plan make_unchecked_plan(const Spec& spec) {
  refuse_what_is_not_built(spec);
  Draft draft(spec);
  add_servers(draft);
  choose_schedule(draft);
  tell_classes_apart(draft);
  TaskWriter writer(draft.plan);
  return PlanBuilder(draft, writer).build();
}

Plan make_plan(const Spec& spec) {
  Plan plan = make_unchecked_plan(spec);
  check_plan(plan);
  return plan;
}

}  // namespace orrery
