#include "models/plan/runtime_sizes.h"

#include <algorithm>
#include <map>
#include <utility>

namespace orrery {
namespace {

// Converts an op's work on `planned` rows that are routed to experts to `rows` such rows, by scaling the sizes that are
// proportional to their number.
struct OverRows {
  std::int64_t planned, rows;

  std::int64_t share(std::int64_t x) const { return x * rows / planned; }

  Work operator()(GroupedGemm g) const {
    g.rows = share(g.rows);
    return g;
  }
  Work operator()(GroupedBias b) const {
    b.rows = share(b.rows);
    return b;
  }
  Work operator()(Permute p) const {
    p.moved = share(p.moved);
    return p;
  }
  Work operator()(SortChunks s) const {
    s.rows = share(s.rows);
    s.distinct = share(s.distinct);
    return s;
  }
  Work operator()(Activation a) const {
    a.rows = share(a.rows);
    return a;
  }
  Work operator()(Clamp c) const {
    c.rows = share(c.rows);
    return c;
  }
  Work operator()(Add a) const {
    a.elements = share(a.elements);
    return a;
  }
  Work operator()(Cast c) const {
    c.elements = share(c.elements);
    return c;
  }
  template <typename Other>
  Work operator()(const Other& other) const {
    return other;
  }
};

class Resizer {
 public:
  Resizer(const Plan& from, const std::vector<std::vector<std::int64_t>>& sizes)
      : from_(from), plan_(from), sizes_(from.frames.size()) {
    const std::vector<std::size_t> counts = counted_sizes(from);
    std::vector<std::size_t> next(from.classes.size(), 0);
    for (std::size_t f = 0; f < sizes_.size(); ++f) {
      const std::uint32_t slot = from.frames[f].slot;
      const auto begin = sizes[slot].begin() + static_cast<std::ptrdiff_t>(next[slot]);
      const std::size_t count = counts[f];
      sizes_[f].assign(begin, begin + static_cast<std::ptrdiff_t>(count));
      next[slot] += count;
    }
  }

  Plan run() {
    for (std::size_t f = 0; f < sizes_.size(); ++f) {
      if (!sizes_[f].empty()) resize_block(f);
    }
    for (TaskId t = 0; t < from_.task_count(); ++t) {
      if (from_.op_of(t).runtime_size >= 0) resize_op(t);
    }
    return std::move(plan_);
  }

 private:
  const Block& block_of(std::size_t frame) const { return from_.blocks[from_.frames[frame].block]; }

  static Bytes row_of(const Block& block, const BlockBuffer& slot) {
    return slot.bytes / block.runtime_sizes[static_cast<std::size_t>(slot.runtime_size)].predicted;
  }

  // Gives a frame (instance of buffers) a block of its own, in which buffers have the number of rows that this frame
  // has at run time. A buffer with no rows gets one row, as ranks allocate it (exec/memory/buffers.cpp).
  void resize_block(std::size_t frame) {
    Block block = block_of(frame);
    block.forward.clear();  // cleared, because the ids in these lists are of the original plan's ops
    block.backward.clear();
    for (BlockBuffer& s : block.buffers) {
      if (s.runtime_size < 0) continue;
      const std::int64_t rows = sizes_[frame][static_cast<std::size_t>(s.runtime_size)];
      s.bytes = row_of(block_of(frame), s) * std::max<std::int64_t>(rows, 1);
    }
    for (std::size_t i = 0; i < block.runtime_sizes.size(); ++i) block.runtime_sizes[i].predicted = sizes_[frame][i];
    plan_.frames[frame].block = static_cast<std::uint32_t>(plan_.blocks.size());
    plan_.blocks.push_back(std::move(block));
  }

  void resize_op(TaskId t) {
    const std::uint32_t frame = from_.tasks[t].frame;
    const auto [it, first] =
        op_of_.try_emplace({frame, from_.tasks[t].op}, static_cast<std::uint32_t>(plan_.ops.size()));
    plan_.tasks[t].op = it->second;
    if (!first) return;
    Op op = from_.op_of(t);
    const auto index = static_cast<std::size_t>(op.runtime_size);
    if (auto* c = std::get_if<Collective>(&op.work))
      c->bytes = bytes_moved(t);
    else
      op.work = over_rows(op.work, block_of(frame).runtime_sizes[index].predicted, sizes_[frame][index]);
    plan_.ops.push_back(std::move(op));
  }

  // Returns the bytes of a collective: the largest number that one of its members sends or receives.
  Bytes bytes_moved(TaskId t) const {
    const std::uint32_t match = from_.tasks[t].match;
    if (match == kNone) return bytes_at(t);
    Bytes most = 0;
    for (const TaskId member : from_.members_of(match)) most = std::max(most, bytes_at(member));
    return most;
  }

  Bytes bytes_at(TaskId t) const {
    const std::uint32_t frame = from_.tasks[t].frame;
    Bytes most = 0;
    for (const Operand& o : from_.op_of(t).operands) {
      if (o.scope != Scope::own) continue;
      const BlockBuffer& s = block_of(frame).buffers[o.slot];
      if (s.runtime_size < 0) continue;
      most = std::max(most, row_of(block_of(frame), s) * sizes_[frame][static_cast<std::size_t>(s.runtime_size)]);
    }
    return most;
  }

  const Plan& from_;
  Plan plan_;
  // for each frame (instance of a block's buffers), its numbers of rows that are known only at run time
  std::vector<std::vector<std::int64_t>> sizes_;
  // for each frame (instance of buffers) and each op of the original plan (their ids), the id of the new op with that
  // frame's sizes
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> op_of_;
};

}  // namespace

Work over_rows(const Work& work, std::int64_t planned, std::int64_t rows) {
  return std::visit(OverRows{planned, rows}, work);
}

Plan with_runtime_sizes(const Plan& unfolded, const std::vector<std::vector<std::int64_t>>& sizes) {
  return Resizer(unfolded, sizes).run();
}

std::vector<std::size_t> counted_sizes(const Plan& plan) {
  std::vector<std::size_t> counts(plan.frames.size(), 0);
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    if (!std::holds_alternative<CountTokens>(plan.op_of(t).work)) continue;
    const std::uint32_t frame = plan.tasks[t].frame;
    counts[frame] = plan.blocks[plan.frames[frame].block].runtime_sizes.size();
  }
  return counts;
}

bool has_runtime_sizes(const Plan& plan) {
  return std::any_of(plan.blocks.begin(), plan.blocks.end(), [](const Block& b) { return !b.runtime_sizes.empty(); });
}

}  // namespace orrery
