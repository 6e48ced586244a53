// PlanBuilder: which blocks each stage has, where their weights lie, and the frames of their buffers.
#include <algorithm>

#include <fmt/format.h>

#include "models/cost/host_time.h"
#include "models/partition/rank_groups.h"
#include "models/planner/order_time.h"
#include "models/planner/plan_builder.h"

namespace orrery {

std::uint32_t PlanBuilder::shared_block(const std::string& key, Block (*make)(const BlockContext&, std::vector<Op>&)) {
  const std::string of_rows = fmt::format("{} of {}", key, context_.rows);
  const auto [it, fresh] = blocks_.try_emplace(of_rows, static_cast<std::uint32_t>(plan_.blocks.size()));
  if (fresh) plan_.blocks.push_back(make(context_, plan_.ops));
  return it->second;
}

// Layers of one kind share a block: they differ in their rows, in their attention window, in whether they are
// recomputed, in whether their activations go to the host, in whether they have experts and in how those are loaded.
std::uint32_t PlanBuilder::layer_kind(std::int64_t layer, std::int64_t index_in_stage) {
  const Recompute& r = spec_.strategy.recompute;
  const bool recompute =
      r.any() && (!r.layers || index_in_stage < *r.layers) && (!r.every_second_layer || layer % 2 == 1);
  const Offload& o = spec_.strategy.offload;
  const bool offload = o.activations != Device::none && (!o.activation_layers || index_in_stage < *o.activation_layers);
  const auto& window = spec_.model.sliding_window;
  const bool experts = has_experts(spec_.model, layer);
  const bool own_loads = experts && !spec_.model.moe->loads_file.empty();
  const std::string key =
      fmt::format("layer {} {} {} {} {} {} {} {} {}", context_.rows, static_cast<int>(context_.load),
                  context_.ring_block, recompute, offload, window ? (layer + 1) % window->every : 0,
                  recompute && r.every_second_mlp ? layer % 2 : 0, experts, own_loads ? layer : 0);
  const auto [it, fresh] = blocks_.try_emplace(key, static_cast<std::uint32_t>(plan_.blocks.size()));
  if (fresh) plan_.blocks.push_back(layer_block(context_, layer, recompute, plan_.ops, offload));
  return it->second;
}

std::vector<Entry> PlanBuilder::entries_of(std::int64_t place) {
  std::vector<Entry> entries;
  const auto count = static_cast<std::int64_t>(layers_of_.size());
  const std::int64_t virtual_stage = place % count;
  const auto layers = static_cast<std::int32_t>(spec_.model.layers);
  const auto add = [&](std::uint32_t block, std::int32_t layer, bool transfer) {
    entries.push_back({.block = block, .layer = layer, .transfer = transfer});
  };
  const auto cross = [&](std::int64_t boundary, const char* name, auto* make, std::int64_t layer) {
    context_.hop = hop(schedule_, static_cast<std::size_t>(boundary));
    if (context_.hop == 0) return;
    context_.slices = slices_over(static_cast<std::size_t>(boundary), boundary == place);
    std::string key = name;
    for (const Slice& s : context_.slices) key += fmt::format(" {}.{}.{}", s.offset, s.first, s.rows);
    add(shared_block(key, make), static_cast<std::int32_t>(layer), true);
  };
  const bool shares = schedule_.spreads_vocabulary();
  if (virtual_stage == 0 && shares && has_positions_block(context_))
    add(shared_block("positions", positions_block), -1, false);
  else if (virtual_stage == 0 && !shares)
    add(shared_block(fmt::format("embedding {}", static_cast<int>(context_.duty)), embedding_block), -1, false);
  else if (virtual_stage > 0)
    cross(place - 1, "receive", receive_block, first_layer_[virtual_stage]);
  std::int64_t before = 0;  // layers of this stage's earlier chunks, for recompute_layers
  for (std::int64_t k = 0; k < virtual_stage; ++k) {
    if (schedule_.stage_of[place - virtual_stage + k] == schedule_.stage_of[place]) before += layers_of_[k];
  }
  for (std::int64_t i = 0; i < layers_of_[virtual_stage]; ++i) {
    const std::int64_t layer = first_layer_[virtual_stage] + i;
    add(layer_kind(layer, before + i), static_cast<std::int32_t>(layer), false);
  }
  if (virtual_stage == count - 1) {
    add(shared_block("final norm", final_norm_block), layers, false);
    if (spec_.model.mtp_layers > 0)
      add(shared_block(fmt::format("prediction {}", static_cast<int>(context_.load)), prediction_block), layers, false);
    if (!shares)
      add(shared_block(fmt::format("output {}", static_cast<int>(context_.duty)), output_block), layers, false);
  } else {
    cross(place, "send", send_block, first_layer_[virtual_stage + 1] - 1);
  }
  return entries;
}

// Entries of a stage's part of a shared vocabulary. The blocks differ on the root stage, which has what the other
// stages get.
std::vector<Entry> PlanBuilder::vocabulary_entries(bool input) {
  SharedVocabulary& shared = context_.shared;
  shared.stage = stage_;
  shared.root = input ? schedule_.stage_of.front() : schedule_.stage_of[schedule_.virtual_stages() - 1];
  const auto entry = [&](const char* name, auto* make, bool transfer) {
    const std::uint32_t block = shared_block(fmt::format("{} {}", name, shared.at_root()), make);
    return Entry{
        .block = block, .layer = input ? -1 : static_cast<std::int32_t>(spec_.model.layers), .transfer = transfer};
  };
  if (input) return {entry("words", words_block, false), entry("words' ways", words_exchange_block, true)};
  return {entry("hidden states' ways", hidden_exchange_block, true), entry("logits", logits_block, false)};
}

namespace {

// The time of a phase of a stage: what its device computes, or what its host takes to issue that, whichever is more.
struct PhaseLength {
  double device = 0, host = 0;  // nanoseconds
  std::int64_t whole() const { return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::max(device, host))); }
};

}  // namespace

