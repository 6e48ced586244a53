#include "models/make_plan.h"

#include <fmt/format.h>

#include "models/check_plan.h"
#include "models/error.h"
#include "models/groups.h"
#include "models/plan_builder.h"
#include "models/schedule_file.h"
#include "models/sequence.h"
#include "models/stages.h"

namespace orrery {
namespace {

// Where a key was given: "spec.yaml:12: ", or "" when it was not.
std::string place_of(const Spec& spec, std::string_view key) {
  for (const Origin& o : spec.origins) {
    if (o.key.starts_with(key) && o.from.find(':') != std::string::npos) return o.from + ": ";
  }
  return "";
}

// What a function that knows no spec refuses, with the place of the key that it refuses.
template <class Function>
auto said_at(const Spec& spec, std::string_view key, Function function) {
  try {
    return function();
  } catch (const Error& e) {
    throw Error(place_of(spec, key) + e.what());
  }
}

struct NotBuilt {
  bool asked;
  std::string_view key;
  std::string_view what = "";  // beyond the key itself
};

// What later versions will plan or price. Better a clear line than a prediction that silently leaves it out.
void refuse_what_is_not_built(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Cluster& c = spec.cluster;
  const auto& moe = spec.model.moe;
  const std::vector<NotBuilt> features = {
      {moe && spec.model.bias && s.expert_tensor > 1, "model.bias", " with experts cut over expert_tensor"},
      {moe && spec.model.bias && moe->shared_gate, "model.bias", " with gated shared experts"},
      {moe && spec.model.parallel_block, "model.parallel_block", " with experts"},
      {moe && s.tensor > 1 && !s.sequence_parallel, "strategy.sequence_parallel",
       ": false with experts and tensor above 1"},
      {spec.model.mla && s.attention == Attention::unfused, "strategy.attention", ": unfused with latent attention"},
      {spec.model.mla && spec.model.positions != Positions::rope, "model.positions", " other than rope with model.mla"},
      {spec.model.mtp_layers > 0 && spec.model.tied_embeddings, "model.mtp_layers", " with tied_embeddings"},
      {spec.model.mtp_layers > 0 && spec.model.positions == Positions::learned, "model.mtp_layers",
       " with learned positions"},
      {spec.model.parallel_block && spec.model.post_norms, "model.post_norms", " with parallel_block"},
      {s.context > 1 && s.attention == Attention::unfused && (s.context_ring > 1 || s.micro_batch > 1),
       "strategy.attention", ": unfused with context above 1, but for context_kind: ulysses and micro_batch: 1"},
      {s.context_ulysses > 1 && spec.model.mla.has_value(), "model.mla", " with heads exchanged (context_kind)"},
      {s.fused_buffers && unit_gradients(spec, row_of(s.sharding)), "strategy.fused_buffers",
       " where gradients are reduced unit by unit (zero2, zero3, fsdp)"},
      {s.fused_buffers && spec.software.gradient_average == "copy", "strategy.fused_buffers",
       " with a stack that copies gradients into buckets of its own"},
      {s.tensor_kind != "1d", "strategy.tensor_kind", " other than 1d"},
      {s.offload.tiling > 1 && is_eight_bit(s.precision), "strategy.offload.tiling", " with eight-bit products"},
      {s.offload.tiling > 1 && s.overlap.tensor, "strategy.offload.tiling", " with overlap.tensor"},
      {s.offload.optimizer != Device::none && spec.software.gradient_average == "copy" && s.data * s.context > 1 &&
           !unit_gradients(spec, row_of(s.sharding)),
       "strategy.offload.optimizer", " with a stack that copies gradients into buckets"},
      {s.overlap.tensor && s.tensor > 1 && !s.sequence_parallel, "strategy.overlap.tensor",
       " without sequence_parallel"},
      {!c.stragglers.empty(), "cluster.stragglers"},
      {c.failures.has_value(), "cluster.failures"},
  };
  for (const NotBuilt& f : features) {
    if (!f.asked) continue;
    const std::string place = place_of(spec, f.key);
    const std::string model = place_of(spec, "model");
    if (place.empty() && f.key.starts_with("model."))
      throw Error(fmt::format("{}model: {} has {}{}, not built yet; choose another", model, spec.model.name,
                              f.key.substr(6), f.what));
    throw Error(fmt::format("{}{}{}: not built yet; leave it out", place, f.key, f.what));
  }
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
  said_at(spec, "strategy.sharding", [&] { return row_of(s.sharding).kind; });
}

}  // namespace

PlanBuilder::PlanBuilder(const Spec& spec)
    : spec_(spec),
      row_(row_of(spec.strategy.sharding)),
      context_(spec_, row_),
      layers_of_(stage_layers(spec)),
      gradient_width_(storage_bytes(spec.strategy.gradient_precision)),
      unit_gradients_(unit_gradients(spec, row_)) {
  std::int64_t first = 0;
  for (const std::int64_t n : layers_of_) {
    first_layer_.push_back(first);
    first += n;
  }
  plan_.ranks = spec.strategy.gpus();
  plan_.micro_batches = spec.strategy.micro_batches();
  plan_.element_bytes = context_.width;
  plan_.dimensions =
      make_groups(spec.strategy, row_.shards_optimizer, row_.hybrid, context_.kv_copies, spec.model.moe.has_value());
  choose_schedule();
}

void PlanBuilder::choose_schedule() {
  const Strategy& s = spec_.strategy;
  ScheduleShape shape = {s.pipeline, s.micro_batches(), s.virtual_stages, {}};
  if (s.schedule == "file") {
    schedule_ = read_schedule(s.schedule_file, shape);
    context_.splits_backward = splits_backward(schedule_);
    context_.ends_meet = ends_meet(schedule_);
  } else {
    const ScheduleRow& row = find_schedule(s.schedule);
    schedule_ = place_chunks(row.placement, shape);
    context_.splits_backward = row.splits;
    context_.ends_meet = ends_meet(schedule_);
    if (row.splits) shape.times = phase_times();
    schedule_.order = said_at(spec_, "strategy.schedule", [&] { return row.orders(shape); });
  }
  if (context_.splits_backward && unit_gradients_)
    throw Error(
        fmt::format("{}strategy.sharding: {} reduces gradients micro-batch by micro-batch, but {} makes those of "
                    "weights later; choose zero1 or none",
                    place_of(spec_, "strategy.sharding"), row_.name, s.schedule));
  if (schedule_.copies > 1) refuse_both_ways();
  turns_ = order_transfers(schedule_);
}

// What two copies of a model cannot do, or not yet.
void PlanBuilder::refuse_both_ways() const {
  const Strategy& s = spec_.strategy;
  const auto refuse = [&](std::string_view key, std::string_view why) {
    throw Error(fmt::format("{}{}: {} runs two copies of the model in opposite directions; {}", place_of(spec_, key),
                            key, s.schedule, why));
  };
  if (s.pipeline % 2 != 0) refuse("strategy.pipeline", "choose an even number of stages");
  if (s.micro_batches() % 2 != 0) refuse("strategy.global_batch", "choose an even number of micro-batches");
  if (unit_gradients_) refuse("strategy.sharding", "it reduces gradients once a step: choose zero1 or none");
  if (s.offload.any()) refuse("strategy.offload", "not built yet with offload");
  if (spec_.model.tied_embeddings || spec_.model.mtp_layers > 0)
    refuse("strategy.schedule", "not built yet for tied embeddings and multi-token prediction");
  if (s.overlap.gradient_reduce)
    refuse("strategy.overlap.gradient_reduce", "the copies reduce in one order, after the last backward: leave it out");
}

std::int64_t PlanBuilder::group_size(Dimension d) const {
  return static_cast<std::int64_t>(plan_.dimensions[static_cast<std::size_t>(d)].groups.front().size());
}

// Whether ranks that hold different parts of the sequence do the same work in every layer.
bool PlanBuilder::ring_is_alike() const {
  const auto& window = spec_.model.sliding_window;
  const auto alike = [&](std::int64_t w) { return blocks_are_alike(spec_.strategy, spec_.sequence, w); };
  return alike(0) && (!window || alike(window->window));
}

// Of a stage's ranks the first member of every expert group may have the busy experts, and the blocks of a context ring
// different work. Classes of one rank each meet in every group: nothing is folded.
void PlanBuilder::tell_classes_apart() {
  classes_ = {{}};
  const bool uneven = unevenly_loaded(spec_), ring = !ring_is_alike();
  if (uneven && ring)
    throw Error(
        "model.moe.imbalance: not built yet with context parallelism whose ranks differ; choose zigzag or uniform");
  if (uneven) {
    const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(Dimension::expert)];
    plan_.class_of_rank.assign(static_cast<std::size_t>(plan_.ranks), 1);
    for (const auto& group : table.groups) plan_.class_of_rank[group.front()] = 0;
    plan_.meeting = {Dimension::expert, Dimension::model, Dimension::world};
    classes_ = {{", busiest experts", ExpertLoad::busiest, 0}, {", other experts", ExpertLoad::others, 0}};
  }
  const bool of_one_rank = uneven && plan_.ranks == spec_.strategy.pipeline * std::ssize(classes_);
  if (ring || of_one_rank) {
    plan_.meeting.clear();
    for (std::size_t d = 0; d < kDimensions; ++d) plan_.meeting.push_back(static_cast<Dimension>(d));
  }
  if (ring) {
    for (const Coordinates& c : coordinates(spec_.strategy))
      plan_.class_of_rank.push_back(static_cast<std::uint16_t>(c.context / spec_.strategy.context_ulysses));
    classes_.clear();
    for (std::int64_t block = 0; block < spec_.strategy.context_ring; ++block)
      classes_.push_back({fmt::format(", context {}", block), ExpertLoad::busiest, block});
  }
}

Plan PlanBuilder::build() {
  tell_classes_apart();
  for (std::int64_t stage = 0; stage < spec_.strategy.pipeline; ++stage) {
    for (class_ = 0; class_ < static_cast<int>(classes_.size()); ++class_) {
      slot_ = static_cast<std::uint32_t>(plan_.slots.size());
      context_.load = classes_[class_].load;
      context_.ring_block = classes_[class_].ring_block;
      lay_out(stage);
      emit_stage(stage);
    }
  }
  plan_.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size())});
  link_matches();
  return std::move(plan_);
}

Plan make_plan(const Spec& spec) {
  refuse_what_is_not_built(spec);
  Plan plan = PlanBuilder(spec).build();
  check_plan(plan);
  return plan;
}

}  // namespace orrery
