#include "models/layout/draft.h"

#include <algorithm>

#include "models/layers/blocks.h"
#include "models/partition/layers_of_stages.h"
#include "models/partition/rank_groups.h"
#include "models/spec/one_queue.h"

namespace orrery {

PlanFacts::PlanFacts(const Spec& s)
    : spec(s),
      row(row_of(s.strategy.sharding)),
      gradient_width(storage_bytes(s.strategy.gradient_precision)),
      unit_gradients(orrery::unit_gradients(s, row)),
      fresh_gradients(orrery::fresh_gradients(s, row)),
      reduces_each_time(orrery::reduces_each_time(s, row)),
      averaging(orrery::averaging(s, row)),
      half(s.strategy.precision == Precision::fp16),
      // A stage can update before it knows all stages' gradients, and validate the update in the next step, only where
      // the update needs a value of all stages: the gradient norm that clips it, or whether fp16 gradients of any stage
      // are infinite (loss scale).
      validates(s.software.communication.post_update_validation && s.strategy.pipeline > 1 &&
                (s.strategy.clip > 0 || half)) {}

bool PlanFacts::update_multiplies() const {
  return behind_host(spec.strategy.offload.gradients) || (spec.strategy.clip > 0 && spec.software.kernels.fused_clip);
}

bool PlanFacts::norm_tells_infinity() const { return host_update() && (delayed() || update_multiplies()); }

Draft::Draft(const Spec& spec) : facts(spec), context(facts.spec, facts.row), layers_of(stage_layers(spec)) {
  std::int64_t first = 0;
  for (const std::int64_t n : layers_of) {
    first_layer.push_back(first);
    first += n;
  }
  coordinates = orrery::coordinates(spec.strategy);
  plan.ranks = spec.strategy.gpus();
  plan.micro_batches = plan.update_every = spec.strategy.micro_batches();
  plan.element_bytes = context.width;
  plan.frozen_width = keeps_narrow_weights(spec) ? 1 : context.width;
  plan.one_queue = has_one_queue(spec);
  plan.steps_overlap = spec.software.communication.post_update_validation;
  plan.shards_optimizer = facts.row.shards_optimizer;
  plan.shards_gradients = facts.row.shards_gradients;
  plan.dimensions = make_groups(spec.strategy, facts.row.shards_optimizer, facts.row.hybrid, context.kv_copies,
                                has_experts(spec), spec.strategy.zero_quantize.any() ? spec.cluster.gpus_per_node : 0);
}

bool Draft::updates() const {
  return context.duty == Duty::master || context.duty == Duty::server ||
         (context.duty == Duty::worker && !facts.row.servers);
}

std::int64_t Draft::group_size(Dimension d) const {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(d)];
  return static_cast<std::int64_t>(table.groups[table.member_of[at.first_rank]].size());
}

std::int64_t Draft::shards(Dimension d) const {
  return facts.row.servers ? plan.ranges() : facts.row.shards_optimizer ? group_size(d) : 1;
}

std::int64_t Draft::shard(const Regions& regions) const {
  std::int64_t sum = 0;
  for (const Region& r : regions) sum += shard(r.elements, r.group);
  return sum;
}

const Chunk& Draft::table_chunk() const {
  if (schedule.spreads_vocabulary()) return layout.chunks[schedule.input_chunk];
  for (std::int64_t first = 0; first < std::ssize(schedule.stage_of); first += schedule.virtual_stages()) {
    if (schedule.copies > 1 && schedule.stage_of[first] == at.stage) return layout.chunks[schedule.chunk_of[first]];
  }
  return layout.chunks[0];
}

std::size_t Draft::table_entry(bool of_second) const {
  const std::vector<Entry>& entries = table_chunk().entries;
  const auto has_table = [&](const Entry& e) {
    const std::vector<LocalParameter>& parameters = plan.blocks[e.block].parameters;
    return e.second == of_second && !parameters.empty() && parameters.front().name.ends_with(kEmbeddingTable);
  };
  return static_cast<std::size_t>(std::find_if(entries.begin(), entries.end(), has_table) - entries.begin());
}

std::vector<Chunk*> Draft::in_model_order() {
  std::vector<Chunk*> chunks;
  for (Chunk& chunk : layout.chunks) chunks.push_back(&chunk);
  const std::int64_t count = schedule.virtual_stages();
  const auto place = [&](const Chunk* c) { return schedule.copies > 1 ? c->place % count : c->place; };
  std::sort(chunks.begin(), chunks.end(), [&](auto* a, auto* b) { return place(a) < place(b); });
  return chunks;
}

std::uint32_t Draft::add_frame(std::uint32_t block) {
  Frame frame;
  frame.block = block;
  frame.slot = at.slot;
  frame.first_buffer = plan.buffers;
  plan.buffers += static_cast<std::uint32_t>(plan.blocks[block].buffers.size());
  plan.frames.push_back(frame);
  return static_cast<std::uint32_t>(plan.frames.size() - 1);
}

}  // namespace orrery
