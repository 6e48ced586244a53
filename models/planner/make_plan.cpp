#include "models/planner/make_plan.h"

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/combinations.h"
#include "models/partition/layers_of_stages.h"
#include "models/partition/rank_groups.h"
#include "models/plan/check.h"
#include "models/planner/plan_builder.h"
#include "models/schedule/schedule_file.h"
#include "models/spec/one_queue.h"
#include "models/spec/sequence.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

// The place where a key was given: "spec.yaml:12: ", or "" when it was not.
std::string place_of(const Spec& spec, std::string_view key) {
  for (const Origin& o : spec.origins) {
    if (o.key.starts_with(key) && o.from.find(':') != std::string::npos) return o.from + ": ";
  }
  return "";
}

// Runs a function that knows no spec; an Error that it throws gets the place of the key that it refuses.
template <class Function>
auto said_at(const Spec& spec, std::string_view key, Function function) {
  try {
    return function();
  } catch (const Error& e) {
    throw Error(place_of(spec, key) + e.what());
  }
}

// Refuses numbers of virtual stages that the schedule does not have.
void refuse_virtual_stages(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const auto chunks_of = [&] { return s.schedule == "file" ? 0 : find_schedule(s.schedule).chunks; };
  const std::int64_t chunks = said_at(spec, "strategy.schedule", chunks_of);
  if (s.virtual_stages > 1 && (chunks == 1 || s.pipeline == 1)) {
    throw Error(
        fmt::format("{}strategy.virtual_stages: {} needs a pipeline of several stages and a schedule with chunks, "
                    "e.g. interleaved; not pipeline: {} with {}",
                    place_of(spec, "strategy.virtual_stages"), s.virtual_stages, s.pipeline, s.schedule));
  }
  if (chunks > 1 && s.virtual_stages != chunks)
    throw Error(fmt::format("{}strategy.virtual_stages: {} has {} a stage, in a pipeline of several stages; not {}",
                            place_of(spec, "strategy.virtual_stages"), s.schedule, chunks, s.virtual_stages));
}

}  // namespace

PlanBuilder::PlanBuilder(const Spec& spec)
    : spec_(spec),
      row_(row_of(spec.strategy.sharding)),
      context_(spec_, row_),
      layers_of_(stage_layers(spec)),
      gradient_width_(storage_bytes(spec.strategy.gradient_precision)),
      unit_gradients_(unit_gradients(spec, row_)),
      averaging_(averaging(spec, row_)),
      one_queue_(has_one_queue(spec)) {
  std::int64_t first = 0;
  for (const std::int64_t n : layers_of_) {
    first_layer_.push_back(first);
    first += n;
  }
  plan_.ranks = spec.strategy.gpus();
  plan_.micro_batches = plan_.update_every = spec.strategy.micro_batches();
  plan_.element_bytes = context_.width;
  plan_.dimensions =
      make_groups(spec.strategy, row_.shards_optimizer, row_.hybrid, context_.kv_copies, spec.model.moe.has_value());
  add_servers();
  choose_schedule();
}

void PlanBuilder::choose_schedule() {
  const Strategy& s = spec_.strategy;
  const bool own = s.schedule == "file";
  if (!own) take_steps(find_schedule(s.schedule).updates);
  ScheduleShape shape = {s.pipeline, plan_.micro_batches, s.virtual_stages, {}, s.overlap.micro_batches};
  if (own) {
    schedule_ = parse_schedule(s.schedule_text, s.schedule_file, shape);
    context_.splits_backward = splits_backward(schedule_);
    place_ends();
  } else {
    const ScheduleRow& row = find_schedule(s.schedule);
    schedule_ = place_chunks(row, shape);
    context_.splits_backward = row.splits;
    place_ends();
    context_.shared.barriers = schedule_.barriers;
    if (row.splits || schedule_.spreads_vocabulary()) shape.times = phase_times();
    shape.group = interleave_group(spec_);
    shape.extra_warm_up = s.extra_warm_up;
    schedule_.order = said_at(spec_, "strategy.schedule", [&] { return row.orders(shape); });
    if (row.moves != nullptr) schedule_.moves = row.moves(schedule_.order);
  }
  if (schedule_.copies > 1) refuse_odd_copies();
  if (asynchronous()) refuse_short_steps();
  turns_ = order_transfers(schedule_, schedule_.spreads_vocabulary() ? shape.times : std::vector<PhaseTimes>());
  plan_validation();
}

void PlanBuilder::place_ends() {
  context_.ends_meet = ends_meet(schedule_) || schedule_.spreads_vocabulary();
  context_.ends_interleave = context_.ends_meet && spec_.strategy.pipeline > 1;
}

// Refuses the value of a key. what: what the schedule does that the value does not fit; why: the reason, and what to
// do.
void PlanBuilder::refuse_with(std::string_view key, std::string_view what, std::string_view why) const {
  throw Error(fmt::format("{}{}: {} {}; {}", place_of(spec_, key), key, spec_.strategy.schedule, what, why));
}

// Refuses numbers of stages and micro-batches that copies of a model cannot share.
void PlanBuilder::refuse_odd_copies() const {
  const Strategy& s = spec_.strategy;
  const auto refuse = [&](std::string_view key, std::string_view of) {
    refuse_with(key, fmt::format("runs {} copies of the model in opposite directions", schedule_.copies),
                fmt::format("choose a multiple of {} {}", schedule_.copies, of));
  };
  if (s.pipeline % schedule_.copies != 0) refuse("strategy.pipeline", "stages");
  if (s.micro_batches() % schedule_.copies != 0) refuse("strategy.global_batch", "micro-batches");
}

std::int64_t PlanBuilder::group_size(Dimension d) const {
  const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(d)];
  return static_cast<std::int64_t>(table.groups[table.member_of[first_rank_]].size());
}

// Whether ranks that hold different parts of the sequence do the same work in every layer.
bool PlanBuilder::ring_is_alike() const {
  const auto& window = spec_.model.sliding_window;
  const auto alike = [&](std::int64_t w) { return blocks_are_alike(spec_.strategy, spec_.sequence, w); };
  return alike(0) && (!window || alike(window->window));
}

Plan PlanBuilder::build() {
  tell_classes_apart();
  const Strategy& s = spec_.strategy;
  for (std::int64_t place = 0, stage = 0; place < s.places(); ++place) {
    while (s.place_of(stage + 1) <= place) ++stage;
    for (class_ = 0; class_ < static_cast<int>(classes_.size()); ++class_) {
      slot_ = static_cast<std::uint32_t>(plan_.slots.size());
      context_.load = classes_[class_].load;
      context_.ring_block = classes_[class_].ring_block;
      context_.duty = classes_[class_].duty;
      enter(stage, place - s.place_of(stage));
      lay_out();
      emit_stage(stage);
    }
  }
  plan_.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size())});
  link_matches();
  return std::move(plan_);
}

Plan make_unchecked_plan(const Spec& spec) {
  refuse_combinations(spec, Limit::plan);
  refuse_virtual_stages(spec);
  return PlanBuilder(spec).build();
}

Plan make_plan(const Spec& spec) {
  Plan plan = make_unchecked_plan(spec);
  check_plan(plan);
  return plan;
}

}  // namespace orrery
