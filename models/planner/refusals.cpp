#include "models/planner/refusals.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "models/layout/versions.h"
#include "models/spec/asynchrony.h"
#include "models/spec/one_queue.h"
#include "models/spec/sequence.h"
#include "models/spec/stragglers.h"

namespace orrery {
namespace {

struct NotBuilt {
  bool asked;
  std::string_view key;
  std::string what = {};  // text behind the key
  std::string_view advice = "leave it out";
};

// Refuses the value of a key. what: what the schedule does that the value does not fit; why: the reason, and what to
// do.
void refuse_with(const Draft& draft, std::string_view key, std::string_view what, std::string_view why) {
  throw Error(fmt::format("{}{}: {} {}; {}", place_of(draft.facts.spec, key), key, draft.facts.spec.strategy.schedule,
                          what, why));
}

void refuse_key(const Draft& draft, std::string_view key, std::string_view why) {
  throw Error(fmt::format("{}{}: {}", place_of(draft.facts.spec, key), key, why));
}

}  // namespace

std::string place_of(const Spec& spec, std::string_view key) {
  for (const Origin& o : spec.origins) {
    if (o.key.starts_with(key) && o.from.find(':') != std::string::npos) return o.from + ": ";
  }
  return "";
}

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

void refuse_units(const Draft& draft) {
  const ShardingRow& row = draft.facts.row;
  const char* by_unit = row.shards_gradients ? "strategy.sharding" : "strategy.offload.gradients";
  if (draft.facts.unit_gradients && draft.facts.spec.model.mtp_layers > 0 && draft.context.ends_interleave)
    refuse_with(
        draft, by_unit, "runs other micro-batches between lookups and further predictions",
        "not built yet where gradients are reduced unit by unit: choose zero1 or none, and keep them on the device");
  const auto weaves = [&](auto&& which) {
    const auto woven_so = [&](const Action& a, const Action& b) { return a.woven && which(a, b); };
    return std::any_of(draft.schedule.order.begin(), draft.schedule.order.end(), [&](const auto& actions) {
      return std::adjacent_find(actions.begin(), actions.end(), woven_so) != actions.end();
    });
  };
  // One of two woven passes would give up the weights while the other reads them.
  const auto any = [](const Action&, const Action&) { return true; };
  if (row.shards_parameters && draft.facts.spec.model.tied_embeddings && draft.context.ends_interleave && weaves(any))
    refuse_with(draft, "strategy.sharding", "weaves passes of both ends of the model",
                "not built yet with gathered weights that both share: choose zero2 or less");
  const auto of_one_chunk = [](const Action& a, const Action& b) { return a.chunk == b.chunk; };
  if (row.shards_parameters && weaves(of_one_chunk))
    refuse_with(draft, "strategy.sharding", "weaves passes over the same weights",
                "not built yet where they are gathered: choose zero2 or less, or leave out overlap.micro_batches");
}

void refuse_both_ways(const Draft& draft) {
  const Schedule& schedule = draft.schedule;
  const Strategy& s = draft.facts.spec.strategy;
  const auto refuse = [&](std::string_view key, std::string_view why) {
    refuse_with(draft, key, fmt::format("runs {} copies of the model in opposite directions", schedule.copies), why);
  };
  const std::string multiple = fmt::format("choose a multiple of {}", schedule.copies);
  if (s.pipeline % schedule.copies != 0) refuse("strategy.pipeline", multiple + " stages");
  if (s.micro_batches() % schedule.copies != 0) refuse("strategy.global_batch", multiple + " micro-batches");
  if (draft.facts.unit_gradients && !is_mirrored(schedule))
    refuse(
        draft.facts.row.shards_gradients ? "strategy.sharding" : "strategy.offload.gradients",
        "they reduce gradients unit by unit, in orders that differ: choose dualpipe, or zero1 or none and gradients on "
        "the device");
  if (draft.facts.validates) refuse("software.validates_after_update", "not built yet with it: leave it out");
  if (s.overlap.gradient_reduce)
    refuse("strategy.overlap.gradient_reduce", "the copies reduce in one order, after the last backward: leave it out");
}

void refuse_shared_vocabulary(const Draft& draft) {
  const Spec& spec = draft.facts.spec;
  const Strategy& s = spec.strategy;
  const auto refuse = [&](bool asked, std::string_view key, std::string_view why) {
    if (asked) refuse_with(draft, key, "lets all stages share the vocabulary", why);
  };
  refuse(s.on_grid(), "strategy.tensor_kind", "not built yet with grids of tensor ranks: choose 1d");
  refuse(spec.model.mtp_layers > 0, "strategy.schedule",
         "not built yet for multi-token prediction: choose another, or model.mtp_layers: 0");
  refuse(spec.model.logit_softcap != 0, "strategy.schedule",
         "not built yet for logits that are capped: choose another, e.g. 1f1b");
  refuse(spec.software.loss_metrics > 0, "software.loss_metrics", "no stage has all logits: set it to 0");
  refuse(spec.software.fused_cross_entropy && spec.software.fused_loss_on != "copy", "software.fused_loss_on",
         "each stage's part of the loss is of an fp32 copy: choose copy");
}

void refuse_replicas(const Draft& draft) {
  const Spec& spec = draft.facts.spec;
  const Schedule& schedule = draft.schedule;
  const ShardingRow& row = draft.facts.row;
  const Strategy& s = spec.strategy;
  const auto refuse = [&](bool asked, std::string_view key, std::string_view what) {
    if (asked) refuse_key(draft, key, fmt::format("not built yet with strategy.stage_replicas: {}", what));
  };
  refuse(schedule.copies > 1 || draft.asynchronous() || !schedule.moves.empty() || schedule.spreads_vocabulary(),
         "strategy.schedule", "choose dapple, or another that has one copy of the model and updates it once a step");
  refuse(s.context > 1, "strategy.context", "choose 1");
  refuse(s.on_grid(), "strategy.tensor_kind", "choose 1d");
  refuse(spec.model.moe.has_value(), "model.moe", "choose a model without experts");
  refuse(spec.model.tied_embeddings && !draft.context.ends_meet && draft.facts.unit_gradients && s.ends_unlike(),
         "strategy.sharding",
         "the ends of the pipeline share a word table, whose gradients are reduced unit by unit over unlike numbers of "
         "ranks; choose none or zero1, or as many ranks for the last stage as for the first");
  refuse(spec.model.mtp_layers > 0, "model.mtp_layers", "set it to 0");
  refuse(row.hybrid || row.master || row.servers, "strategy.sharding", "choose none, zero1, zero2, zero3 or fsdp");
  refuse(s.offload.any(), "strategy.offload", "leave it out");
  refuse(!spec.cluster.stragglers.empty() || spec.cluster.straggler_share > 0, "cluster.stragglers", "leave it out");
}

void refuse_asynchronous(const Draft& draft) {
  const Spec& spec = draft.facts.spec;
  const Strategy& s = spec.strategy;
  const auto refuse = [&](bool asked, std::string_view key, std::string_view why) {
    if (asked) refuse_with(draft, key, "updates weights while micro-batches are on their way", why);
  };
  refuse(s.clip > 0 && s.pipeline > 1, "strategy.clip",
         "a norm over all stages would wait for each of them: set it to 0");
  refuse(s.precision == Precision::fp16, "strategy.precision", "a loss scale over all stages likewise: choose bf16");
  refuse(is_eight_bit(s.precision), "strategy.precision", "not built yet with casts to 8 bits: choose bf16");
  refuse(s.sharding != Sharding::none, "strategy.sharding", "not built yet with shards of them: choose none");
  refuse(s.offload.any(), "strategy.offload", "not built yet with offload: leave it out");
  const bool shared = spec.model.tied_embeddings || spec.model.mtp_layers > 0;
  refuse(shared && s.pipeline > 1, "strategy.schedule",
         "not built yet for tied embeddings and multi-token prediction: choose another, or a model without them");
  refuse(updates_by_step(draft) && draft.plan.update_every < s.pipeline, "strategy.global_batch",
         "two versions are enough for steps of at least as many micro-batches as stages: choose more of them, or "
         "a schedule that updates after each");
}

void refuse_moves(const Draft& draft) {
  const Strategy& s = draft.facts.spec.strategy;
  const auto refuse = [&](bool asked, std::string_view key, std::string_view why) {
    if (asked) refuse_with(draft, key, "leaves activations with another stage", why);
  };
  refuse(draft.facts.spec.model.moe.has_value(), "strategy.schedule",
         "not built yet with experts, whose sizes that stage does not know: choose 1f1b");
  refuse(s.offload.any(), "strategy.offload", "not built yet with offload: leave it out");
  refuse(s.contiguous_activations, "strategy.contiguous_activations", "they cannot lie in one buffer: leave it out");
}

}  // namespace orrery