// Times of each phase on every virtual stage, then of a stage's part of the output layer and of the lookups, where
// stages share them.
std::vector<PhaseTimes> PlanBuilder::phase_times() {
  constexpr double kNanoseconds = 1e9;
  OrderClock clock(spec_, plan_.dimensions);
  const auto add = [&](PhaseLength& length, std::uint32_t id) {
    length.device += clock.time(plan_.ops[id], context_.width);
    length.host += kNanoseconds * host_time(plan_.ops[id], spec_.software);
  };
  std::vector<PhaseTimes> times;
  const std::size_t stages = layers_of_.size();
  for (std::size_t k = 0; k < stages + (schedule_.spreads_vocabulary() ? 2 : 0); ++k) {
    enter(k < stages ? schedule_.stage_of[k] : 0, 0);
    PhaseLength forward, input, weight;
    for (const Entry& entry : k < stages ? entries_of(static_cast<std::int64_t>(k)) : vocabulary_entries(k > stages)) {
      const Block& block = plan_.blocks[entry.block];
      if (entry.transfer) continue;
      for (const std::uint32_t id : block.forward) add(forward, id);
      for (std::size_t i = 0; i < block.backward.size(); ++i)
        add(i < block.input_gradients ? input : weight, block.backward[i]);
      if (block.role != BlockRole::layer || spec_.software.cuda_graphs) continue;
      for (PhaseLength* pass : {&forward, &input}) pass->host += kNanoseconds * kMicrosecond * spec_.software.layer_us;
    }
    times.push_back({forward.whole(), input.whole(), weight.whole()});
  }
  return times;
}

std::uint32_t PlanBuilder::add_frame(std::uint32_t block) {
  Frame frame;
  frame.block = block;
  frame.slot = slot_;
  frame.first_buffer = plan_.buffers;
  plan_.buffers += static_cast<std::uint32_t>(plan_.blocks[block].slots.size());
  plan_.frames.push_back(frame);
  return static_cast<std::uint32_t>(plan_.frames.size() - 1);
}

// A word table that two stages hold is cut by itself, so that a rank of either stage owns the same part of it; whatever
// else its block has (learned positions, a prediction's layer) is in other regions.
bool PlanBuilder::cut_alike(const Block& block) const {
  const bool shared = spec_.model.tied_embeddings || spec_.model.mtp_layers > 0;
  return shards(Dimension::data) > 1 && shared && !context_.ends_meet && !block.parameters.empty() &&
         block.parameters.front().name == kWordTable;
}

// The ranks that hold the same copy of a weight, over which its gradient is reduced and its states are cut.
Dimension PlanBuilder::copies_of(const LocalParameter& p) const {
  if (p.experts > 0) return Dimension::expert_data;
  return p.name == kWordTable && shares_table_unlike() ? Dimension::embedding : Dimension::data;
}

