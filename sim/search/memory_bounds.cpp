// Bounds: the least memory of the fullest rank.
#include <algorithm>

#include "models/layers/blocks.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/cost/price.h"
#include "sim/search/bounds.h"

namespace orrery {
namespace {

constexpr double kBytesOfMiB = 1048576.0;

}  // namespace

// Adds the bytes that a chunk keeps for each micro-batch, and those that the last blocks of the chunk need beyond. They
// hold whether or not the last layer runs again, so that running more layers again never raises the bound.
void Bounds::add_memory(Stage& stage, std::int64_t place, std::int64_t again, std::int64_t away) {
  const Cut& c = *cut_;
  const std::int64_t first = c.first[place], n = c.layers[place], middle = first + again, end = first + n;
  const bool last_place = place + 1 == std::ssize(c.layers);
  Bytes kept =
      again_->sums.kept[middle] - again_->sums.kept[first] + plain_->sums.kept[end] - plain_->sums.kept[middle];
  const std::int64_t gone = first + away, both = std::min(middle, gone);
  const Bytes leaves = away == 0 ? 0
                                 : again_->sums.leaves[both] - again_->sums.leaves[first] + plain_->sums.leaves[gone] -
                                       plain_->sums.leaves[both];
  kept = std::max<Bytes>(0, kept - leaves);
  if (place == 0) kept += plain_->embedding.kept;
  stage.head_kept = last_place ? again_->head.kept : 0;
  stage.head_forward = last_place ? again_->head.forward_extra : 0;
  stage.head_backward = last_place ? again_->head.backward_extra : 0;
  stage.layer_backward = stage.layer_forward = 0;
  if (n > 0) {
    const BlockCost &a = again_->layers[end - 1], &b = plain_->layers[end - 1];
    stage.layer_backward = std::min(a.backward_extra, b.backward_extra);
    stage.layer_forward = std::min(a.forward_extra - a.kept, b.forward_extra - b.kept);
  }
  chunk_kept_.push_back(kept + stage.head_kept);
  chunk_left_.push_back(leaves);
}

// Forwards of a stage that are issued before its first backward.
std::int64_t Bounds::forwards_first(std::int64_t s) const {
  const std::int64_t p = layout_.pipeline, m = layout_.micro_batches, v = cell_.virtual_stages;
  const ScheduleRow& row = find_schedule(cell_.schedule);
  if (p == 1) return 1;
  if (row.in_flight != nullptr) return row.in_flight(p, s, m);
  if (!row.takes_turns || !in_usual_turns()) return 1;
  return std::min(m * v, 2 * (p - s - 1) + (v - 1) * p + 1);
}

// How many of the forwards before the first backward belong to one chunk: forwards go through the chunks in rounds of
// p.
std::int64_t Bounds::forwards_of_chunk(std::int64_t forwards, std::int64_t chunk) const {
  const std::int64_t p = layout_.pipeline, v = cell_.virtual_stages;
  if (v == 1) return forwards;
  return forwards / (p * v) * p + std::clamp<std::int64_t>(forwards % (p * v) - chunk * p, 0, p);
}

// Micro-batches of a chunk that are alive when the stage has most.
std::int64_t Bounds::alive(std::int64_t s, std::int64_t chunk) const {
  if (order_ != nullptr) return order_->alive[s][chunk];
  if (placed_.placement != ChunkPlacement::in_turn) return chunk == 0 ? 1 : 0;
  return forwards_of_chunk(forwards_first(s), chunk);
}

// Bytes that the micro-batches alive on a stage keep.
Bytes Bounds::in_flight(std::int64_t s) const {
  Bytes sum = 0;
  for (std::int64_t c = 0; c < chunks_; ++c) sum += alive(s, c) * chunk_kept_[s * chunks_ + c];
  return sum;
}

// Bytes of weights that forwards have left gathered when a stage holds most. A backward in two parts reads no weights
// of the token embeddings: these are given up after forward.
Bytes Bounds::gathered(std::int64_t s) const {
  const ShardingRow& row = row_of(cell_.sharding);
  if (!row.shards_parameters || row.reshards_after_forward) return 0;
  if (placed_.placement != ChunkPlacement::in_turn) return 0;  // an earlier backward may have given them up
  std::int64_t elements = 0;
  for (std::int64_t c = 0; c < chunks_; ++c) elements += alive(s, c) > 0 ? chunk_elements_[s * chunks_ + c] : 0;
  if (splits_ && s == 0 && alive(0, 0) > 0) elements -= plain_->embedding.elements;
  return elements * storage_bytes(space_.base().strategy.precision);
}

Bytes Bounds::state_bytes(const Stage& stage) const {
  const Spec& spec = space_.base();
  const ShardingRow& row = row_of(cell_.sharding);
  const Optimizer& o = spec.strategy.optimizer;
  const Bytes width = storage_bytes(spec.strategy.precision);
  const Bytes gradient = storage_bytes(spec.strategy.gradient_precision);
  const std::int64_t whole = stage.elements + stage.expert_elements, mine = own(stage);
  Offload away;
  set_offload(away, cell_.offload);
  Bytes sum = row.shards_parameters ? mine * (row.fp32_shards ? o.master_bytes : width) : whole * width;
  if (away.parameters != Device::none) sum = 0;
  // The first forwards of a step find no gradients where backward makes them.
  const bool late = spec.software.memory.gradients == GradientTensors::by_weight && gradient == width && !units_;
  if (away.gradients == Device::none && !late) sum += units_ ? mine * gradient : whole * gradient;
  if (away.optimizer != Device::none) return sum;
  if (width < o.master_bytes && !row.fp32_shards) sum += mine * o.master_bytes;
  if (o.kind != OptimizerKind::sgd) sum += 2 * mine * o.moment_bytes;
  if (!row.shards_parameters)
    sum += (2 - (spec.software.communication.gathers_eight_bit ? width : 0)) * stage.eight_bit_elements;
  return sum;
}

// Bytes that a stage holds when the last chunk ends forward and begins backward: the most of the forward of the last
// layer, the forward of the blocks after it, and their backward. Where no closed form tells the order, the pass of
// another chunk may come then.
void Bounds::hold(Stage& stage, std::int64_t s) const {
  const Bytes kept = in_flight(s), rest = state_bytes(stage) + gathered(s);
  stage.held = stage.prefetched = rest + kept;
  if (placed_.placement != ChunkPlacement::in_turn || order_ != nullptr) return;
  const Bytes before_head = kept - stage.head_kept, backward = before_head + stage.layer_backward;
  stage.held = rest + std::max({kept, before_head + stage.head_forward, before_head + stage.layer_forward});
  if (splits_) return;  // the buffers that weight gradients still need are not counted apart
  stage.held = std::max({stage.held, rest + kept + stage.head_backward, rest + backward});
  const std::int64_t ahead = std::min(space_.base().strategy.prefetch_units, stage.last_layers - 1);
  const ShardingRow& row = row_of(cell_.sharding);
  const bool gathers = row.shards_parameters && row.reshards_after_forward && ahead > 0 && stage.layers > 0;
  const std::int64_t elements = gathers ? ahead * (stage.layer_elements / stage.layers) : 0;
  stage.prefetched = rest + backward + elements * storage_bytes(space_.base().strategy.precision);
}

Bytes Bounds::fixed() const {
  const Spec& spec = space_.base();
  if (spec.cluster.gpu.memory_bytes == 0) return 0;
  const ShardingRow& row = row_of(cell_.sharding);
  const bool copies = !row.shards_gradients && spec.software.memory.flat_copies > 0;  // as in the report
  const double buffers = row.shards_optimizer && !copies ? spec.software.memory.buffers_MiB : 0;
  return static_cast<Bytes>((spec.software.memory.context_MiB + spec.software.memory.workspace_MiB + buffers) *
                            kBytesOfMiB);
}

Bytes Bounds::memory() {
  Bytes most = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    hold(stages_[s], static_cast<std::int64_t>(s));
    most = std::max(most, stages_[s].held);
  }
  device_memory_ = most + fixed() + least_communicators();
  return lacks_host() ? kNoRoom : device_memory_;
}

