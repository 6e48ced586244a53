#include "models/layout/entries.h"

#include <fmt/format.h>

#include "models/layout/replicas.h"

namespace orrery {

static std::uint32_t shared_block(Draft& draft, const std::string& key,
                                  Block (*make)(const BlockContext&, std::vector<Op>&)) {
  return draft.block(fmt::format("{} of {}", key, draft.context.rows),
                     [&] { return make(draft.context, draft.plan.ops); });
}

// Returns the id of a layer's block. Layers with the same ops share a block. Layers differ if their kind, their rows,
// their attention window or the load of their experts differs, or if only some of them are recomputed, offload
// activations to the host, have experts, or have experts that a fixed table assigns to tokens.
static std::uint32_t layer_block_of(Draft& draft, std::int64_t layer, std::int64_t index_in_stage) {
  const Spec& spec = draft.facts.spec;
  const BlockContext& context = draft.context;
  const Recompute& r = spec.strategy.recompute;
  const bool recompute =
      r.any() && (!r.layers || index_in_stage < *r.layers) && (!r.every_second_layer || layer % 2 == 1);
  const Offload& o = spec.strategy.offload;
  const bool offload =
      o.activations != MemoryTier::device && (!o.activation_layers || index_in_stage < *o.activation_layers);
  const bool experts = has_experts(spec.model, layer);
  const bool own_loads = experts && !spec.model.moe->loads_file.empty();
  const LayerKind kind = layer_kind(spec.model, layer);
  const std::string key =
      fmt::format("layer {} {} {} {} {} {} {} {} {} {} {} {}", context.rows, static_cast<int>(context.load),
                  context.ring_block, recompute, offload, has_window(spec.model, layer),
                  recompute && r.every_second_mlp ? layer % 2 : 0, experts, own_loads ? layer : 0,
                  static_cast<int>(kind.mixer), kind.feed_forward, experts && is_hashed(spec.model, layer)) +
      (trains_below(spec.model, layer) ? "" : " lowest");
  return draft.block(key, [&] { return layer_block(context, layer, recompute, draft.plan.ops, offload); });
}

// Returns the ids of the blocks of the vision encoder, from the first; none if samples have no images. The encoder's
// layers are recomputed in backward if all layers of the text model are.
static std::vector<std::uint32_t> vision_blocks(Draft& draft) {
  if (!draft.vision) return {};
  const VisionContext& vision = *draft.vision;
  const Model& encoder = vision.spec.model;
  std::vector<Op>& ops = draft.plan.ops;
  const Recompute& r = draft.facts.spec.strategy.recompute;
  const bool recompute = r.any() && !r.layers && !r.every_second_layer;
  std::vector<std::uint32_t> blocks{draft.block("vision patches", [&] { return patches_block(vision, ops); })};
  for (std::int64_t i = 0; i < encoder.layers; ++i) {
    const std::string key = fmt::format("vision layer {} {} {}", has_window(encoder, i), trains_below(encoder, i),
                                        recompute && r.every_second_mlp ? i % 2 : 0);
    blocks.push_back(draft.block(key, [&] { return layer_block(vision.patches, i, recompute, ops); }));
  }
  blocks.push_back(
      draft.block("vision projector", [&] { return projector_block(vision, draft.facts.spec.model.hidden, ops); }));
  return blocks;
}

std::vector<Entry> entries_of(Draft& draft, std::int64_t place) {
  BlockContext& context = draft.context;
  const Schedule& schedule = draft.schedule;
  std::vector<Entry> entries;
  const auto count = static_cast<std::int64_t>(draft.layers_of.size());
  const std::int64_t virtual_stage = place % count;
  const auto layers = static_cast<std::int32_t>(draft.facts.spec.model.layers);
  const auto add = [&](std::uint32_t block, std::int32_t layer, bool transfer) {
    entries.push_back({.block = block, .layer = layer, .transfer = transfer});
  };
  const auto cross = [&](std::int64_t boundary, const char* name, auto* make, std::int64_t layer) {
    context.stage_step = hop(schedule, static_cast<std::size_t>(boundary));
    if (context.stage_step == 0) return;
    context.slices = slices_over(draft, static_cast<std::size_t>(boundary), boundary == place);
    std::string key = name;
    for (const Slice& s : context.slices) key += fmt::format(" {}.{}.{}", s.offset, s.first, s.rows);
    add(shared_block(draft, key, make), static_cast<std::int32_t>(layer), true);
  };
  const bool shares = schedule.spreads_vocabulary();
  if (virtual_stage == 0 && shares && has_positions_block(context))
    add(shared_block(draft, "positions", positions_block), -1, false);
  else if (virtual_stage == 0 && !shares) {
    for (const std::uint32_t block : vision_blocks(draft)) add(block, -1, false);
    add(shared_block(draft, fmt::format("embedding {}", static_cast<int>(context.duty)), embedding_block), -1, false);
  } else if (virtual_stage > 0)
    cross(place - 1, "receive", receive_block, draft.first_layer[virtual_stage]);
  // number of layers in earlier chunks of this stage: recompute_layers counts the layers of all chunks of a stage
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < virtual_stage; ++k) {
    if (schedule.stage_of[place - virtual_stage + k] == schedule.stage_of[place]) before += draft.layers_of[k];
  }
  for (std::int64_t i = 0; i < draft.layers_of[virtual_stage]; ++i) {
    const std::int64_t layer = draft.first_layer[virtual_stage] + i;
    add(layer_block_of(draft, layer, before + i), static_cast<std::int32_t>(layer), false);
  }
  if (virtual_stage == count - 1) {
    const Model& model = draft.facts.spec.model;
    if (model.mtp_layers == 0 || !model.hyper_connections)
      add(shared_block(draft, "final norm", final_norm_block), layers, false);
    if (model.mtp_layers > 0)
      add(shared_block(draft, fmt::format("prediction {}", static_cast<int>(context.load)), prediction_block), layers,
          false);
    if (!shares)
      add(shared_block(draft, fmt::format("output {}", static_cast<int>(context.duty)), output_block), layers, false);
  } else {
    cross(place, "send", send_block, draft.first_layer[virtual_stage + 1] - 1);
  }
  return entries;
}

std::vector<Entry> vocabulary_entries(Draft& draft, bool input) {
  const Schedule& schedule = draft.schedule;
  SharedVocabulary& shared = draft.context.shared;
  shared.stage = draft.at.stage;
  shared.root = input ? schedule.stage_of.front() : schedule.stage_of[schedule.virtual_stages() - 1];
  const auto entry = [&](const char* name, auto* make, bool transfer) {
    const std::uint32_t block = shared_block(draft, fmt::format("{} {}", name, shared.at_root()), make);
    return Entry{.block = block,
                 .layer = input ? -1 : static_cast<std::int32_t>(draft.facts.spec.model.layers),
                 .transfer = transfer};
  };
  if (input)
    return {entry("token embeddings", token_embeddings_block, false),
            entry("embedding exchange", embedding_exchange_block, true)};
  return {entry("hidden-state exchange", hidden_state_exchange_block, true), entry("logits", logits_block, false)};
}

}  // namespace orrery