// Regions of a block's weights: a new one begins where the next weight is copied on other ranks.
std::vector<Region> PlanBuilder::regions_of(const Block& block) const {
  std::vector<Region> regions;
  const bool alone = cut_alike(block);
  for (const LocalParameter& p : block.parameters) {
    if (row_.shards_parameters && p.tile > 0) continue;  // a tile is a unit of its own
    const bool behind_table = alone && &p == &block.parameters[1];
    if (regions.empty() || behind_table || regions.back().group != copies_of(p))
      regions.push_back({p.offset, 0, copies_of(p)});
    regions.back().elements += p.out * p.in;
  }
  return regions;
}

std::int64_t PlanBuilder::shard(const std::vector<Region>& regions) const {
  std::int64_t sum = 0;
  for (const Region& r : regions) sum += shard(r.elements, r.group);
  return sum;
}

// Elements whose states one rank keeps: shards of units where parameters are sharded, else shards of buckets.
std::int64_t PlanBuilder::own_elements(const Chunk& chunk) const {
  if (!row_.shards_parameters && chunk.buckets.empty()) return chunk.elements;
  std::int64_t sum = 0;
  for (const Bucket& b : chunk.buckets) sum += shard(b.elements, b.group);
  if (!row_.shards_parameters) return sum;
  for (const Entry& e : chunk.entries) {
    for (std::uint32_t u = e.owns ? e.unit : kNone; u != kNone; u = plan_.frames[u].next) sum += shard(regions_.at(u));
  }
  return sum;
}

// Whether an entry (of a further prediction) reads the word table in the embedding's unit, on this stage.
bool PlanBuilder::lends_table(const Entry& entry) const {
  const bool predicts = spec_.model.mtp_layers > 0 && plan_.blocks[entry.block].role == BlockRole::layer &&
                        entry.layer == spec_.model.layers;
  return predicts && unit_gradients_ && context_.ends_meet;
}

// Places each block's weights in the chunk's flat buffers, and adds a unit frame for each block.
void PlanBuilder::place_weights(Chunk& chunk) {
  for (Entry& entry : chunk.entries) {
    const Block& block = plan_.blocks[entry.block];
    const std::int64_t elements = block.parameter_elements;
    if (spec_.model.tied_embeddings && context_.ends_meet && block.role == BlockRole::output) {
      entry.owns = false;
      entry.unit = table_chunk().entries.front().unit;
      continue;
    }
    entry.base = chunk.elements;
    chunk.elements += elements;
    for (const LocalParameter& p : block.parameters) {
      for (const Dimension group : tensor_axes(spec_.strategy))
        chunk.partial_elements[group] += p.summed_over(group) ? p.out * p.in : 0;
      chunk.kv_elements += p.kv_rows * p.in;
    }
    const std::vector<Region> regions = regions_of(block);
    std::int64_t together = 0;
    for (const Region& r : regions) together += r.elements;
    entry.unit = add_unit(together, regions);
    plan_.frames[entry.unit].layer = entry.layer;
    plan_.frames[entry.unit].base = entry.base;
    if (lends_table(entry)) plan_.frames[entry.unit].previous = table_chunk().entries.front().unit;
    if (row_.shards_parameters) add_tile_units(entry);
  }
}

std::uint32_t PlanBuilder::add_unit(std::int64_t elements, const std::vector<Region>& regions) {
  const std::string key = fmt::format("unit {} {} {}", elements, regions.size(), shard(regions));
  const auto [it, fresh] = blocks_.try_emplace(key, static_cast<std::uint32_t>(plan_.blocks.size()));
  if (fresh) {
    const Bytes shard_bytes = row_.fp32_shards || host_parameters() ? shard(regions) * context_.width : 0;
    const Bytes cast = gradient_width_ != context_.width ? elements * gradient_width_ : 0;
    plan_.blocks.push_back({.name = "unit",
                            .role = BlockRole::unit,
                            .slots = {{"gathered parameters", row_.shards_parameters ? elements * context_.width : 0,
                                       Category::parameters},
                                      {"cast shard", shard_bytes, Category::buffers},
                                      {"unit gradients", elements * context_.width, Category::gradients},
                                      {"cast gradients", cast, Category::buffers}}});
    add_staging(plan_.blocks.back(), shard(regions));
    const Bytes whole = elements * context_.width;
    plan_.blocks.back().slots.push_back({"arrived parameters", copies_out(regions) ? whole : 0, Category::parameters});
    plan_.blocks.back().slots.push_back(
        {"joined gradients", joins_gradients(regions) ? whole : 0, Category::gradients});
  }
  const std::uint32_t frame = add_frame(it->second);
  regions_[frame] = regions;
  return frame;
}

