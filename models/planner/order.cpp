#include "models/planner/order.h"

#include <algorithm>

#include "models/layout/entries.h"
#include "models/layout/replicas.h"
#include "models/partition/layers_of_stages.h"
#include "models/planner/order_time.h"
#include "models/planner/refusals.h"
#include "models/schedule/schedule_file.h"

namespace orrery {

// Sets the number of steps in the plan of an asynchronous schedule: steps that fill the pipeline, two steps to compare,
// and steps that empty the pipeline. For p stages the pipeline is filled by 3 p micro-batches, during which gradients
// come back from the last stage to the first stage a few times.
static void take_steps(Draft& draft, Updates updates) {
  Plan& plan = draft.plan;
  if (updates == Updates::flush) return;
  const std::int64_t p = draft.facts.spec.strategy.pipeline, m = plan.micro_batches;
  const std::int64_t fill = ceil_div(3 * p, m), drain = ceil_div(p, m);
  plan.reported = fill + 1;
  plan.steps = fill + 2 + drain;
  plan.micro_batches = m * plan.steps;
  plan.update_every = updates == Updates::every_step ? m : 1;
}

// Sets those settings of the blocks that depend on whether the first and the last virtual stage lie on one pipeline
// stage; also makes the settings of the blocks of a vision encoder and of a second model.
static void place_ends(Draft& draft) {
  BlockContext& context = draft.context;
  context.ends_meet = ends_meet(draft.schedule) || draft.schedule.spreads_vocabulary();
  context.ends_interleave = context.ends_meet && draft.facts.spec.strategy.pipeline > 1;
  if (draft.facts.spec.images) draft.vision = std::make_unique<const VisionContext>(context);
  if (has_second_beside(draft.facts.spec)) draft.second = std::make_unique<SecondContext>(context);
}

// Returns the times of each phase on every virtual stage and then, if stages share the vocabulary, the times of a
// stage's part of the output layer and of the token lookups.
static std::vector<PhaseTimes> phase_times(Draft& draft) {
  const Plan& plan = draft.plan;
  OrderClock clock(draft.facts.spec, plan.dimensions);
  const auto add = [&](OrderLength& length, std::uint32_t id) {
    length.add(clock.length(plan.ops[id], draft.context.width));
  };
  std::vector<PhaseTimes> times;
  const std::size_t stages = draft.layers_of.size();
  for (std::size_t k = 0; k < stages + (draft.schedule.spreads_vocabulary() ? 2 : 0); ++k) {
    enter(draft, k < stages ? draft.schedule.stage_of[k] : 0, 0);
    OrderLength forward, input, weight;
    for (const Entry& entry :
         k < stages ? entries_of(draft, static_cast<std::int64_t>(k)) : vocabulary_entries(draft, k > stages)) {
      const Block& block = plan.blocks[entry.block];
      if (entry.transfer) continue;
      for (const std::uint32_t id : block.forward) add(forward, id);
      for (std::size_t i = 0; i < block.backward.size(); ++i)
        add(i < block.input_gradients ? input : weight, block.backward[i]);
      const auto overhead = clock.overhead(plan, block);
      forward.add(overhead[0]);
      input.add(overhead[1]);
    }
    times.push_back({forward.whole(), input.whole(), weight.whole()});
  }
  return times;
}

// Removes the backward actions from a schedule, where forward passes run alone, in the same order: in text generation,
// and on ranks that hold a frozen model alone.
static void leave_backward_out(Schedule& schedule) {
  for (std::vector<Action>& actions : schedule.order)
    std::erase_if(actions, [](const Action& a) { return a.phase != Phase::forward; });
}

void choose_schedule(Draft& draft) {
  const Spec& spec = draft.facts.spec;
  BlockContext& context = draft.context;
  Schedule& schedule = draft.schedule;
  const Strategy& s = spec.strategy;
  const bool own = s.schedule == "file";
  if (!own) take_steps(draft, find_schedule(s.schedule).updates);
  ScheduleShape shape = {s.pipeline, draft.plan.micro_batches, s.virtual_stages, {}, s.overlap.micro_batches};
  if (own) {
    schedule = parse_schedule(s.schedule_text, s.schedule_file, shape);
    context.splits_backward = splits_backward(schedule);
    place_ends(draft);
  } else {
    const ScheduleRow& row = find_schedule(s.schedule);
    schedule = place_chunks(row, shape);
    context.splits_backward = row.splits;
    place_ends(draft);
    context.shared.barriers = schedule.barriers;
    if (row.splits || schedule.spreads_vocabulary()) shape.times = phase_times(draft);
    shape.group = interleave_group(spec);
    shape.extra_warm_up = s.extra_warm_up;
    schedule.order = said_at(spec, "strategy.schedule", [&] { return row.orders(shape); });
    if (row.moves != nullptr) schedule.moves = row.moves(schedule.order);
    if (draft.facts.forward_only()) leave_backward_out(schedule);
  }
  if (schedule.copies > 1) refuse_odd_copies(draft);
  if (draft.asynchronous()) refuse_short_steps(draft);
  draft.transfer_order =
      order_transfers(schedule, schedule.spreads_vocabulary() ? shape.times : std::vector<PhaseTimes>());
}

}  // namespace orrery
