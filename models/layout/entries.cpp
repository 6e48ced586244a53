#include "models/layout/entries.h"

#include <fmt/format.h>

#include "models/layout/replicas.h"

namespace orrery {

static std::uint32_t shared_block(Draft& draft, const std::string& key,
                                  Block (*make)(const BlockContext&, std::vector<Op>&)) {
  return draft.block(fmt::format("{} of {}", key, draft.context.rows),
                     [&] { return make(draft.context, draft.plan.ops); });
}

// Returns a text of the properties in which the forward ops of a model's layers differ: kind, rows, attention window,
// the rank's part of the sequence, the load of their experts, whether they have experts, whether a fixed table assigns
// these to tokens, and whether a loss compares what they read with the other model's hidden states.
static std::string layer_key(const BlockContext& context, std::int64_t layer) {
  const Model& m = context.spec.model;
  const bool experts = has_experts(m, layer), own_loads = experts && !m.moe->loads_file.empty();
  const LayerKind kind = layer_kind(m, layer);
  return fmt::format("layer {} {} {} {} {} {} {} {} {}{}", context.rows, static_cast<int>(context.load),
                     context.ring_block, has_window(m, layer), experts, own_loads ? layer : 0,
                     static_cast<int>(kind.mixer), kind.feed_forward, experts && is_hashed(m, layer),
                     feature_of(context.spec, layer, context.second) >= 0 ? " feature" : "");
}

// Returns the id of a layer's block. Layers with the same ops share a block. Layers differ by layer_key(), or if only
// some of them are recomputed or offload activations to the host.
static std::uint32_t layer_block_of(Draft& draft, std::int64_t layer, std::int64_t index_in_stage) {
  const Spec& spec = draft.facts.spec;
  const BlockContext& context = draft.context;
  const Recompute& r = spec.strategy.recompute;
  const bool recompute =
      r.any() && (!r.layers || index_in_stage < *r.layers) && (!r.every_second_layer || layer % 2 == 1);
  const Offload& o = spec.strategy.offload;
  const bool offload =
      o.activations != MemoryTier::device && (!o.activation_layers || index_in_stage < *o.activation_layers);
  const std::string key =
      fmt::format("{} {} {} {}{}", layer_key(context, layer), recompute, offload,
                  recompute && r.every_second_mlp ? layer % 2 : 0, trains_below(spec.model, layer) ? "" : " lowest");
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

// Returns the entry of a block that sends or receives what one of the two models passes over a boundary between virtual
// stages; nothing if both sides of the boundary are on one stage. upstream: the block sends.
static std::vector<Entry> crossing(Draft& draft, std::int64_t boundary, bool upstream, std::int64_t layer,
                                   bool second = false) {
  draft.context.stage_step = hop(draft.schedule, static_cast<std::size_t>(boundary));
  if (draft.context.stage_step == 0) return {};
  BlockContext& context = second ? draft.second->context : draft.context;
  context.stage_step = draft.context.stage_step;
  context.slices = slices_over(draft, static_cast<std::size_t>(boundary), upstream);
  std::string key = fmt::format("{}{} of {}", second ? "second " : "", upstream ? "send" : "receive", context.rows);
  for (const Slice& s : context.slices) key += fmt::format(" {}.{}.{}", s.offset, s.first, s.rows);
  auto* make = upstream ? send_block : receive_block;
  return {{.block = draft.block(key, [&] { return make(context, draft.plan.ops); }),
           .layer = static_cast<std::int32_t>(layer),
           .transfer = true,
           .second = second}};
}

// Returns the entries of the second model's blocks on a virtual stage, without those that send and receive.
static std::vector<Entry> second_entries(Draft& draft, std::int64_t virtual_stage) {
  const SecondContext& second = *draft.second;
  const Model& m = second.spec.model;
  std::vector<Op>& ops = draft.plan.ops;
  std::vector<Entry> entries;
  const auto add = [&](const std::string& key, std::int64_t layer, const auto& make) {
    const std::uint32_t block = draft.block("second " + key, [&] { return make(second.context, ops); });
    entries.push_back({.block = block, .layer = static_cast<std::int32_t>(layer), .second = true});
  };
  if (virtual_stage == 0) add("embedding", -1, embedding_block);
  for (std::int64_t i = 0; i < second.layers_of[virtual_stage]; ++i) {
    const std::int64_t layer = second.first_layer[virtual_stage] + i;
    add(layer_key(second.context, layer), layer,
        [layer](const BlockContext& c, std::vector<Op>& list) { return layer_block(c, layer, false, list); });
  }
  if (virtual_stage + 1 < std::ssize(second.layers_of)) return entries;
  add("final norm", m.layers, final_norm_block);
  add("output", m.layers, output_block);
  return entries;
}

// Returns the entries of the blocks at the beginning of the model that trains.
static std::vector<Entry> first_entries(Draft& draft) {
  const BlockContext& context = draft.context;
  std::vector<Entry> entries;
  if (draft.schedule.spreads_vocabulary()) {
    if (has_positions_block(context)) entries.push_back({.block = shared_block(draft, "positions", positions_block)});
    return entries;
  }
  for (const std::uint32_t block : vision_blocks(draft)) entries.push_back({.block = block});
  entries.push_back(
      {.block = shared_block(draft, fmt::format("embedding {}", static_cast<int>(context.duty)), embedding_block)});
  return entries;
}

// Returns the entries of the blocks behind the last layer of the model that trains.
static std::vector<Entry> last_entries(Draft& draft) {
  const BlockContext& context = draft.context;
  const Model& model = draft.facts.spec.model;
  std::vector<Entry> entries;
  const auto add = [&](const std::string& key, auto* make) {
    entries.push_back({.block = shared_block(draft, key, make), .layer = static_cast<std::int32_t>(model.layers)});
  };
  if (model.mtp_layers == 0 || !model.hyper_connections) add("final norm", final_norm_block);
  if (model.mtp_layers > 0) add(fmt::format("prediction {}", static_cast<int>(context.load)), prediction_block);
  if (!draft.schedule.spreads_vocabulary()) add(fmt::format("output {}", static_cast<int>(context.duty)), output_block);
  return entries;
}

std::vector<Entry> entries_of(Draft& draft, std::int64_t place) {
  const Schedule& schedule = draft.schedule;
  std::vector<Entry> entries;
  const auto append = [&](const std::vector<Entry>& list) { entries.insert(entries.end(), list.begin(), list.end()); };
  const auto count = static_cast<std::int64_t>(draft.layers_of.size());
  const std::int64_t virtual_stage = place % count;
  const bool first = virtual_stage == 0, last = virtual_stage == count - 1;
  if (!first) append(crossing(draft, place - 1, false, draft.first_layer[virtual_stage]));
  if (!first && draft.second) append(crossing(draft, place - 1, false, draft.second->first_layer[virtual_stage], true));
  if (draft.second) append(second_entries(draft, virtual_stage));
  if (first) append(first_entries(draft));
  // number of layers in earlier chunks of this stage: recompute_layers counts the layers of all chunks of a stage
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < virtual_stage; ++k) {
    if (schedule.stage_of[place - virtual_stage + k] == schedule.stage_of[place]) before += draft.layers_of[k];
  }
  for (std::int64_t i = 0; i < draft.layers_of[virtual_stage]; ++i) {
    const std::int64_t layer = draft.first_layer[virtual_stage] + i;
    entries.push_back({.block = layer_block_of(draft, layer, before + i), .layer = static_cast<std::int32_t>(layer)});
  }
  if (last) append(last_entries(draft));
  if (!last) append(crossing(draft, place, true, draft.first_layer[virtual_stage + 1] - 1));
  if (!last && draft.second)
    append(crossing(draft, place, true, draft.second->first_layer[virtual_stage + 1] - 1, true));
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
