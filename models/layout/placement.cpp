#include "models/layout/placement.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "models/layers/blocks.h"

namespace orrery {
namespace {

std::string full_name(const Frame& frame, const Block& block, const LocalParameter& p) {
  return block.role == BlockRole::layer && p.name != kEmbeddingTable ? fmt::format("layer {} {}", frame.layer, p.name)
                                                                     : p.name;
}

Bytes bytes_of(const Plan& plan, std::uint32_t frame, std::uint16_t slot) {
  return plan.blocks[plan.frames[frame].block].buffers[slot].bytes;
}

// Whether a frame has a buffer and the buffer is not empty; only some strategies' frames have the last buffers of a
// unit.
bool has_bytes(const Plan& plan, std::uint32_t frame, std::uint16_t slot) {
  const std::vector<BlockBuffer>& buffers = plan.blocks[plan.frames[frame].block].buffers;
  return slot < buffers.size() && buffers[slot].bytes > 0;
}

// Returns the ids of the frames (buffers) of a chunk's sharding units that have trained weights, or if `frozen` of
// those that have frozen weights. The key is the position of a unit's first element in the chunk's flat buffers.
std::map<std::int64_t, std::uint32_t> units_of(const Plan& plan, std::uint32_t state, bool frozen = false) {
  std::map<std::int64_t, std::uint32_t> units;
  for (const Frame& f : plan.frames) {
    if (f.state != state || f.unit == kNone || plan.blocks[f.block].parameters.empty()) continue;
    for (std::uint32_t u = f.unit; u != kNone; u = plan.frames[u].next) {
      if (bytes_of(plan, u, frozen ? kGatheredFrozen : kUnitGradient) > 0)
        units[frozen ? plan.frames[u].frozen_base : plan.frames[u].base] = u;
    }
  }
  return units;
}

bool is_gathered_frozen(const Operand& o) { return o.scope == Scope::unit && o.slot == kGatheredFrozen; }

// A contiguous range of a chunk's flat buffers that a collective moves: its number of elements, and the group of ranks
// over which the range is cut.
struct MovedRun {
  std::int64_t elements = 0;
  Dimension group = Dimension::data;
};

// Returns the runs of elements that a plan's collectives of type `kind`, among ranks that hold the same weights, read
// from or write to one instance of buffers (`frame`), of trained weights or if `frozen` of frozen ones. The key is the
// index of a run's first element, counted from the first element of the weights in these buffers.
std::map<std::int64_t, MovedRun> moved_runs(const Plan& plan, std::uint32_t frame, CollectiveKind kind,
                                            bool frozen = false) {
  std::map<std::int64_t, MovedRun> runs;
  const RankClass& slot = plan.classes[plan.frames[frame].slot];
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c == nullptr || plan.tasks[t].frame != frame || c->kind != kind) continue;
    if (frozen != std::ranges::any_of(plan.op_of(t).operands, is_gathered_frozen)) continue;
    if (c->group == Dimension::data || c->group == Dimension::expert_data || c->group == Dimension::embedding ||
        kind == CollectiveKind::push)
      runs[c->first] = {c->bytes / c->width, c->group};
  }
  return runs;
}

class Cutter {
 public:
  Cutter(const Plan& plan, std::int64_t rank) : plan_(plan), rank_(rank) {}

  void add(std::int64_t first, std::int64_t elements, std::uint32_t unit, Dimension group) {
    const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(group)];
    const auto& members = table.groups[table.member_of[rank_]];
    const auto at = std::find(members.begin(), members.end(), static_cast<std::int32_t>(rank_));
    add(first, elements, unit, at - members.begin(), static_cast<std::int64_t>(members.size()));
  }
  // Adds a range of weights whose gradients workers push to the parameter servers. The range is cut into equal parts,
  // one for each server (or chain of servers), and this server updates one of them.
  void add_served(std::int64_t first, std::int64_t elements) {
    add(first, elements, kNone, (rank_ - plan_.workers()) % plan_.ranges(), plan_.ranges());
  }
  // Adds a range of elements that only this rank holds, so that no collective moves it.
  void add_whole(std::int64_t first, std::int64_t elements, std::uint32_t unit) {
    if (elements > 0) add(first, elements, unit, 0, 1);
  }

  std::vector<Piece> pieces;

 private:
  void add(std::int64_t first, std::int64_t elements, std::uint32_t unit, std::int64_t member, std::int64_t members) {
    const std::int64_t size = ceil_div(elements, members);
    const std::int64_t begin = std::min(member * size, elements), end = std::min(begin + size, elements);
    pieces.push_back({first, elements, first + begin, end - begin, shard_, unit, members});
    shard_ += size;
  }

  const Plan& plan_;
  std::int64_t rank_, shard_ = 0;
};

}  // namespace

std::vector<PlacedParameter> parameters_of(const Plan& plan, std::uint32_t state, bool frozen) {
  std::map<std::int64_t, PlacedParameter> placed;
  for (const Frame& f : plan.frames) {
    if (f.state != state || f.micro_batch != 0) continue;
    const Block& block = plan.blocks[f.block];
    for (const LocalParameter& p : block.parameters) {
      if (p.frozen != frozen) continue;
      const bool copy = block.role != BlockRole::embedding && p.name == kEmbeddingTable;
      const std::int64_t first = (frozen ? f.frozen_base : f.base) + p.offset;
      const bool of_layer = block.role == BlockRole::layer && p.name != kEmbeddingTable;
      placed.try_emplace(first, PlacedParameter{full_name(f, block, p), p, first, copy, of_layer});
    }
  }
  std::vector<PlacedParameter> result;
  result.reserve(placed.size());
  for (auto& [first, p] : placed) result.push_back(std::move(p));
  return result;
}

