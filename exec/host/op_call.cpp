#include "exec/host/op_call.h"

#include <string>

#include "models/layers/blocks.h"
#include "models/partition/rank_groups.h"
#include "models/schedule/schedules.h"
#include "models/spec/asynchrony.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

// Returns the number of an op's stream of random numbers for dropout, computed from the op's name without the suffix
// "again" of recomputed ops, so that recomputation draws the same random numbers as the first forward pass.
std::uint16_t stream_of(std::string name) {
  if (name.ends_with(" again")) name.resize(name.size() - 6);
  std::uint32_t hash = 2166136261U;  // FNV-1a hash
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return static_cast<std::uint16_t>(hash ^ hash >> 16);
}

std::uint32_t own_frame(const OpCall& c) { return static_cast<std::uint32_t>(&c.frame - c.rank.plan.frames.data()); }
std::uint32_t state_frame(const OpCall& c) { return c.frame.state == kNone ? own_frame(c) : c.frame.state; }

bool whole(const Argument& a) {
  return a.operand.scope == Scope::state && (a.operand.slot == kGradients || a.operand.slot == kParameters);
}

bool of_unit(const OpCall& c) { return c.rank.plan.blocks[c.frame.block].role == BlockRole::unit; }

// Returns the index of a sample within its step. Dropout masks use this index instead of the sample's number in the
// run, because they must not depend on earlier steps.
std::int64_t in_step(const OpCall& c, std::int64_t sample) {
  return c.sample(sample) % c.rank.spec.strategy.global_batch;
}

}  // namespace

// Copies the tokens of all data-parallel ranks, which rank 0 of a PyTorch DataParallel loads.
static void copy_replicas(const OpCall& c, const Load& load, std::int64_t* to) {
  const std::int64_t rows = load.rows / load.replicas;
  for (std::int64_t r = 0; r < load.replicas; ++r) {
    c.for_samples(rows, [&](std::int64_t row, std::int64_t count, std::int64_t sample, std::int64_t position) {
      c.state.text.copy(c.sample(sample, r), c.rank.spec.sequence, {position, count}, load.labels ? 1 : 0,
                        to + r * rows + row);
    });
  }
}

// Copies the tokens that a pass of generation adds: those of prompts, or the last token that was chosen for each
// sequence.
static void copy_pass(const OpCall& c, std::int64_t rows, std::int64_t* to) {
  const GeneratedState& g = *c.state.generated;
  const bool sends = c.rank.plan.blocks[c.frame.block].role == BlockRole::exchange;
  if (sends || c.pass().answers(*c.rank.spec.generation)) {
    for (std::int64_t r = 0; r < rows; ++r) to[r] = g.tokens[static_cast<std::size_t>(c.sequence_of(r))].back();
    return;
  }
  c.for_samples(0, rows, [&](std::int64_t row, std::int64_t count, std::int64_t sample, std::int64_t position) {
    g.prompt(c.sample(sample), position, count, to + row);
  });
}

void copy_text(const OpCall& c, const Load& load, std::int64_t* to) {
  if (c.state.generated) return copy_pass(c, load.rows, to);
  if (load.replicas > 0) return copy_replicas(c, load, to);
  // Without multi-token prediction, the rows are one contiguous range of tokens, which may be only this rank's part of
  // the micro-batch.
  const bool one = load.predictions == 1;
  for (const PredictedRows& p : predicted_rows(load.rows, load.predictions, one ? 1 : load.parts)) {
    const auto copy = [&](std::int64_t row, std::int64_t count, std::int64_t sample, std::int64_t position) {
      c.state.text.copy(c.sample(sample), c.rank.spec.sequence, {position, count},
                        load.ahead + p.depth + (load.labels ? 1 : 0), to + p.first + row);
    };
    one ? c.for_samples(c.first_row(load.rows, load.side), load.rows, copy) : c.for_samples(p.token, p.count, copy);
  }
}

std::vector<PredictedRows> predicted_rows(std::int64_t rows, std::int64_t predictions, std::int64_t parts) {
  std::vector<PredictedRows> list;
  const std::int64_t count = rows / (predictions * parts);
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t depth = 0; depth < predictions; ++depth)
      list.push_back({(part * predictions + depth) * count, count, depth, part * count});
  }
  return list;
}

double loss_weight(const PredictedRows& rows, std::int64_t predictions) {
  return rows.depth == 0 ? 1 : kPredictionWeight / static_cast<double>(predictions - 1);
}

Argument word_table(const OpCall& c, const Argument& whole) {
  // The embedding table may lie in the weights of another chunk of layers of this rank, to which this chunk's output is
  // tied.
  const std::uint32_t lender = c.rank.plan.frames[state_frame(c)].previous;
  for (const PlacedParameter& p : c.rank.parameters.at(lender == kNone ? state_frame(c) : lender)) {
    if (p.name != kEmbeddingTable) continue;
    Argument table = whole;
    table.data += p.first * whole.width;
    table.bytes = p.local.out * p.local.in * whole.width;
    return table;
  }
  return whole;
}

std::int64_t first_token(const OpCall& c, Dimension over, std::int64_t columns) {
  return c.rank.position_in(over).index * columns;
}

float token_factor(const OpCall& c) {
  const Strategy& s = c.rank.spec.strategy;
  // An asynchronous parameter server applies the gradients of each worker separately, so a worker averages only over
  // its own ranks.
  const bool averaged = averaging(c.rank.spec, row_of(s.sharding)) != Averaging::none || asynchronous_workers(s);
  const std::int64_t samples = c.rank.plan.update_every * s.micro_batch * s.data;
  const double tokens =
      static_cast<double>(samples * c.rank.spec.sequence) / (averaged ? static_cast<double>(s.loss_ranks()) : 1);
  return static_cast<float>(1 / tokens);
}