// Adds a unit for each weight tile of an entry, linked behind the entry's unit in the order of the tiles' numbers.
void PlanBuilder::add_tile_units(const Entry& entry) {
  std::uint32_t before = entry.unit;
  // a copy: units add to plan_.blocks
  const std::vector<LocalParameter> parameters = plan_.blocks[entry.block].parameters;
  for (const LocalParameter& p : parameters) {
    if (p.tile == 0) continue;
    const std::int64_t elements = p.out * p.in;
    const std::uint32_t tile = add_unit(elements, {{0, elements, copies_of(p)}});
    plan_.frames[tile].layer = entry.layer;
    plan_.frames[tile].base = entry.base + p.offset;
    plan_.frames[before].next = tile;
    before = tile;
  }
}

// The frame that ends the virtual stage before a chunk, where that lies on the same stage.
std::uint32_t PlanBuilder::handed_over(const Chunk& chunk, std::int32_t micro_batch) const {
  const std::int32_t k = chunk.place;
  const bool shares = schedule_.spreads_vocabulary();
  const bool output = shares && chunk.number == schedule_.output_chunk, begins = k % schedule_.virtual_stages() == 0;
  if (output ? schedule_.stage_of[k - 1] != stage_ : k < 0 || (begins && !shares)) return kNone;
  if (!output && !begins && hop(schedule_, static_cast<std::size_t>(k - 1)) != 0) return kNone;
  const Chunk& before = !output && begins ? table_chunk() : chunks_[schedule_.chunk_of[k - 1]];
  return before.frames[(micro_batch + 1) * before.entries.size() - 1];
}

void PlanBuilder::make_frames(Chunk& chunk) {
  const std::string key = fmt::format("state {} {}", slot_, chunk.place);
  blocks_[key] = static_cast<std::uint32_t>(plan_.blocks.size());
  plan_.blocks.push_back(state_block(chunk));
  chunk.state = add_frame(blocks_[key]);
  const std::int32_t c = chunk.number;
  plan_.frames[chunk.state].chunk = c;
  const bool borrows = spec_.model.mtp_layers > 0 && context_.ends_meet && c != table_chunk().number;
  if (borrows) plan_.frames[chunk.state].previous = table_chunk().state;
  add_versions(chunk);
  add_tiles(chunk);
  for (std::int32_t i = 0; i < plan_.micro_batches; ++i) {
    for (std::size_t e = 0; e < chunk.entries.size(); ++e) {
      const Entry& entry = chunk.entries[e];
      const std::uint32_t id = add_frame(entry.block);
      Frame& frame = plan_.frames[id];
      frame.unit = entry.unit;
      frame.state = entry.owns ? chunk.state : table_chunk().state;
      frame.weights = weights_of(chunk, i);
      frame.layer = entry.layer;
      frame.micro_batch = i;
      frame.chunk = c;
      frame.base = entry.base;
      const std::uint32_t previous = e > 0 ? id - 1 : handed_over(chunk, i);
      frame.previous = previous;
      if (previous != kNone) plan_.frames[previous].next = id;
      chunk.frames.push_back(id);
    }
  }
}

// Finds the ranks that run the slot being laid out: those of one class of a stage.
void PlanBuilder::find_ranks(RankSlot& slot) const {
  const std::vector<Coordinates> at = coordinates(spec_.strategy);
  const bool several = spec_.strategy.replicas_of(slot.stage) > 1;
  slot.name = fmt::format("stage {}{}{}", slot.stage, several ? fmt::format(", replica {}", replica_) : "",
                          classes_[class_].name);
  slot.representative = -1;
  slot.multiplicity = 0;
  slot.server = classes_[class_].duty == Duty::server;
  for (std::int64_t r = 0; r < plan_.ranks; ++r) {
    const Coordinates place = r < plan_.workers() ? at[r] : Coordinates{};
    if (place.pipeline != slot.stage || place.replica != replica_ || plan_.class_of(r) != class_) continue;
    if (slot.representative < 0) slot.representative = r;
    ++slot.multiplicity;
  }
}