bool updates(const Plan& plan, const RankClass& slot) {
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    if (std::holds_alternative<Update>(plan.op_of(t).work)) return true;
  }
  return false;
}

std::vector<Piece> pieces_of(const Plan& plan, std::uint32_t state, std::int64_t rank) {
  Cutter cutter(plan, rank);
  const RankClass& slot = plan.classes[plan.frames[state].slot];
  if (!updates(plan, slot)) return {};
  if (slot.server) {
    for (const auto& [first, run] : moved_runs(plan, state, CollectiveKind::push))
      cutter.add_served(first, run.elements);
    return cutter.pieces;
  }
  if (bytes_of(plan, state, kGradientShard) > 0) {
    for (const auto& [base, unit] : units_of(plan, state)) {
      const auto regions = moved_runs(plan, unit, CollectiveKind::reduce_scatter);
      const std::int64_t elements = bytes_of(plan, unit, kUnitGradient) / plan.element_bytes;
      if (has_bytes(plan, unit, kNarrowGradients))
        cutter.add(base, elements, unit, Dimension::data);
      else if (regions.empty())
        cutter.add_whole(base, elements, unit);
      for (const auto& [first, run] : regions) cutter.add(base + first, run.elements, unit, run.group);
    }
    return cutter.pieces;
  }
  // The ranges of weights whose update is divided among ranks are derived from the plan's all-gathers of weights, not
  // from its reductions of gradients, because some frameworks all-reduce a complete bucket instead of scattering it.
  std::int64_t next = 0;
  for (const auto& [first, run] : moved_runs(plan, state, CollectiveKind::all_gather)) {
    cutter.add_whole(next, first - next, kNone);
    cutter.add(first, run.elements, kNone, run.group);
    next = first + run.elements;
  }
  cutter.add_whole(next, bytes_of(plan, state, kParameters) / plan.element_bytes - next, kNone);
  return cutter.pieces;
}

std::vector<Piece> frozen_pieces_of(const Plan& plan, std::uint32_t state, std::int64_t rank) {
  Cutter cutter(plan, rank);
  for (const auto& [base, unit] : units_of(plan, state, true)) {
    const auto regions = moved_runs(plan, unit, CollectiveKind::all_gather, true);
    if (regions.empty()) cutter.add_whole(base, bytes_of(plan, unit, kGatheredFrozen) / plan.frozen_width, unit);
    for (const auto& [first, run] : regions) cutter.add(base + first, run.elements, unit, run.group);
  }
  return cutter.pieces;
}

std::vector<Piece> secondary_pieces_of(const Plan& plan, std::uint32_t state, std::int64_t rank) {
  Cutter cutter(plan, rank);
  if (!has_bytes(plan, state, kSecondaryShard)) return {};
  for (const auto& [base, unit] : units_of(plan, state))
    cutter.add(base, bytes_of(plan, unit, kUnitGradient) / plan.element_bytes, unit, Dimension::data_in_node);
  return cutter.pieces;
}

std::vector<std::uint32_t> states_of(const Plan& plan, std::uint32_t slot) {
  std::vector<std::uint32_t> states;
  for (std::uint32_t f = 0; f < plan.frames.size(); ++f) {
    if (plan.frames[f].slot == slot && plan.blocks[plan.frames[f].block].role == BlockRole::state) states.push_back(f);
  }
  return states;
}

ExpertRow expert_row(const LocalParameter& p, std::int64_t index) {
  ExpertRow r{p, 0, p.tile_first + index};
  if (p.tile_of > 0) r.one.out = p.tile_of;
  if (p.experts == 0) return r;
  r.one.out /= p.experts;
  r.one.experts = 0;
  return {r.one, index / r.one.out, index % r.one.out};
}

std::vector<SectionRows> section_rows(const Model& m, const LocalParameter& p, std::int64_t rank, std::int64_t ranks) {
  if (p.cut == Cut::halves)
    return {{p.out / 2, p.out / 2 * ranks, p.out / 2 * rank}, {p.out / 2, p.out / 2 * ranks, p.out / 2 * rank}};
  if (p.cut == Cut::sections) {
    std::vector<SectionRows> sections;
    for (const std::int64_t rows : p.sections) sections.push_back({rows, rows * ranks, rows * rank});
    return sections;
  }
  if (p.cut == Cut::none || p.cut == Cut::columns) return {{p.out, p.out, 0}};
  if (p.cut != Cut::heads) return {{p.out, p.out * ranks, p.out * rank}};
  const std::int64_t d = m.head_dim, q = m.heads / ranks * d;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, m.kv_heads / ranks);
  const std::int64_t kv_first = rank * m.kv_heads / ranks * d;
  const SectionRows queries = {q, m.heads * d, rank * q}, kv = {kv_heads * d, m.kv_heads * d, kv_first};
  if (m.attention_gate) return {queries, queries, kv, kv};  // the gate is cut over ranks as the queries are
  return {queries, kv, kv};
}

std::int64_t uncut_index(const Model& model, const LocalParameter& p, std::int64_t index, std::int64_t rank,
                         std::int64_t ranks) {
  if (p.cut == Cut::columns) return rank * p.in + index;
  std::int64_t before = 0, uncut_before = 0;
  for (const SectionRows& part : section_rows(model, p, rank, ranks)) {
    if (index < before + part.rows) return uncut_before + part.uncut_first + index - before;
    before += part.rows;
    uncut_before += part.uncut_rows;
  }
  return -1;
}

UncutShape uncut_shape(const Model& model, const LocalParameter& p, std::int64_t ranks) {
  if (p.cut == Cut::columns) return {p.out, p.in * ranks};
  std::int64_t out = 0;
  for (const SectionRows& part : section_rows(model, p, 0, ranks)) out += part.uncut_rows;
  return {out, p.in};
}

}  // namespace orrery
