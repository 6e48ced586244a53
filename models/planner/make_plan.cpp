#include "models/planner/make_plan.h"

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/partition/layers_of_stages.h"
#include "models/partition/rank_groups.h"
#include "models/plan/check.h"
#include "models/planner/plan_builder.h"
#include "models/schedule/schedule_file.h"
#include "models/spec/asynchrony.h"
#include "models/spec/one_queue.h"
#include "models/spec/sequence.h"
#include "models/spec/sharding.h"
#include "models/spec/stragglers.h"

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

struct NotBuilt {
  bool asked;
  std::string_view key;
  std::string what = {};  // text behind the key
  std::string_view advice = "leave it out";
};

// Refuses what only later versions will plan or price. Better a clear line than a prediction that silently leaves a
// feature out.
void refuse_what_is_not_built(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Cluster& c = spec.cluster;
  const auto& moe = spec.model.moe;
  const bool slow = !c.stragglers.empty() || c.straggler_share > 0;
  const bool later = spec.software.validates_after_update && s.pipeline > 1;
  const ShardingRow& row = row_of(s.sharding);
  const bool apart = row.master || row.servers;  // not all ranks do the same
  const bool snapshots = row.servers && s.parameter_server->snapshot_every > 0;
  const bool copies_gradients = averaging(spec, row) == Averaging::copy;
  const bool chains = row.servers && s.parameter_server->replicas > 1;
  const std::string with = fmt::format(" with sharding: {}", row.name);
  const std::vector<NotBuilt> features = {
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
      {s.fused_buffers && unit_gradients(spec, row_of(s.sharding)), "strategy.fused_buffers",
       " where gradients are reduced unit by unit (zero2, zero3, fsdp)"},
      {s.fused_buffers && copies_gradients, "strategy.fused_buffers",
       " with a stack that copies gradients into buckets of its own"},
      {s.on_grid() && moe, "strategy.tensor_kind", " other than 1d with experts"},
      {s.on_grid() && spec.model.mla, "strategy.tensor_kind", " other than 1d with latent attention"},
      {s.on_grid() && spec.model.mtp_layers > 0, "strategy.tensor_kind", " other than 1d with multi-token prediction"},
      {s.on_grid() && s.context > 1, "strategy.tensor_kind", " other than 1d with context above 1"},
      {s.on_grid() && is_eight_bit(s.precision), "strategy.tensor_kind", " other than 1d with eight-bit products"},
      {s.on_grid() && (s.offload.any() || s.offload.tiling > 1), "strategy.tensor_kind", " other than 1d with offload"},
      {s.on_grid() && s.partition_activations, "strategy.tensor_kind", " other than 1d with partition_activations"},
      {s.on_grid() && s.overlap.tensor, "strategy.tensor_kind", " other than 1d with overlap.tensor"},
      {s.on_grid() && row_of(s.sharding).hybrid, "strategy.tensor_kind", " other than 1d with hsdp"},
      {s.on_grid() && runs_both_ways(s.schedule), "strategy.tensor_kind",
       " other than 1d with several copies of the model"},
      {s.offload.tiling > 1 && is_eight_bit(s.precision), "strategy.offload.tiling", " with eight-bit products"},
      {s.offload.tiling > 1 && s.overlap.tensor, "strategy.offload.tiling", " with overlap.tensor"},
      {s.offload.tiling > 1 && spec.software.own_rows_first && s.tensor > 1 && s.sequence_parallel,
       "strategy.offload.tiling", " with a stack that multiplies its own rows first"},
      {s.offload.optimizer != Device::none && copies_gradients, "strategy.offload.optimizer",
       " with a stack that copies gradients into buckets"},
      {s.overlap.tensor && s.tensor > 1 && !s.sequence_parallel, "strategy.overlap.tensor",
       " without sequence_parallel"},
      {later && moe, "software.validates_after_update", " with experts"},
      {later && s.offload.any(), "software.validates_after_update", " with offload"},
      {later && !s.stage_replicas.empty(), "software.validates_after_update", " with stage_replicas"},
      {slow && row_of(s.sharding).hybrid, "cluster.stragglers", " with sharding: hsdp"},
      {slow && spec.model.moe.has_value(), "cluster.stragglers", " with experts"},
      {slow && runs_both_ways(s.schedule), "cluster.stragglers", " with several copies of the model"},
      {own_pace(s) && s.clip > 0, "strategy.clip", " above 0 where servers take each worker's gradients by themselves",
       "set it to 0"},
      {chains && own_pace(s), "strategy.parameter_server.replicas", " above 1 with a mode other than sync"},
      {chains && s.clip > 0, "strategy.clip", " above 0 where servers have replicas", "set it to 0"},
      {chains && snapshots, "strategy.parameter_server.snapshot_every", " where servers have replicas"},
      {snapshots && own_pace(s), "strategy.parameter_server.snapshot_every", " with a mode other than sync"},
      {snapshots && !s.overlap.parameter_gather, "strategy.parameter_server.snapshot_every",
       " without overlap.parameter_gather"},
      {apart && s.tensor > 1, "strategy.tensor", " above 1" + with},
      {apart && s.pipeline > 1, "strategy.pipeline", " above 1" + with},
      {apart && s.context > 1, "strategy.context", " above 1" + with},
      {apart && spec.model.moe.has_value(), "model.moe", with},
      {apart && spec.model.mtp_layers > 0, "model.mtp_layers", with},
      {apart && s.offload.any(), "strategy.offload", with},
      {apart && s.fused_buffers, "strategy.fused_buffers", with},
      {apart && (s.precision == Precision::fp16 || is_eight_bit(s.precision)), "strategy.precision",
       " other than fp32, tf32 and bf16" + with},
      {c.failures.has_value(), "cluster.failures"},
  };
  for (const NotBuilt& f : features) {
    if (!f.asked) continue;
    const std::string place = place_of(spec, f.key);
    const std::string model = place_of(spec, "model");
    if (place.empty() && f.key.starts_with("model."))
      throw Error(fmt::format("{}model: {} has {}{}, not built yet; choose another", model, spec.model.name,
                              f.key.substr(6), f.what));
    throw Error(fmt::format("{}{}{}: not built yet; {}", place, f.key, f.what, f.advice));
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
      one_queue_(has_one_queue(spec)),
      writer_(plan_) {
  writer_.watch(*this);
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
    // Phase times are taken from blocks, which are not built for all strategies with stage replicas: refuse those
    // first.
    if (!s.stage_replicas.empty()) refuse_replicas();
    if (row.splits || schedule_.spreads_vocabulary()) shape.times = phase_times();
    shape.group = interleave_group(spec_);
    shape.extra_warm_up = s.extra_warm_up;
    schedule_.order = said_at(spec_, "strategy.schedule", [&] { return row.orders(shape); });
    if (row.moves != nullptr) schedule_.moves = row.moves(schedule_.order);
  }
  refuse_units();
  if (schedule_.copies > 1) refuse_both_ways();
  if (schedule_.spreads_vocabulary()) refuse_shared_vocabulary();
  if (asynchronous()) refuse_asynchronous();
  if (!schedule_.moves.empty()) refuse_moves();
  if (!s.stage_replicas.empty()) refuse_replicas();
  turns_ = order_transfers(schedule_, schedule_.spreads_vocabulary() ? shape.times : std::vector<PhaseTimes>());
  plan_validation();
}

// Refuses what gathering and reducing unit by unit cannot do yet where a stage has both ends of the model.
void PlanBuilder::refuse_units() const {
  const char* by_unit = row_.shards_gradients ? "strategy.sharding" : "strategy.offload.gradients";
  if (unit_gradients_ && spec_.model.mtp_layers > 0 && context_.ends_interleave)
    refuse_with(
        by_unit, "runs other micro-batches between lookups and further predictions",
        "not built yet where gradients are reduced unit by unit: choose zero1 or none, and keep them on the device");
  const auto weaves = [&](auto&& which) {
    const auto woven_so = [&](const Action& a, const Action& b) { return a.woven && which(a, b); };
    return std::any_of(schedule_.order.begin(), schedule_.order.end(), [&](const auto& actions) {
      return std::adjacent_find(actions.begin(), actions.end(), woven_so) != actions.end();
    });
  };
  // One of two woven passes would give up the weights while the other reads them.
  const auto any = [](const Action&, const Action&) { return true; };
  if (row_.shards_parameters && spec_.model.tied_embeddings && context_.ends_interleave && weaves(any))
    refuse_with("strategy.sharding", "weaves passes of both ends of the model",
                "not built yet with gathered weights that both share: choose zero2 or less");
  const auto of_one_chunk = [](const Action& a, const Action& b) { return a.chunk == b.chunk; };
  if (row_.shards_parameters && weaves(of_one_chunk))
    refuse_with("strategy.sharding", "weaves passes over the same weights",
                "not built yet where they are gathered: choose zero2 or less, or leave out overlap.micro_batches");
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

void PlanBuilder::refuse_key(std::string_view key, std::string_view why) const {
  throw Error(fmt::format("{}{}: {}", place_of(spec_, key), key, why));
}

// Refuses what is impossible, or not built yet, with several copies of a model.
void PlanBuilder::refuse_both_ways() const {
  const Strategy& s = spec_.strategy;
  const auto refuse = [&](std::string_view key, std::string_view why) {
    refuse_with(key, fmt::format("runs {} copies of the model in opposite directions", schedule_.copies), why);
  };
  const std::string multiple = fmt::format("choose a multiple of {}", schedule_.copies);
  if (s.pipeline % schedule_.copies != 0) refuse("strategy.pipeline", multiple + " stages");
  if (s.micro_batches() % schedule_.copies != 0) refuse("strategy.global_batch", multiple + " micro-batches");
  if (unit_gradients_ && !is_mirrored(schedule_))
    refuse(
        row_.shards_gradients ? "strategy.sharding" : "strategy.offload.gradients",
        "they reduce gradients unit by unit, in orders that differ: choose dualpipe, or zero1 or none and gradients on "
        "the device");
  if (validates()) refuse("software.validates_after_update", "not built yet with it: leave it out");
  if (s.overlap.gradient_reduce)
    refuse("strategy.overlap.gradient_reduce", "the copies reduce in one order, after the last backward: leave it out");
}

// Refuses what is not built yet for stages that share the vocabulary.
void PlanBuilder::refuse_shared_vocabulary() const {
  const Strategy& s = spec_.strategy;
  const auto refuse = [&](bool asked, std::string_view key, std::string_view why) {
    if (asked) refuse_with(key, "lets all stages share the vocabulary", why);
  };
  refuse(s.on_grid(), "strategy.tensor_kind", "not built yet with grids of tensor ranks: choose 1d");
  refuse(spec_.model.mtp_layers > 0, "strategy.schedule",
         "not built yet for multi-token prediction: choose another, or model.mtp_layers: 0");
  refuse(spec_.model.logit_softcap != 0, "strategy.schedule",
         "not built yet for logits that are capped: choose another, e.g. 1f1b");
  refuse(spec_.software.loss_metrics > 0, "software.loss_metrics", "no stage has all logits: set it to 0");
  refuse(spec_.software.fused_cross_entropy && spec_.software.fused_loss_on != "copy", "software.fused_loss_on",
         "each stage's part of the loss is of an fp32 copy: choose copy");
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
  link_matches(plan_, ends_);
  return std::move(plan_);
}

Plan make_unchecked_plan(const Spec& spec) {
  refuse_what_is_not_built(spec);
  return PlanBuilder(spec).build();
}

Plan make_plan(const Spec& spec) {
  Plan plan = make_unchecked_plan(spec);
  check_plan(plan);
  return plan;
}

}  // namespace orrery
