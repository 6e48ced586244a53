// PlanBuilder: schedules without flushes, whose plans hold several steps and several versions of the weights.
#include <algorithm>

#include "models/planner/plan_builder.h"

namespace orrery {

// Sets the number of steps in a plan: two steps to compare lie between those that fill the pipeline and those that
// empty it. The pipeline is filled when the last stage's gradients have come back to the first a few times, p
// micro-batches each.
void PlanBuilder::take_steps(Updates updates) {
  if (updates == Updates::flush) return;
  const std::int64_t p = spec_.strategy.pipeline, m = plan_.micro_batches;
  const std::int64_t fill = ceil_div(3 * p, m), drain = ceil_div(p, m);
  plan_.reported = fill + 1;
  plan_.steps = fill + 2 + drain;
  plan_.micro_batches = m * plan_.steps;
  plan_.update_every = updates == Updates::every_step ? m : 1;
}

// Refuses steps of fewer micro-batches than stages where two versions of the weights are to be enough.
void PlanBuilder::refuse_short_steps() const {
  if (updates_by_step() && plan_.update_every < spec_.strategy.pipeline)
    refuse_with("strategy.global_batch", "updates weights while micro-batches are on their way",
                "two versions are enough for steps of at least as many micro-batches as stages: choose more of them, "
                "or a schedule that updates after each");
}

// Whether the schedule updates once a step (PipeDream-2BW), of however many micro-batches.
bool PlanBuilder::updates_by_step() const {
  return find_schedule(spec_.strategy.schedule).updates == Updates::every_step;
}

// Adds a frame for each further version of the weights; the first version is the state's own weights.
void PlanBuilder::add_versions(Chunk& chunk) {
  chunk.versions = {chunk.state};
  if (!asynchronous()) return;
  const auto& order = schedule_.order;
  const bool of_first = spec_.strategy.vertical_sync || updates_by_step();
  versions_ = weight_versions(order[stage_], order[of_first ? 0 : stage_], plan_.update_every);
  if (versions_.kept == 1) return;
  Slot weights = plan_.blocks[plan_.frames[chunk.state].block].slots[kParameters];
  weights.name = "older parameters";
  const auto block = static_cast<std::uint32_t>(plan_.blocks.size());
  plan_.blocks.push_back({.name = "version", .role = BlockRole::version, .slots = {weights}});
  while (static_cast<std::int64_t>(chunk.versions.size()) < versions_.kept) chunk.versions.push_back(add_frame(block));
}

std::uint32_t PlanBuilder::version(const Chunk& chunk, std::int64_t updates) const {
  return chunk.versions[static_cast<std::size_t>(updates) % chunk.versions.size()];
}

std::uint32_t PlanBuilder::weights_of(const Chunk& chunk, std::int32_t micro_batch) const {
  return asynchronous() ? version(chunk, versions_.met[static_cast<std::size_t>(micro_batch)]) : kNone;
}

// Whether an update comes after this action, and not at the end of the plan.
bool PlanBuilder::ends_update(const Action& action) const {
  return asynchronous() && action.phase == Phase::backward && (action.micro_batch + 1) % plan_.update_every == 0;
}

// The frame of the next update, which reads one version and makes another.
std::uint32_t PlanBuilder::update_frame(const Chunk& chunk, std::uint32_t from, std::uint32_t to) {
  const auto [it, fresh] = blocks_.try_emplace("update", static_cast<std::uint32_t>(plan_.blocks.size()));
  if (fresh) plan_.blocks.push_back({.name = "update", .role = BlockRole::update});
  const std::uint32_t frame = add_frame(it->second);
  Frame& f = plan_.frames[frame];
  f.state = chunk.state;
  f.previous = from;
  f.weights = to;
  f.micro_batch = static_cast<std::int32_t>((updates_ + 1) * plan_.update_every - 1);
  return frame;
}

void PlanBuilder::copy_weights(const Chunk& chunk, std::uint32_t frame) {
  const Op copy = {.name = "copy weights",
                   .work = Cast{chunk.elements, context_.width, context_.width},
                   .phase = Phase::step,
                   .optimizer = true,
                   .operands = {{Scope::previous, Access::read, kParameters, -1}, state(kParameters, Access::write)}};
  emit(op_id(copy), frame);
}

// The frame on which the next update of a chunk works. Weights that are updated in place are first copied to the place
// of the new version.
std::uint32_t PlanBuilder::begin_update(const Chunk& chunk, bool in_place) {
  if (!asynchronous()) return chunk.state;
  const std::uint32_t from = version(chunk, updates_), to = version(chunk, updates_ + 1);
  const std::uint32_t frame = update_frame(chunk, from, to);
  if (in_place && from != to) copy_weights(chunk, frame);
  return frame;
}

// Ends an update; the next one begins with gradients of its own.
void PlanBuilder::finish_update() {
  end_step();
  ++updates_;
  count_gradients();
}

// Puts the newest weights where the weights were before the first update, so that the plan can run again.
void PlanBuilder::settle() {
  for (const Chunk& chunk : chunks_) {
    const std::uint32_t newest = version(chunk, updates_);
    if (newest != chunk.state) copy_weights(chunk, update_frame(chunk, newest, chunk.state));
  }
}

}  // namespace orrery