void PlanBuilder::find_micro_batches(Chunk& chunk) const {
  const std::int32_t c = chunk.number;
  const auto& order = schedule_.order[stage_];
  const auto enters = [&](const Action& a) { return a.chunk == c && a.phase == Phase::forward; };
  const auto first = std::find_if(order.begin(), order.end(), enters);
  if (first == order.end()) return;
  chunk.first_micro_batch = first->micro_batch;
  chunk.micro_batches = std::count_if(first, order.end(), enters) * plan_.update_every / plan_.micro_batches;
  const auto last = std::find_if(order.rbegin(), order.rend(), [&](const Action& a) { return a.chunk == c; });
  chunk.last_micro_batch = last->micro_batch;
}

// Chunks in the order of the model. Copies of a virtual stage reduce its gradients together, so all ranks take chunks
// in this order.
std::vector<Chunk*> PlanBuilder::in_model_order() {
  std::vector<Chunk*> chunks;
  for (Chunk& chunk : chunks_) chunks.push_back(&chunk);
  const std::int64_t count = schedule_.virtual_stages();
  const auto place = [&](const Chunk* c) { return schedule_.copies > 1 ? c->place % count : c->place; };
  std::sort(chunks.begin(), chunks.end(), [&](auto* a, auto* b) { return place(a) < place(b); });
  return chunks;
}

void PlanBuilder::lay_out_chunk(std::int32_t number, std::int64_t place) {
  Chunk& chunk = chunks_[number];
  chunk.number = number;
  chunk.place = static_cast<std::int32_t>(place);
  find_micro_batches(chunk);
  const bool input = number == schedule_.input_chunk, output = number == schedule_.output_chunk;
  chunk.entries = input || output ? vocabulary_entries(input) : entries_of(place);
  place_weights(chunk);
  make_buckets(chunk);
  chunk.own = own_elements(chunk);
  make_frames(chunk);
}

// The chunk whose word table others on the stage may use. A stage that ends one copy of the model begins the other.
const Chunk& PlanBuilder::table_chunk() const {
  if (schedule_.spreads_vocabulary()) return chunks_[schedule_.input_chunk];
  for (std::int64_t first = 0; first < std::ssize(schedule_.stage_of); first += schedule_.virtual_stages()) {
    if (schedule_.copies > 1 && schedule_.stage_of[first] == stage_) return chunks_[schedule_.chunk_of[first]];
  }
  return chunks_[0];
}

// Lays out all chunks of a stage. A chunk whose word table other chunks use comes before those.
void PlanBuilder::lay_out() {
  chunks_.clear();
  const bool shares = schedule_.spreads_vocabulary();
  chunks_.resize(static_cast<std::size_t>(spec_.strategy.virtual_stages * schedule_.copies + (shares ? 2 : 0)));
  if (shares) lay_out_chunk(schedule_.input_chunk, -1);
  std::vector<std::int64_t> places;
  for (std::size_t k = 0; k < schedule_.stage_of.size(); ++k) {
    if (schedule_.stage_of[k] == stage_) places.push_back(static_cast<std::int64_t>(k));
  }
  const auto begins = [&](std::int64_t k) { return k % schedule_.virtual_stages() == 0; };
  std::stable_partition(places.begin(), places.end(), begins);
  for (const std::int64_t k : places) lay_out_chunk(schedule_.chunk_of[k], k);
  if (shares) lay_out_chunk(schedule_.output_chunk, schedule_.virtual_stages());
  count_gradients();
  RankSlot slot;
  slot.stage = stage_;
  find_ranks(slot);
  slot.frame = add_rank_frame();
  slot.versions = versions_.kept;
  slot.staleness = versions_.staleness;
  add_arena();
  plan_.slots.push_back(slot);
}

std::uint32_t PlanBuilder::add_rank_frame() {
  const Bytes fused = fused_bytes();
  const std::string key = fmt::format("rank {}", fused);
  const auto [it, fresh] = blocks_.try_emplace(key, static_cast<std::uint32_t>(plan_.blocks.size()));
  if (fresh) {
    const Bytes norm = takes_norm() ? 4 : 0, scale = half() ? 4 : 0, other = validates() ? 4 : 0;
    plan_.blocks.push_back({.name = "rank",
                            .role = BlockRole::rank,
                            .slots = {{"squared norm", norm, Category::workspace},
                                      {"found infinity", scale, Category::workspace},
                                      {"loss scale", scale, Category::workspace},
                                      {"next squared norm", delayed() ? norm : 0, Category::workspace},
                                      {"fused buffer", fused, Category::buffers},
                                      {"due loss scale", delayed() ? scale : 0, Category::workspace},
                                      {"norm of the stages before", other, Category::workspace},
                                      {"norm of all stages", other, Category::workspace}}});
  }
  return add_frame(it->second);
}

}  // namespace orrery