// Bytes held where a stage has most micro-batches alive in this order.
Bytes Bounds::memory_in(const KnownOrder& order) {
  if (memory_ == 0) return 0;
  Bytes most = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    Bytes kept = state_bytes(stages_[s]);
    for (std::size_t c = 0; c < order.alive[s].size(); ++c) kept += order.alive[s][c] * chunk_kept_[s * chunks_ + c];
    most = std::max(most, kept);
  }
  return most + fixed() + least_communicators();
}

Bytes Bounds::memory_with(const Features& f, Group& group) {
  if (memory_ == 0) return 0;
  Bytes most = 0;
  for (const Stage& s : stages_) most = std::max({most, s.held, f.parameter_gather ? s.prefetched : 0});
  return std::max(memory_, most + fixed() + communicators(group));
}

// Bytes of NCCL's buffers for the tensor group and the group of replicas, which the ranks of every stage use.
Bytes Bounds::communicators(const Group& group) {
  if (space_.base().cluster.gpu.memory_bytes == 0 || !profile_.measured.transfers.empty()) return 0;
  if (!tensor_channels_) {
    tensor_channels_ = 0;
    const std::int64_t node = nccl_node_gpus(space_.base().cluster), each = std::min(node, layout_.tensor);
    const std::vector<int> ranks(ceil_div(layout_.tensor, each), static_cast<int>(each));
    if (layout_.tensor > 1 && layout_.tensor % each == 0) tensor_channels_ = model(ranks).graphs.collective_channels;
  }
  return (group.channels + *tensor_channels_) * kNcclConnectionBytes;
}

// The least bytes of NCCL's buffers that any order of ranks needs.
Bytes Bounds::least_communicators() {
  const auto [it, fresh] = communicator_bytes_.try_emplace({cell_.shard_group, copies_});
  if (!fresh) return it->second;
  std::optional<Bytes> least;
  for (const std::string_view order : space_.rank_orders(layout_)) {
    const Bytes bytes = communicators(replicas(strides_of(layout_, order)));
    least = std::min(least.value_or(bytes), bytes);
  }
  return it->second = least.value_or(0);
}

}  // namespace orrery
