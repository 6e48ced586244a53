#include "models/layout/layout.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "models/layout/arena.h"
#include "models/layout/buckets.h"
#include "models/layout/entries.h"
#include "models/layout/host_buffers.h"
#include "models/layout/layout_state.h"
#include "models/layout/unit_frames.h"
#include "models/layout/versions.h"
#include "models/layout/whole_layers.h"
#include "models/partition/rank_groups.h"

namespace orrery {

// Returns the id of the frame (buffers) of the last block of the virtual stage before a chunk, if that virtual stage is
// on the same pipeline stage, so that activations pass between the two without a transfer; else kNone.
static std::uint32_t handed_over(const Draft& draft, const Chunk& chunk, std::int32_t micro_batch) {
  const Schedule& schedule = draft.schedule;
  const std::int32_t k = chunk.place;
  const bool shares = schedule.spreads_vocabulary();
  const bool output = shares && chunk.number == schedule.output_chunk, begins = k % schedule.virtual_stages() == 0;
  if (output ? schedule.stage_of[k - 1] != draft.at.stage : k < 0 || (begins && !shares)) return kNone;
  if (!output && !begins && hop(schedule, static_cast<std::size_t>(k - 1)) != 0) return kNone;
  const Chunk& before = !output && begins ? draft.table_chunk() : draft.layout.chunks[schedule.chunk_of[k - 1]];
  return before.frames[(micro_batch + 1) * before.entries.size() - 1];
}

// Returns the id of the frame (buffers) of the block whose output is the input of entry number e, which is of the same
// model; kNone if there is none on this stage. id: the id of the entry's own frame.
static std::uint32_t frame_before(const Draft& draft, const Chunk& chunk, std::size_t e, std::uint32_t id,
                                  std::int32_t micro_batch) {
  for (std::size_t b = e; b-- > 0;) {
    if (chunk.entries[b].second == chunk.entries[e].second) return id - static_cast<std::uint32_t>(e - b);
  }
  return handed_over(draft, chunk, micro_batch);
}

// Lets blocks of a student read the hidden states that blocks of its teacher have read (SecondModel::Features).
static void join_features(const Spec& spec, Plan& plan, const Chunk& chunk, std::int32_t micro_batch) {
  if (!spec.second || spec.second->features.student.empty()) return;
  std::map<std::int64_t, std::uint32_t> frames[2];  // frames of student and teacher by the pair of hidden states
  for (std::size_t e = 0; e < chunk.entries.size(); ++e) {
    const Entry& entry = chunk.entries[e];
    const BlockRole role = plan.blocks[entry.block].role;
    const std::int64_t pair = feature_of(spec, entry.layer, entry.second);
    if (pair >= 0 && (role == BlockRole::layer || role == BlockRole::final_norm))
      frames[entry.second ? 1 : 0][pair] = chunk.frame_of(micro_batch, e);
  }
  for (const auto& [pair, frame] : frames[0]) plan.frames[frame].beside = frames[1].at(pair);
}

// Makes the second model's last block write its output into a buffer of the trained model's last block.
static void join_models(Plan& plan, const Chunk& chunk, std::int32_t micro_batch) {
  std::uint32_t last[2] = {kNone, kNone};  // ids of the frames of both models' output blocks
  for (std::size_t e = 0; e < chunk.entries.size(); ++e) {
    const Entry& entry = chunk.entries[e];
    if (plan.blocks[entry.block].role == BlockRole::output) last[entry.second ? 1 : 0] = chunk.frame_of(micro_batch, e);
  }
  if (last[1] != kNone) plan.frames[last[1]].next = last[0];
}

static void find_micro_batches(const Draft& draft, Chunk& chunk) {
  const std::int32_t c = chunk.number;
  const auto& order = draft.schedule.order[draft.at.stage];
  const auto enters = [&](const Action& a) { return a.chunk == c && a.phase == Phase::forward; };
  const auto first = std::find_if(order.begin(), order.end(), enters);
  if (first == order.end()) return;
  chunk.first_micro_batch = first->micro_batch;
  chunk.micro_batches = std::count_if(first, order.end(), enters) * draft.plan.update_every / draft.plan.micro_batches;
  const auto last = std::find_if(order.rbegin(), order.rend(), [&](const Action& a) { return a.chunk == c; });
  chunk.last_micro_batch = last->micro_batch;
}

static void make_frames(Draft& draft, Chunk& chunk) {
  Plan& plan = draft.plan;
  plan.blocks.push_back(state_block(draft, chunk));
  chunk.state = draft.add_frame(static_cast<std::uint32_t>(plan.blocks.size() - 1));
  const std::int32_t c = chunk.number;
  plan.frames[chunk.state].chunk = c;
  const bool borrows =
      draft.facts.spec.model.mtp_layers > 0 && draft.context.ends_meet && c != draft.table_chunk().number;
  if (borrows) plan.frames[chunk.state].previous = draft.table_chunk().state;
  add_versions(draft, chunk);
  add_tiles(draft, chunk);
  for (std::int32_t i = 0; i < plan.micro_batches; ++i) {
    for (std::size_t e = 0; e < chunk.entries.size(); ++e) {
      const Entry& entry = chunk.entries[e];
      const std::uint32_t id = draft.add_frame(entry.block);
      Frame& frame = plan.frames[id];
      frame.unit = entry.unit;
      frame.state = entry.owns ? chunk.state : draft.table_chunk().state;
      frame.weights = weights_of(draft, chunk, i);
      frame.layer = entry.layer;
      frame.micro_batch = i;
      frame.chunk = c;
      frame.base = entry.base;
      frame.frozen_base = entry.frozen_base;
      const std::uint32_t previous = frame_before(draft, chunk, e, id, i);
      frame.previous = previous;
      if (previous != kNone) plan.frames[previous].next = id;
      chunk.frames.push_back(id);
    }
    join_models(plan, chunk, i);
    join_features(draft.facts.spec, plan, chunk, i);
  }
}

void find_ranks(const Draft& draft, RankClass& slot) {
  const Plan& plan = draft.plan;
  const std::vector<Coordinates>& at = draft.coordinates;
  const bool several = draft.facts.spec.strategy.replicas_of(slot.stage) > 1;
  slot.name = fmt::format("stage {}{}{}", slot.stage, several ? fmt::format(", replica {}", draft.at.replica) : "",
                          draft.kinds[draft.at.rank_kind].name);
  slot.representative = -1;
  slot.multiplicity = 0;
  slot.server = draft.kinds[draft.at.rank_kind].duty == Duty::server;
  for (std::int64_t r = 0; r < plan.ranks; ++r) {
    const Coordinates place = r < plan.workers() ? at[r] : Coordinates{};
    if (place.pipeline != slot.stage || place.replica != draft.at.replica || plan.kind_of(r) != draft.at.rank_kind)
      continue;
    if (slot.representative < 0) slot.representative = r;
    ++slot.multiplicity;
  }
}

static void lay_out_chunk(Draft& draft, std::int32_t number, std::int64_t place) {
  Chunk& chunk = draft.layout.chunks[number];
  chunk.number = number;
  chunk.place = static_cast<std::int32_t>(place);
  find_micro_batches(draft, chunk);
  const bool input = number == draft.schedule.input_chunk, output = number == draft.schedule.output_chunk;
  chunk.entries = input || output ? vocabulary_entries(draft, input) : entries_of(draft, place);
  place_weights(draft, chunk);
  make_buckets(draft, chunk);
  chunk.weights.own = own_elements(draft, chunk);
  chunk.weights.own_vectors = own_vectors(draft, chunk);
  make_frames(draft, chunk);
}

static std::uint32_t add_rank_frame(Draft& draft) {
  const PlanFacts& facts = draft.facts;
  const Bytes fused = fused_bytes(draft);
  const Bytes norm = facts.takes_norm() ? 4 : 0, scale = facts.half ? 4 : 0, other = facts.validates ? 4 : 0;
  const auto make = [&] {
    return Block{.name = "rank",
                 .role = BlockRole::rank,
                 .buffers = {{"squared norm", norm, Category::workspace},
                             {"found infinity", scale, Category::workspace},
                             {"loss scale", scale, Category::workspace},
                             {"next squared norm", facts.delayed() ? norm : 0, Category::workspace},
                             {"fused buffer", fused, Category::buffers},
                             {"due loss scale", facts.norm_tells_infinity() ? scale : 0, Category::workspace},
                             {"norm of the stages before", other, Category::workspace},
                             {"norm of all stages", other, Category::workspace}}};
  };
  return draft.add_frame(draft.block(fmt::format("rank {}", fused), make));
}

void lay_out(Draft& draft) {
  const Schedule& schedule = draft.schedule;
  draft.layout = {};
  const bool shares = schedule.spreads_vocabulary();
  draft.layout.chunks.resize(
      static_cast<std::size_t>(draft.facts.spec.strategy.virtual_stages * schedule.copies + (shares ? 2 : 0)));
  if (shares) lay_out_chunk(draft, schedule.input_chunk, -1);
  std::vector<std::int64_t> places;
  for (std::size_t k = 0; k < schedule.stage_of.size(); ++k) {
    if (schedule.stage_of[k] == draft.at.stage) places.push_back(static_cast<std::int64_t>(k));
  }
  const auto begins = [&](std::int64_t k) { return k % schedule.virtual_stages() == 0; };
  std::stable_partition(places.begin(), places.end(), begins);
  for (const std::int64_t k : places) lay_out_chunk(draft, schedule.chunk_of[k], k);
  if (shares) lay_out_chunk(draft, schedule.output_chunk, schedule.virtual_stages());
  count_gradients(draft);
  RankClass slot;
  slot.stage = draft.at.stage;
  find_ranks(draft, slot);
  slot.frame = add_rank_frame(draft);
  slot.versions = draft.layout.versions.kept;
  slot.staleness = draft.layout.versions.staleness;
  add_arena(draft);
  draft.plan.classes.push_back(slot);
}

}  // namespace orrery
