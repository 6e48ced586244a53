#include "models/planner/host_update.h"

#include <algorithm>
#include <map>

#include "models/planner/gradient_ops.h"
#include "models/planner/host_copies.h"

namespace orrery {
namespace {

// An optimizer state that lies on disks: the names of the ops that fetch and store a tile of it (a run of elements),
// the index of its buffer among the buffers of the chunk's states (state) and of the tile on the host (tile), and the
// bytes of an element.
struct Swapped {
  const char *fetch, *store;
  std::uint16_t state, tile;
  Bytes width;
};

std::vector<Swapped> swapped_states(const Optimizer& o) {
  std::vector<Swapped> list = {{"fetch master weights", "store master weights", kMaster, kTileMaster, o.master_bytes}};
  const Swapped moments[] = {{"fetch first moments", "store first moments", kMoment1, kTileMoment1, o.moment_bytes},
                             {"fetch second moments", "store second moments", kMoment2, kTileMoment2, o.moment_bytes}};
  list.insert(list.end(), moments, moments + o.moments());
  return list;
}

}  // namespace

void HostUpdate::begin_step() {
  if (facts_.delayed()) update_all({});
}

void HostUpdate::update() {
  if (facts_.delayed()) return finish_delayed();
  std::vector<TaskId> after = after_reductions(writer_);
  for (const LaneKind lane : {LaneKind::compute, LaneKind::d2h, LaneKind::nvme_write})
    after.push_back(writer_.last_of(lane));
  update_all(after);
}

// Clips gradients on the host, and returns the tasks that the update must wait for. A pass over the host's gradients
// multiplies them by the clip coefficient and unscales them (DeepSpeed: unscale_and_clip_grads), except where the
// update itself multiplies, as it always does if gradients lie on disks.
std::vector<TaskId> HostUpdate::clip(std::vector<TaskId> after) {
  const Strategy& s = spec_.strategy;
  const bool clips = s.clip > 0;
  const bool passes = !facts_.update_multiplies();
  if (facts_.takes_norm() && !facts_.delayed()) {
    const std::vector<TaskId> summed =
        facts_.host_gradients() ? sum_over_model(draft_, writer_, "reduce gradient norm", kSquaredNorm, false)
                                : device_norm(draft_, writer_, kSquaredNorm, after);
    after.insert(after.end(), summed.begin(), summed.end());
  }
  if (passes && (clips || facts_.half)) {
    const std::vector<TaskId> multiplied = unscale(after);
    after.insert(after.end(), multiplied.begin(), multiplied.end());
  }
  if (facts_.half && !facts_.delayed()) {
    update_loss_scale(after);
    after.push_back(writer_.last_of(LaneKind::compute));
  }
  return after;
}

// Clips and unscales all of the rank's gradients in one pass on the host. In fp16 training this pass also looks for
// infinite gradients, unless they are detected by the norm.
std::vector<TaskId> HostUpdate::unscale(const std::vector<TaskId>& after) {
  const bool clips = spec_.strategy.clip > 0, looks = facts_.half && !facts_.norm_tells_infinity();
  for (const Chunk& chunk : chunks_) {
    Op op = {.name = "clip gradients",
             .work = Multiply{chunk.weights.own, facts_.gradient_width, 0, looks},
             .phase = Phase::step,
             .lane = LaneKind::cpu,
             .optimizer = true,
             .operands = {state(due_gradients(facts_), Access::read_write)}};
    if (clips) op.operands.push_back(number(kSquaredNorm, Access::read));
    if (facts_.half) op.operands.push_back(number(facts_.delayed() ? kDueScale : kLossScale, Access::read));
    if (looks)
      op.operands.push_back(number(kFoundInfinity, &chunk == &chunks_.front() ? Access::write : Access::read_write));
    writer_.emit(op, chunk.state, after);
  }
  if (!looks) return {};
  return sum_over_model(draft_, writer_, "reduce found infinity", kFoundInfinity, true);
}

// Updates the loss scale, by which the next loss is multiplied (Micikevicius et al. 2018: the scale is reduced after an
// infinite gradient, and raised after many steps without one). This happens once a step, before the update, because the
// update may run at the same time as the next loss (DeepSpeed: _update_scale() before the update).
void HostUpdate::update_loss_scale(const std::vector<TaskId>& after) {
  const std::uint16_t sign = !facts_.norm_tells_infinity() ? kFoundInfinity
                             : facts_.delayed()            ? kNextNorm
                                                           : kSquaredNorm;
  Op op = {.name = "update loss scale",
           .work = Multiply{1, 4},
           .phase = Phase::step,
           .optimizer = true,
           .operands = {number(sign, Access::read), number(kLossScale, Access::read_write)}};
  if (facts_.delayed() || facts_.update_multiplies()) op.operands.push_back(number(kDueScale, Access::write));
  writer_.emit(op, chunks_.front().state, after);
}

// Writes the host's update, after all gradients have arrived; updated parameters are uploaded to the device tile by
// tile. A delayed update reads the gradients of the previous step and runs at the same time as this step, which still
// reads the old parameters.
void HostUpdate::update_all(const std::vector<TaskId>& after) {
  const std::vector<TaskId> clipped = clip(after);
  for (const Chunk& chunk : chunks_) {
    update_tiles(chunk, clipped);
    if (!facts_.delayed() && !facts_.host_gradients())
      zero_gradients(draft_, writer_, chunk, {writer_.last_of(LaneKind::d2h)});
  }
}

void HostUpdate::update_tiles(const Chunk& chunk, const std::vector<TaskId>& after) {
  const std::int64_t tile = std::min(spec_.strategy.offload.tile, chunk.weights.own);
  // for each tile (id of the frame with its host buffers), the tasks that must end before the tile is filled again
  std::map<std::uint32_t, std::vector<TaskId>> used;
  std::size_t k = 0;
  for (std::int64_t first = 0; first < chunk.weights.own; first += tile, ++k) {
    const std::int64_t n = std::min(tile, chunk.weights.own - first);
    const std::uint32_t frame = chunk.tiles[k % chunk.tiles.size()];
    std::vector<TaskId> before = used[frame];
    before.insert(before.end(), after.begin(), after.end());
    fetch_tile(frame, first, n, before);
    update_tile(frame, first, n, before);
    store_tile(frame, first, n);
    if (!facts_.delayed()) upload_tile(frame, first, n);
    used[frame] = {writer_.last_of(LaneKind::nvme_write), writer_.last_of(LaneKind::h2d)};
  }
}

void HostUpdate::fetch_tile(std::uint32_t frame, std::int64_t first, std::int64_t n, const std::vector<TaskId>& after) {
  const Strategy& s = spec_.strategy;
  const auto fetch = [&](const char* name, MemoryTier tier, std::uint16_t from, std::uint16_t to, Bytes width) {
    const PlaceCopy work = {n * width, tier, MemoryTier::host, first, n, width};
    writer_.emit(copy_op(name, Phase::step, work, state(from, Access::read), own(to, Access::write)), frame, after);
  };
  if (behind_host(s.offload.gradients))
    fetch("fetch gradients", s.offload.gradients, due_gradients(facts_), kTileGradient, facts_.gradient_width);
  if (!behind_host(s.offload.optimizer)) return;
  for (const Swapped& x : swapped_states(s.optimizer)) fetch(x.fetch, s.offload.optimizer, x.state, x.tile, x.width);
}

void HostUpdate::update_tile(std::uint32_t frame, std::int64_t first, std::int64_t n,
                             const std::vector<TaskId>& after) {
  const Strategy& s = spec_.strategy;
  const Offload& o = s.offload;
  const bool disks = behind_host(o.optimizer);
  const auto kept = [&](std::uint16_t on_host, std::uint16_t in_tile) {
    return disks ? own(in_tile, Access::read_write) : state(on_host, Access::read_write);
  };
  Op op = {
      .name = "update",
      .work = Update{.elements = n,
                     .gradient = facts_.gradient_width,
                     .master = s.optimizer.master_bytes,
                     .moment = s.optimizer.moment_bytes,
                     .forward = row_.fp32_shards && facts_.host_parameters() ? 0 : draft_.shard_width(),
                     .moments = s.optimizer.moments(),
                     .first = first,
                     .delayed = facts_.delayed()},
      .phase = Phase::step,
      .lane = LaneKind::cpu,
      .optimizer = true,
      .operands = {
          behind_host(o.gradients) ? own(kTileGradient, Access::read) : state(due_gradients(facts_), Access::read),
          kept(kMaster, kTileMaster), kept(kMoment1, kTileMoment1), kept(kMoment2, kTileMoment2),
          o.parameters == MemoryTier::host ? state(kParameterShard, Access::write) : own(kTileForward, Access::write)}};
  if (!disks) op.allocates = {state(kMoment1, Access::write), state(kMoment2, Access::write)};
  const bool multiplies = facts_.update_multiplies();
  if (facts_.takes_norm() && (multiplies || (facts_.half && facts_.norm_tells_infinity())))
    op.operands.push_back(number(kSquaredNorm, Access::read));
  if (facts_.half && !facts_.norm_tells_infinity()) op.operands.push_back(number(kFoundInfinity, Access::read));
  if (facts_.half && multiplies) op.operands.push_back(number(kDueScale, Access::read));
  writer_.emit(op, frame, after);
}

void HostUpdate::store_tile(std::uint32_t frame, std::int64_t first, std::int64_t n) {
  const Strategy& s = spec_.strategy;
  const auto store = [&](const char* name, MemoryTier tier, std::uint16_t from, std::uint16_t to, Bytes width) {
    const PlaceCopy work = {n * width, MemoryTier::host, tier, first, n, width};
    writer_.emit(copy_op(name, Phase::step, work, own(from, Access::read), state(to, Access::write)), frame);
  };
  if (behind_host(s.offload.optimizer)) {
    for (const Swapped& x : swapped_states(s.optimizer)) store(x.store, s.offload.optimizer, x.tile, x.state, x.width);
  }
  if (behind_host(s.offload.parameters))
    store("store weights", s.offload.parameters, kTileForward, kParameterShard, context_.width);
}

// Uploads the updated weights of a tile, unless the device reads its parameters from the host.
void HostUpdate::upload_tile(std::uint32_t frame, std::int64_t first, std::int64_t n) {
  if (facts_.host_parameters()) return;
  const PlaceCopy work = {n * draft_.shard_width(), MemoryTier::host, MemoryTier::device, first, n,
                          draft_.shard_width()};
  writer_.emit(copy_op("parameters up", Phase::step, work, own(kTileForward, Access::read),
                       state(row_.shards_parameters ? kParameterShard : kParameters, Access::write)),
               frame, {writer_.last_of(LaneKind::compute)});
}

// Ends a step during which the delayed update of the previous step ran: that update's parameters are uploaded, and this
// step's gradients are swapped into the buffer that the next update reads.
void HostUpdate::finish_delayed() {
  std::vector<TaskId> after = {writer_.last_of(LaneKind::data_reduce), writer_.last_of(LaneKind::expert_reduce),
                               writer_.last_of(LaneKind::d2h)};
  if (facts_.takes_norm()) {
    const std::vector<TaskId> summed = facts_.host_gradients()
                                           ? sum_over_model(draft_, writer_, "reduce gradient norm", kNextNorm, false)
                                           : device_norm(draft_, writer_, kNextNorm, after);
    after.insert(after.end(), summed.begin(), summed.end());
  }
  if (facts_.half) {
    update_loss_scale(after);
    after.push_back(writer_.last_of(LaneKind::compute));
  }
  for (const Chunk& chunk : chunks_) {
    const std::int64_t tile = std::min(spec_.strategy.offload.tile, chunk.weights.own);
    for (std::size_t k = 0; k < chunk.tiles.size(); ++k) {
      const auto first = static_cast<std::int64_t>(k) * tile;
      upload_tile(chunk.tiles[k], first, std::min(tile, chunk.weights.own - first));
    }
    if (!facts_.host_gradients()) zero_gradients(draft_, writer_, chunk, {writer_.last_of(LaneKind::d2h)});
    Op exchange = {.name = "next gradients",
                   .work = Exchange{},
                   .phase = Phase::step,
                   .lane = LaneKind::cpu,
                   .operands = {state(due_gradients(facts_), Access::write), state(kNextGradients, Access::write)}};
    writer_.emit(exchange, chunk.state, after);
  }
  const Op exchange = {.name = "next norm",
                       .work = Exchange{},
                       .phase = Phase::step,
                       .lane = LaneKind::cpu,
                       .operands = {number(kSquaredNorm, Access::write), number(kNextNorm, Access::write)}};
  if (facts_.takes_norm()) writer_.emit(exchange, chunks_.front().state, after);
}

}  // namespace orrery
