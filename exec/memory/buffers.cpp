#include "exec/memory/buffers.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "models/layers/blocks.h"
#include "models/plan/stream_pool.h"

namespace orrery {
namespace {

constexpr int kHostPool = -1;
constexpr int kArenaPool = -2;

}  // namespace

void clear_on_host(std::span<std::byte> bytes) { std::fill(bytes.begin(), bytes.end(), std::byte{}); }

Buffers::Buffers(const Rank& rank, CachingMemory& memory, const std::function<void(std::span<std::byte>)>& clear,
                 Bytes workspace, SegmentSource host)
    : rank_(rank), memory_(memory), host_(std::move(host)), held_(rank.plan.buffers) {
  for (TaskId t = 0; t < rank.plan.task_count(); ++t)
    one_lane_ = one_lane_ && rank.plan.tasks[t].lane == rank.plan.tasks[0].lane;
  if (workspace > 0) {
    workspace_ = {memory.allocate(workspace, 0), static_cast<std::size_t>(workspace)};
    count(Category::workspace, memory.size_of(workspace_.data()));
  }
  Launch none;
  for (std::uint32_t f = 0; f < rank.plan.frames.size(); ++f) {
    const Block& block = rank.plan.blocks[rank.plan.frames[f].block];
    if (!outlives_steps(block.role)) continue;
    for (std::uint16_t s = 0; s < static_cast<std::uint16_t>(block.buffers.size()); ++s) {
      if (block.buffers[s].lazy || block.buffers[s].bytes == 0) continue;
      take(f, {Scope::own, Access::write, s, -1}, kNone, none);
      const std::span bytes(held_[index(f, s)].data, static_cast<std::size_t>(block.buffers[s].bytes));
      if (block.role == BlockRole::arena) cut_arena(f, s);
      if (block.buffers[s].home == MemoryTier::device) clear(bytes);
      if (block.buffers[s].home == MemoryTier::host) clear_on_host(bytes);
    }
  }
  count_peak(kNone);
}

// Cuts the arena (contiguous memory that is allocated before the first step) into cells of equal size. Each cell is for
// one of the buffers that the planner marks contiguous: a layer's input, or an equal part of that input.
void Buffers::cut_arena(std::uint32_t frame, std::uint16_t slot) {
  Bytes cell = 0;
  for (const Block& block : rank_.plan.blocks) {
    for (const BlockBuffer& s : block.buffers) cell = s.contiguous ? s.bytes : cell;
  }
  const std::byte* end = held_[index(frame, slot)].data + slot_of(frame, slot).bytes;
  for (std::byte* at = held_[index(frame, slot)].data; cell > 0 && at + cell <= end; at += cell) cells_.push_back(at);
}

void Buffers::count(Category category, Bytes bytes) { now_[static_cast<std::size_t>(category)] += bytes; }

void Buffers::count_peak(TaskId task) {
  if (memory_.use().allocated <= peak_) return;
  peak_ = memory_.use().allocated;
  at_peak_ = now_;
  peak_task_ = task;
}

// Makes a task wait for the tasks of other lanes that used a part of this memory last: the part was freed when these
// tasks were issued, and they may still be running.
void Buffers::wait_for_users(std::byte* block, Bytes size, TaskId task, Launch& launch) const {
  for (const Used& u : used_) {
    const bool overlaps = u.begin < block + size && block < u.end;
    if (overlaps && rank_.plan.tasks[u.task].lane != rank_.plan.tasks[task].lane) launch.after.push_back(u.task);
  }
}

Bytes Buffers::row_of(std::uint32_t frame, const BlockBuffer& slot) const {
  if (slot.runtime_size < 0) return 0;
  const Block& block = rank_.plan.blocks[rank_.plan.frames[frame].block];
  return slot.bytes / block.runtime_sizes[static_cast<std::size_t>(slot.runtime_size)].predicted;
}

Bytes Buffers::bytes_of(std::uint32_t frame, const BlockBuffer& slot) const {
  if (slot.runtime_size < 0) return slot.bytes;
  return row_of(frame, slot) * sizes_.at(frame).at(static_cast<std::size_t>(slot.runtime_size));
}

void Buffers::take(std::uint32_t frame, const Operand& operand, TaskId task, Launch& launch) {
  const std::uint32_t target = frame_of(rank_.plan, frame, operand);
  const BlockBuffer& what = slot_of(target, operand.slot);
  Held& held = held_[index(target, operand.slot)];
  if (what.bytes == 0 || !held.empty()) return;
  if (take_beyond(what, held)) return;
  if (what.contiguous) {
    // the arena (memory cut into equal cells, one per buffer) has a free cell, because the planner made it large enough
    // for all contiguous buffers in use at a time
    assert(!cells_.empty());
    held = {cells_.back(), kArenaPool};
    cells_.pop_back();
    wait_for_users(held.data, what.bytes, task, launch);
    return;
  }
  const int pool = task == kNone ? 0 : pool_of(rank_.plan.op_of(task).lane);
  // At least one row is allocated, even for a buffer without rows, because kernels do not check for a null address.
  held = {memory_.allocate(std::max(bytes_of(target, what), row_of(target, what)), pool), pool};
  const Bytes size = memory_.size_of(held.data);
  count(what.category, size);
  if (task == kNone) return;
  wait_for_users(held.data, size, task, launch);
  const bool sums = operand.scope == Scope::unit ? operand.slot == kUnitGradient : operand.parameter >= 0;
  if (sums || what.lazy) launch.zeroed.emplace_back(held.data, static_cast<std::size_t>(what.bytes));
}

// Allocates a buffer outside the device. In host memory a buffer that must begin with zeros is cleared immediately,
// because no device queue clears it; on disk the buffer is a range of a file, which is never freed.
bool Buffers::take_beyond(const BlockBuffer& what, Held& held) {
  if (what.home == MemoryTier::device) return false;
  if (behind_host(what.home)) {
    held.at = store_of(what).take(what.bytes);
    return true;
  }
  held = {host_.allocate(what.bytes, 0), kHostPool};
  if (what.lazy) clear_on_host({held.data, static_cast<std::size_t>(what.bytes)});
  return true;
}

Bytes Buffers::peak_in(MemoryTier tier) const {
  return behind_host(tier) ? stores_[index_of(tier)].taken() : host_.use().peak_allocated;
}

void Buffers::hold_state(std::uint32_t frame, std::uint16_t slot) {
  Launch launch;
  take(frame, {Scope::own, Access::write, slot, -1}, kNone, launch);
}

bool Buffers::has_state(std::uint32_t frame, std::uint16_t slot) const { return !held_[index(frame, slot)].empty(); }

void Buffers::write_state(std::uint32_t frame, std::uint16_t slot, std::int64_t first,
                          std::span<const std::byte> from) const {
  const Held& held = held_[index(frame, slot)];
  if (held.at >= 0)
    store_of(slot_of(frame, slot)).write(from.data(), held.at + first, from.size());
  else
    std::copy(from.begin(), from.end(), held.data + first);
}

bool Buffers::read_state(std::uint32_t frame, std::uint16_t slot, std::int64_t first, std::span<std::byte> to) const {
  const Held& held = held_[index(frame, slot)];
  if (held.at >= 0)
    store_of(slot_of(frame, slot)).read(to.data(), held.at + first, to.size());
  else if (held.pool == kHostPool)
    std::copy_n(held.data + first, to.size(), to.data());
  else
    return false;
  return true;
}

void Buffers::exchange(TaskId task) {
  const std::uint32_t frame = rank_.plan.tasks[task].frame;
  const auto held = [&](const Operand& o) -> Held& { return held_[index(frame_of(rank_.plan, frame, o), o.slot)]; };
  const Op& op = rank_.plan.op_of(task);
  std::swap(held(op.operands[0]), held(op.operands[1]));
}

void Buffers::give(std::uint32_t frame, const Operand& operand, TaskId task) {
  const std::uint32_t target = frame_of(rank_.plan, frame, operand);
  Held& held = held_[index(target, operand.slot)];
  if (held.data == nullptr) return;
  if (held.pool == kHostPool) {
    returned_.push_back({held.data, task, true});
    held.data = nullptr;
    return;
  }
  if (held.pool == kArenaPool) {
    if (!one_lane_) used_.push_back({held.data, held.data + slot_of(target, operand.slot).bytes, task});
    cells_.push_back(held.data);
    held.data = nullptr;
    return;
  }
  const Bytes size = memory_.size_of(held.data);
  count(slot_of(target, operand.slot).category, -size);
  const Op& op = rank_.plan.op_of(task);
  // Memory that a transfer or copy frees is returned to the allocator only once the transfer or copy has ended: a task
  // that is issued later could otherwise get the memory and write to it while it is still being sent.
  const bool sent = std::holds_alternative<Transfer>(op.work) || std::holds_alternative<PlaceCopy>(op.work);
  if (held.pool == 0 && pool_of(op.lane) == 0 && !sent) {
    if (!one_lane_) used_.push_back({held.data, held.data + size, task});
    memory_.free(held.data);
  } else {
    memory_.retire(held.data);
    returned_.push_back({held.data, task, false});
  }
  held.data = nullptr;
}

Argument Buffers::resolve(std::uint32_t frame, const Operand& operand) const {
  const Plan& plan = rank_.plan;
  const Frame& own = plan.frames[frame];
  const std::uint32_t target = frame_of(plan, frame, operand);
  const BlockBuffer& what = slot_of(target, operand.slot);
  std::byte* data = held_[index(target, operand.slot)].data;
  Argument a = {data, data == nullptr ? 0 : bytes_of(target, what), plan.element_bytes, row_of(target, what), operand};
  Bytes offset = 0;
  if (operand.scope == Scope::rank) a.width = sizeof(float);
  if (operand.scope == Scope::state) a.width = rank_.state_width(operand.slot);
  if (operand.scope == Scope::unit) a.width = rank_.unit_width(operand.slot);
  if (operand.parameter >= 0) {
    const LocalParameter& p = plan.blocks[own.block].parameters[operand.parameter];
    const auto before = [&](const Frame& f) { return p.frozen ? f.frozen_base : f.base; };
    const std::int64_t in_buffer = before(own) - (operand.scope == Scope::unit ? before(plan.frames[target]) : 0);
    if (operand.tile == 0 && operand.scope != Scope::own) offset = (in_buffer + p.offset) * a.width;
    a.bytes = (p.frozen ? p.stored : p.out * p.in) * a.width;
    // In a buffer whose places are counted in bytes, the elements of weights that are not in few bits are wider.
    if (p.frozen && !p.nf4 && !p.format.narrow()) a.width = plan.element_bytes;
  } else if (operand.scope == Scope::state && operand.slot == kFrozenShard) {
    // the frozen weights of a unit (parameters that are gathered together) are gathered from the unit's range of this
    // rank's shard
    if (const auto own_pieces = rank_.frozen_pieces_of_unit(frame); !own_pieces.empty())
      offset = own_pieces.front().shard_first * a.width;
  } else if (operand.scope == Scope::state && operand.slot == kGradients && own.unit == frame) {
    // in the flat buffer of a chunk's unsharded gradients, the elements of a unit (parameters that are gathered
    // together) begin at element `base`
    offset = own.base * a.width;
  } else if (operand.scope == Scope::state && operand.slot == kSecondaryShard) {
    offset = rank_.secondary_piece(frame).shard_first * a.width;
  } else if (const auto unit = rank_.unit_pieces.find(frame);
             operand.scope == Scope::state && unit != rank_.unit_pieces.end()) {
    const Piece &first = unit->second.front(), &last = unit->second.back();
    // an op of a unit (parameters that are gathered together) uses the unit's part of this rank's shards, from the
    // unit's first piece to its last
    offset = first.shard_first * a.width;
    a.bytes = (last.shard_first + last.owned - first.shard_first) * a.width;
  }
  if (a.data != nullptr) a.data += offset;
  if (const std::int64_t at = held_[index(target, operand.slot)].at; at >= 0) {
    a.disk = &store_of(slot_of(target, operand.slot));
    a.at = at + offset;
  }
  return a;
}

Launch Buffers::issue(TaskId task) {
  const Op& op = rank_.plan.op_of(task);
  const std::uint32_t frame = rank_.plan.tasks[task].frame;
  Launch launch;
  launch.task = task;
  if (std::holds_alternative<Exchange>(op.work)) exchange(task);
  for (const Operand& o : op.allocates) take(frame, o, task, launch);
  count_peak(task);
  for (const Operand& o : op.operands) launch.arguments.push_back(resolve(frame, o));
  for (const Operand& o : op.frees) give(frame, o, task);
  return launch;
}

void Buffers::end_step() {
  collect([](TaskId) { return true; });
}

void Buffers::abandon_step() {
  end_step();
  for (std::uint32_t f = 0; f < rank_.plan.frames.size(); ++f) {
    const Block& block = rank_.plan.blocks[rank_.plan.frames[f].block];
    if (outlives_steps(block.role)) continue;
    for (std::uint16_t s = 0; s < static_cast<std::uint16_t>(block.buffers.size()); ++s) {
      Held& held = held_[index(f, s)];
      if (held.data == nullptr) continue;
      if (held.pool == kArenaPool) {
        cells_.push_back(held.data);
      } else if (held.pool == kHostPool) {
        host_.free(held.data);
      } else {
        count(block.buffers[s].category, -memory_.size_of(held.data));
        memory_.free(held.data);
      }
      held.data = nullptr;
    }
  }
}

}  // namespace orrery