// Returns dropout masks for the rows of an op. Random numbers are indexed by position in the uncut tensor, (sample,
// position, hidden) or (sample, head, query, key), so they do not depend on how the tensor is cut over ranks.
std::vector<MaskPart> mask_parts(const OpCall& c, const Residual& r) {
  kernels::Dropout d = {c.model().dropout,
                        {c.state.training.seed, static_cast<std::uint32_t>(c.step()),
                         static_cast<std::uint16_t>(c.frame.layer + 1), stream_of(c.op.name)},
                        {}};
  std::vector<MaskPart> parts;
  const bool scores = !r.residual && c.rank.plan.blocks[c.frame.block].role == BlockRole::layer;
  const GroupPosition& cut = c.rank.position_in(r.side.columns);
  if (!scores) {
    const std::int64_t columns = r.columns * cut.size;
    d.index.row_stride = static_cast<std::uint64_t>(columns);
    const std::int64_t first = c.first_row(r.rows, r.side);
    c.for_samples(first, r.rows, [&](std::int64_t row, std::int64_t count, std::int64_t sample, std::int64_t position) {
      const std::int64_t place = in_step(c, sample) * c.rank.spec.sequence + position;
      d.index.first = static_cast<std::uint64_t>(place * columns + cut.index * r.columns);
      d.index.rows_per_sample = count;
      parts.push_back({d, row, count});
    });
    return parts;
  }
  const std::int64_t rows = r.rows / c.batch(), queries = r.columns;  // rows: number of rows (head, query) of a sample
  d.index.row_stride = static_cast<std::uint64_t>(queries);
  const GroupPosition& ulysses = c.rank.position_in(Dimension::ulysses);
  const std::int64_t first_head = (cut.index * ulysses.size + ulysses.index) * (rows / queries);
  const std::int64_t first_sample = c.first_row(c.batch() * c.sequence(), r.side) / c.sequence();
  for (std::int64_t b = 0; b < c.batch(); ++b) {
    const std::int64_t head = in_step(c, first_sample + b) * c.rank.spec.model.heads + first_head;
    d.index.first = static_cast<std::uint64_t>(head * queries * queries);
    d.index.rows_per_sample = rows;
    parts.push_back({d, b * rows, rows});
  }
  return parts;
}

const std::vector<Piece>& pieces_of(const OpCall& c) {
  return of_unit(c) ? c.rank.unit_pieces.at(own_frame(c)) : c.rank.pieces.at(state_frame(c));
}

std::vector<Piece> pieces_within(const OpCall& c, std::int64_t first, std::int64_t n) {
  std::vector<Piece> result;
  for (Piece p : pieces_of(c)) {
    const std::int64_t begin = std::max(p.shard_first, first);
    const std::int64_t end = std::min(p.shard_first + p.owned, first + n);
    if (begin >= end) continue;
    p.owned_first += begin - p.shard_first;
    p.shard_first = begin;
    p.owned = end - begin;
    result.push_back(p);
  }
  return result;
}

std::int64_t offset_of(const Argument& a, const Piece& piece) {
  return whole(a) ? piece.owned_first : piece.shard_first;
}

// Returns whether another rank counts the squares of this weight in the gradient norm: if several ranks hold the
// weight, only the first of them counts the weight's squares.
static bool counted_elsewhere(const OpCall& c, const PlacedParameter& p) {
  const auto index = [&](Dimension d) { return c.rank.position_in(d).index; };
  const bool experts = p.local.experts > 0;
  const auto held_before = [&](Dimension group) {
    return (p.local.cut == Cut::none || p.local.summed_over(group)) && index(group) > 0;
  };
  const std::vector<Dimension> axes = tensor_axes(c.rank.spec.strategy);
  const bool held = experts ? p.local.cut == Cut::none && index(Dimension::expert_tensor) > 0
                            : std::any_of(axes.begin(), axes.end(), held_before);
  const Strategy& s = c.rank.spec.strategy;
  const bool sharded = row_of(s.sharding).shards_optimizer, cut_over_both = sharded && s.ends_unlike();
  if ((p.copy && !cut_over_both) || held) return true;
  // With experts, or several copies of the model, the gradient norm is summed over all ranks
  // (models/partition/rank_groups.h), including ranks that hold the same weights; else it is summed over the stages of
  // a pipeline and the replicas of each stage.
  if (c.rank.first_sample > 0 && !sharded) return true;
  const bool everybody = has_experts(c.rank.spec) || runs_both_ways(s.schedule);
  const bool copies = everybody && !sharded;
  return copies && index(experts ? Dimension::expert_data : Dimension::data) > 0;
}

std::vector<Stretch> norm_stretches(const OpCall& c, const Argument& gradients) {
  std::vector<Stretch> stretches;
  // Number of elements of the rank's shards that come before the op's buffer, if that buffer holds only a unit
  // (parameters that are gathered together); 0 for an op of a complete chunk of layers.
  const std::int64_t before = of_unit(c) ? pieces_of(c).front().shard_first : 0;
  for (const Piece& piece : pieces_of(c)) {
    for (const PlacedParameter& p : c.rank.parameters.at(state_frame(c))) {
      const std::int64_t kv = c.rank.position_in(Dimension::kv).index > 0 ? p.local.kv_rows * p.local.in : 0;
      const std::int64_t begin = std::max(piece.owned_first, p.first);
      const std::int64_t end = std::min(piece.owned_first + piece.owned, p.first + p.local.out * p.local.in - kv);
      if (begin >= end || counted_elsewhere(c, p)) continue;
      stretches.push_back({offset_of(gradients, piece) - before + begin - piece.owned_first, end - begin});
    }
  }
  return stretches;
}

}  // namespace orrery
