#include "sim/search/memory_bound.h"

#include <algorithm>

#include "models/layers/blocks.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/cost/costs.h"
#include "sim/search/host.h"
#include "sim/search/transfers.h"

namespace orrery {
namespace {

constexpr double kBytesOfMiB = 1048576.0;

// The schedule's order of passes, where no closed formula tells how many micro-batches are between forward and
// backward; else nullptr.
const KnownOrder* order_to_play(BoundCache& cache, const CellWork& work) {
  const MemoryPlan& memory_plan = work.cell.memory_plan;
  const Spec& base = cache.space.base();
  const bool closed = work.in_turn && in_megatron_order(base, work.cell);
  if (closed || work.cell.layout.pipeline == 1 || needs_times(memory_plan.schedule)) return nullptr;
  return cache.orders.of(memory_plan.schedule, schedule_shape(base, work.cell));
}

// The number of forward passes that a stage issues before its first backward pass.
std::int64_t forwards_first(const Spec& base, const SearchCell& cell, std::int64_t s) {
  const std::int64_t p = cell.layout.pipeline, m = cell.layout.micro_batches, v = cell.memory_plan.virtual_stages;
  const ScheduleRow& row = find_schedule(cell.memory_plan.schedule);
  if (p == 1) return 1;
  if (row.in_flight != nullptr) return row.in_flight(p, s, m);
  if (!row.takes_turns || !in_megatron_order(base, cell)) return 1;
  return std::min(m * v, 2 * (p - s - 1) + (v - 1) * p + 1);
}

// Returns how many of a stage's first `forwards` forward passes run the given chunk. In an interleaved schedule on p
// stages, a stage runs p micro-batches through one chunk, then the same p through the next chunk.
std::int64_t forwards_of_chunk(const SearchCell& cell, std::int64_t forwards, std::int64_t chunk) {
  const std::int64_t p = cell.layout.pipeline, v = cell.memory_plan.virtual_stages;
  if (v == 1) return forwards;
  return forwards / (p * v) * p + std::clamp<std::int64_t>(forwards % (p * v) - chunk * p, 0, p);
}

// For each chunk of stage s, the number of micro-batches that are alive (between forward and backward) at the moment
// when most are alive on the stage as a whole.
std::vector<std::int64_t> alive_on(const Spec& base, const CellWork& work, const KnownOrder* order, std::int64_t s) {
  if (order != nullptr) return order->alive[s];
  std::vector<std::int64_t> alive(work.chunks, 0);
  if (!work.in_turn) alive.front() = 1;
  const std::int64_t forwards = work.in_turn ? forwards_first(base, work.cell, s) : 0;
  for (std::int64_t c = 0; work.in_turn && c < work.chunks; ++c) alive[c] = forwards_of_chunk(work.cell, forwards, c);
  return alive;
}

// Bytes of activations of the micro-batches that are alive on stage s. bytes: which of a chunk's bytes to add, those on
// the device (&ChunkWork::kept) or the offloaded ones (&ChunkWork::left).
Bytes in_flight(const CellWork& work, std::int64_t s, const std::vector<std::int64_t>& alive, Bytes ChunkWork::*bytes) {
  Bytes sum = 0;
  for (std::int64_t c = 0; c < std::ssize(alive); ++c) sum += alive[c] * (work.chunk_works[s * work.chunks + c].*bytes);
  return sum;
}

// Bytes of weights that are still gathered after forward, when a stage has most micro-batches alive. With a split
// backward, the weights of token embeddings are freed after forward, since input gradients do not read them.
Bytes gathered_on(const Spec& base, const CellWork& work, std::int64_t s, const std::vector<std::int64_t>& alive) {
  const ShardingRow& row = row_of(work.cell.memory_plan.sharding);
  if (!row.shards_parameters || row.reshards_after_forward) return 0;
  // No weights are counted unless virtual stages are placed in turn (k on stage k modulo the number of stages): with
  // another placement an earlier backward may have freed them.
  if (!work.in_turn) return 0;
  std::int64_t elements = 0;
  for (std::int64_t c = 0; c < work.chunks; ++c)
    elements += alive[c] > 0 ? work.chunk_works[s * work.chunks + c].elements : 0;
  if (work.splits && s == 0 && alive[0] > 0) elements -= work.plain->embedding.elements;
  return elements * storage_bytes(base.strategy.precision);
}

// The elements that a rank of the stage holds of the frozen model beside the one that trains.
std::int64_t frozen_on_rank(const SearchCell& cell, const StageWeights& w) {
  if (!row_of(cell.memory_plan.sharding).shards_parameters) return w.frozen_elements + w.frozen_expert_elements;
  return own_elements(cell, {.elements = w.frozen_elements, .expert_elements = w.frozen_expert_elements});
}

Bytes state_bytes(const Spec& spec, const CellWork& work, const StageWork& stage) {
  const ShardingRow& row = row_of(work.cell.memory_plan.sharding);
  const Optimizer& o = spec.strategy.optimizer;
  const Bytes width = storage_bytes(spec.strategy.precision);
  const Bytes gradient = storage_bytes(spec.strategy.gradient_precision);
  const std::int64_t whole = stage.weights.elements + stage.weights.expert_elements;
  const std::int64_t mine = own_elements(work.cell, stage.weights);
  Offload away;
  set_offload(away, work.cell.memory_plan.offload);
  Bytes sum = row.shards_parameters ? mine * (row.fp32_shards ? o.master_bytes : width) : whole * width;
  if (!spec.second || !spec.second->offload) sum += width * frozen_on_rank(work.cell, stage.weights);
  if (away.parameters != MemoryTier::device) sum = 0;
  // Gradients are left out if backward allocates them: the first forward passes of a step run before any gradient
  // exists.
  const bool late = spec.software.memory.gradients == GradientTensors::by_weight && gradient == width && !work.units;
  if (away.gradients == MemoryTier::device && !late) sum += work.units ? mine * gradient : whole * gradient;
  if (away.optimizer != MemoryTier::device) return sum;
  if (width < o.master_bytes && !row.fp32_shards) sum += mine * o.master_bytes;
  sum += o.moments() * mine * o.moment_bytes;
  if (!row.shards_parameters)
    sum += (2 - (spec.software.communication.gathers_eight_bit ? width : 0)) * stage.weights.eight_bit_elements;
  return sum;
}

// Bytes allocated on a stage when its last chunk ends forward and begins backward: the most of the forward of the last
// layer, the forward of norm, logits and loss after it, and their backward. Where no closed formula tells the order of
// passes (is_known: false), another chunk's pass may come between, and only kept + rest counts. kept: bytes of the
// micro-batches alive; rest: bytes of states and gathered weights.
StageMemory held_on(const Spec& base, const CellWork& work, const StageWork& stage, Bytes kept, Bytes rest,
                    bool is_known) {
  StageMemory most{rest + kept, rest + kept};
  if (!is_known) return most;
  const Bytes before_head = kept - stage.head_kept, backward = before_head + stage.layer_backward;
  most.held = rest + std::max({kept, before_head + stage.head_forward, before_head + stage.layer_forward});
  if (work.splits) return most;  // a split backward counts no bytes: those of its two parts are not known separately
  most.held = std::max({most.held, rest + kept + stage.head_backward, rest + backward});
  const std::int64_t ahead = std::min(base.strategy.prefetch_units, stage.last_layers - 1);
  const ShardingRow& row = row_of(work.cell.memory_plan.sharding);
  const bool gathers = row.shards_parameters && row.reshards_after_forward && ahead > 0 && stage.layers > 0;
  const std::int64_t elements = gathers ? ahead * (stage.weights.layer_elements / stage.layers) : 0;
  most.prefetched = rest + backward + elements * storage_bytes(base.strategy.precision);
  return most;
}

// Bytes that every rank allocates whatever its stage: CUDA context, workspace, and the framework's buffers.
Bytes fixed_bytes(const Spec& spec, const MemoryPlan& memory_plan) {
  if (spec.cluster.gpu.memory_bytes == 0) return 0;
  const ShardingRow& row = row_of(memory_plan.sharding);
  // A framework that copies unsharded gradients into a flat buffer for each reduction (copies) has no permanent flat
  // buffer. memory_options() in sim/report/report.cpp uses the same condition.
  const bool copies = !row.shards_gradients && spec.software.memory.flat_copies > 0;
  const double buffers = row.shards_optimizer && !copies ? spec.software.memory.buffers_MiB : 0;
  return static_cast<Bytes>((spec.software.memory.context_MiB + spec.software.memory.workspace_MiB + buffers) *
                            kBytesOfMiB);
}

// Bytes of NCCL's buffers for the tensor group and the group of replicas, which the ranks of every stage use.
Bytes communicators(LayoutCosts& costs, const ReplicaGroup& group) {
  const Cluster& cluster = costs.cache.space.base().cluster;
  if (cluster.gpu.memory_bytes == 0 || !costs.cache.profile.measured.transfers.empty()) return 0;
  if (!costs.tensor_channels) {
    costs.tensor_channels = 0;
    const std::int64_t t = costs.layout.tensor, each = std::min<std::int64_t>(nccl_node_gpus(cluster), t);
    const std::vector<int> ranks(ceil_div(t, each), static_cast<int>(each));
    if (t > 1 && t % each == 0) costs.tensor_channels = model_of(costs.cache, ranks).graphs.collective_channels;
  }
  return (group.channels + *costs.tensor_channels) * kNcclConnectionBytes;
}

// The bytes of NCCL's buffers for the order of ranks that needs the fewest.
Bytes least_communicators(LayoutCosts& costs, const SearchCell& cell) {
  const auto [it, fresh] = costs.communicator_bytes.try_emplace({cell.memory_plan.shard_group, cell.copies});
  if (!fresh) return it->second;
  std::optional<Bytes> least;
  for (const std::string_view order : costs.cache.space.rank_orders(costs.layout)) {
    const Bytes bytes = communicators(costs, replicas_of(costs.cache, cell, strides_of(costs.layout, order)));
    least = std::min(least.value_or(bytes), bytes);
  }
  return it->second = least.value_or(0);
}

}  // namespace

MemoryBound memory_bound(LayoutCosts& costs, const CellWork& work) {
  const Spec& base = costs.cache.space.base();
  const KnownOrder* order = order_to_play(costs.cache, work);
  const MemoryPlan& memory_plan = work.cell.memory_plan;
  const bool leaves = memory_plan.activations == "cpu" && memory_plan.activation_layers != kAsNeeded;
  MemoryBound bound;
  Bytes most = 0;
  std::optional<Bytes> left;
  for (std::int64_t s = 0; s < std::ssize(work.stages); ++s) {
    const StageWork& stage = work.stages[s];
    const std::vector<std::int64_t> alive = alive_on(base, work, order, s);
    const Bytes rest = state_bytes(base, work, stage) + gathered_on(base, work, s, alive);
    const Bytes kept = in_flight(work, s, alive, &ChunkWork::kept);
    bound.stages.push_back(held_on(base, work, stage, kept, rest, work.in_turn && order == nullptr));
    most = std::max(most, bound.stages.back().held);
    if (!leaves) continue;
    const Bytes away = in_flight(work, s, alive, &ChunkWork::left);
    left = std::min(left.value_or(away), away);
  }
  bound.on_device = most + fixed_bytes(base, memory_plan) + least_communicators(costs, work.cell);
  bound.least = lacks_host(costs.cache.space, work, left.value_or(0)) ? kNoRoom : bound.on_device;
  return bound;
}

Bytes memory_in(LayoutCosts& costs, const CellWork& work, const MemoryBound& memory, const KnownOrder& order) {
  if (memory.least == 0) return 0;
  const Spec& base = costs.cache.space.base();
  Bytes most = 0;
  for (std::int64_t s = 0; s < std::ssize(work.stages); ++s) {
    const Bytes kept = in_flight(work, s, order.alive[s], &ChunkWork::kept);
    most = std::max(most, state_bytes(base, work, work.stages[s]) + kept);
  }
  return most + fixed_bytes(base, work.cell.memory_plan) + least_communicators(costs, work.cell);
}

Bytes memory_with(LayoutCosts& costs, const CellWork& work, const MemoryBound& memory, const Features& f) {
  if (memory.least == 0) return 0;
  const ReplicaGroup& group = replicas_of(costs.cache, work.cell, strides_of(costs.layout, f.rank_order));
  Bytes most = 0;
  for (const StageMemory& s : memory.stages) most = std::max({most, s.held, f.parameter_gather ? s.prefetched : 0});
  const Bytes fixed = fixed_bytes(costs.cache.space.base(), work.cell.memory_plan);
  return std::max(memory.least, most + fixed + communicators(costs, group));
}

bool frees_memory(const CellWork& work) {
  for (std::size_t i = 0; i < work.plain->layers.size(); ++i) {
    if (work.again->layers[i].kept > work.plain->layers[i].kept) return false;
  }
  return true;
}

}  // namespace orrery
