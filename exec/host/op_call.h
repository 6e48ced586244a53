#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "exec/host/run_state.h"
#include "exec/memory/buffers.h"
#include "kernels/cpu/residual.h"
#include "models/layers/blocks.h"
#include "models/spec/documents.h"

namespace orrery {

// A task that is being launched: its operands by use (reads, weights, updates, writes, gradients of weights), and the
// samples and rows that it works on. Addresses may be on the device, so nothing is read from them in this struct.
struct OpCall {
  OpCall(RunState& s, const Launch& l)
      : state(s), rank(s.rank), op(rank.plan.op_of(l.task)), frame(rank.plan.frames[rank.plan.tasks[l.task].frame]) {
    for (const Argument& a : l.arguments) {
      const Operand& o = a.operand;
      // kept: the operand is a buffer of the 16-bit gradients of one micro-batch. Although these are gradients of
      // weights, the operand is listed in reads, writes or updates, as activations are, and not in `weights` or
      // `gradients`.
      const bool kept = o.scope == Scope::state && o.slot == kFreshGradients;
      if (o.parameter >= 0 && !kept)
        (o.access == Access::read ? weights : gradients).push_back(a);
      else
        (o.access == Access::read ? reads : o.access == Access::write ? writes : updates).push_back(a);
    }
  }

  // Returns the address of a number of which every rank has one, such as the gradient norm, if this number is an
  // operand of the op; else null. slot: identifies the number (a RankBuffer).
  float* rank_number(std::uint16_t slot) const {
    for (const std::vector<Argument>* list : {&reads, &updates, &writes}) {
      for (const Argument& a : *list) {
        if (a.operand.scope == Scope::rank && a.operand.slot == slot) return floats(a);
      }
    }
    return nullptr;
  }

  // Whether the task is one of the frozen model beside the one that trains, and the model that the task computes.
  bool of_second() const { return rank.plan.blocks[frame.block].second; }
  const Model& model() const { return of_second() ? rank.spec.second->model : rank.spec.model; }
  const kernels::RotaryTable& rotary() const { return of_second() ? state.second_rotary : state.rotary; }

  static float* floats(const Argument& a) { return reinterpret_cast<float*>(a.data); }
  static std::int64_t* integers(const Argument& a) { return reinterpret_cast<std::int64_t*>(a.data); }

  // Returns the number of micro-batches of one pass of generation, and the pass that this task belongs to.
  std::int64_t pass_micro_batches() const {
    return rank.plan.micro_batches / static_cast<std::int64_t>(state.generated->passes.size());
  }
  const GenerationPass& pass() const { return state.generated->passes[frame.micro_batch / pass_micro_batches()]; }
  // Returns the number of tokens of each sample on this rank, in generation those that the pass adds.
  std::int64_t sequence() const {
    return state.generated ? pass().tokens : rank.spec.sequence / rank.spec.strategy.context;
  }
  // Returns the position in the sample of the first token that a generation's pass adds; 0 in training.
  std::int64_t first_position() const { return state.generated ? pass().cached : 0; }
  // Returns the index, among the sequences that this rank generates, of a sample of this micro-batch.
  std::int64_t sequence_of(std::int64_t in_micro_batch) const {
    return frame.micro_batch % pass_micro_batches() * rank.samples + in_micro_batch;
  }
  // Returns the number of samples of a micro-batch on this rank; a grid of tensor-parallel ranks divides the samples
  // among its ranks.
  std::int64_t batch() const { return rank.samples / (size(Dimension::tensor_column) * size(Dimension::tensor_depth)); }
  std::int64_t size(Dimension d) const { return rank.position_in(d).size; }
  // Returns the number of ranks over which the attention heads are divided.
  std::int64_t head_parts() const {
    return size(Dimension::tensor_row) > 1 ? size(Dimension::tensor_row) : size(Dimension::tensor);
  }
  // Returns the number of columns of a matrix of activations, from the bytes of its buffer and the number of rows.
  std::int64_t columns(const Argument& a, std::int64_t rows) const {
    return a.bytes / (rows * rank.plan.element_bytes);
  }
  // Returns the number of a sample in the complete run, given the sample's index in this micro-batch.
  std::int64_t sample(std::int64_t in_micro_batch) const { return sample(in_micro_batch, rank.replica); }
  // Returns the global number of a sample of this micro-batch on another data-parallel rank.
  std::int64_t sample(std::int64_t in_micro_batch, std::int64_t replica) const {
    const Strategy& s = rank.spec.strategy;
    if (state.generated)
      return (frame.micro_batch % pass_micro_batches() * s.data + replica) * s.micro_batch + in_micro_batch;
    const std::int64_t first = (frame.micro_batch * s.data + replica) * s.micro_batch + rank.first_sample;
    return state.round * rank.plan.steps * s.global_batch + first + in_micro_batch;
  }
  // Returns the index of this task's step among the steps that the plan holds; 0 for tasks that belong to no
  // micro-batch. step() returns the index of the step in the complete run.
  std::size_t step_of_plan() const {
    const Plan& p = rank.plan;
    return frame.micro_batch < 0 ? 0 : static_cast<std::size_t>(frame.micro_batch / p.step_micro_batches());
  }
  std::int64_t step() const { return state.round * rank.plan.steps + static_cast<std::int64_t>(step_of_plan()); }
  // Returns the number of optimizer updates of the run before the update that this task belongs to.
  std::int64_t updates_before() const {
    const Plan& p = rank.plan;
    const std::int64_t before = frame.micro_batch < 0 ? 0 : frame.micro_batch / p.update_every;
    return state.round * (p.micro_batches / p.update_every) + before;
  }
  // Returns the index of this rank's first row (token) in the micro-batch: tensor rank * rows under sequence
  // parallelism, else 0.
  std::int64_t first_row(std::int64_t rows) const {
    return rows < batch() * sequence() ? rank.position_in(Dimension::tensor).index * rows : 0;
  }
  // Returns the index of this rank's first row (token) among the rows of a tensor-parallel group that is a grid of
  // ranks (rows, columns, depth). Each layer of the depth has an equal share of the rows; a rank holds this share or a
  // part of it.
  std::int64_t first_row(std::int64_t rows, const Side& side) const {
    const GroupPosition &depth = rank.position_in(Dimension::tensor_depth), &part = rank.position_in(side.rows);
    if (depth.size * part.size == 1) return first_row(rows);
    const std::int64_t layer = rank.samples * sequence() / depth.size;
    return depth.index * layer + (rows < layer ? part.index * rows : 0);
  }
  // Calls f(row, count, sample, position) for each range of consecutive rows whose tokens are consecutive in one
  // sample.
  template <class F>
  void for_samples(std::int64_t rows, const F& f) const {
    for_samples(first_row(rows), rows, f);
  }
  template <class F>
  void for_samples(std::int64_t first, std::int64_t rows, const F& f) const {
    if (state.generated) {
      for (std::int64_t r = 0; r < rows;) {
        const std::int64_t in_pass = (first + r) % sequence(), count = std::min(rows - r, sequence() - in_pass);
        f(r, count, (first + r) / sequence(), first_position() + in_pass);
        r += count;
      }
      return;
    }
    for (std::int64_t r = 0; r < rows;) {
      std::int64_t in_part = (first + r) % sequence();
      const SequencePart* part = rank.parts.data();
      for (; in_part >= part->count; ++part) in_part -= part->count;
      const std::int64_t count = std::min(rows - r, part->count - in_part);
      f(r, count, (first + r) / sequence(), part->first + in_part);
      r += count;
    }
  }

  // As for_samples(), for samples that are packed from documents: f is called for each range of rows of one document,
  // and `position` counts from the document's first token.
  template <class F>
  void for_documents(std::int64_t rows, const F& f) const {
    for_samples(rows, [&](std::int64_t row, std::int64_t count, std::int64_t in_batch, std::int64_t position) {
      if (!rank.spec.documents) return f(row, count, in_batch, position);
      std::int64_t begin = 0;
      for (const std::int64_t length : documents_of(rank.spec, sample(in_batch) % rank.spec.strategy.global_batch)) {
        const std::int64_t first = std::max(begin, position), last = std::min(begin + length, position + count);
        if (first < last) f(row + first - position, last - first, in_batch, first - begin);
        begin += length;
      }
    });
  }

  RunState& state;
  const Rank& rank;
  const Op& op;
  const Frame& frame;
  std::vector<Argument> reads, weights, updates, writes, gradients;
};

// Copies the tokens of this micro-batch that this rank loads, or their labels, to host memory.
void copy_text(const OpCall& c, const Load& load, std::int64_t* to);

// The rows, in an op of multi-token prediction, that predict the token `depth` positions after the next one; the op has
// such rows for several depths. token: index of the first row's token in the micro-batch.
struct PredictedRows {
  std::int64_t first = 0, count = 0;
  std::int64_t depth = 0, token = 0;
};
std::vector<PredictedRows> predicted_rows(std::int64_t rows, std::int64_t predictions, std::int64_t parts);
// Returns the weight of the losses of some rows in the loss of the step: 1 for rows that predict the next token, less
// for rows that predict further tokens (multi-token prediction).
double loss_weight(const PredictedRows& rows, std::int64_t predictions);

// Returns the token-embedding table as an operand. whole: an operand (Part::tied) that names the complete flat weight
// buffer in which the table lies.
Argument word_table(const OpCall& c, const Argument& whole);

// Returns the first token id of this rank's part of a vocabulary that is divided over a group of ranks, each of which
// has `columns` ids.
std::int64_t first_token(const OpCall& c, Dimension over, std::int64_t columns);

// Returns the factor by which the gradient of one token's loss is multiplied. The loss is the mean over the tokens of
// an update; if ranks average their gradients later, the factor is for the mean over one rank's tokens.
float token_factor(const OpCall& c);

// The arguments of the dropout kernels for the rows [row, row + count) of an op's activations.
struct MaskPart {
  kernels::Dropout dropout;
  std::int64_t row = 0, count = 0;
};
std::vector<MaskPart> mask_parts(const OpCall& c, const Residual& r);

// Consecutive elements of a buffer that this rank owns; `first` is the index in the buffer.
struct Stretch {
  std::int64_t first = 0, count = 0;
};
// Returns the pieces (contiguous ranges of weights) that this rank owns in a chunk of layers, or in one unit
// (parameters that are gathered together) if the op works on a unit.
const std::vector<Piece>& pieces_of(const OpCall& c);
// Returns those parts of this rank's pieces (contiguous ranges of weights) that are elements [first, first + n) of its
// shards.
std::vector<Piece> pieces_within(const OpCall& c, std::int64_t first, std::int64_t n);
// Returns the offset (in elements) of a piece (a contiguous range of weights) in a buffer: in a flat buffer of all
// weights of a chunk of layers, or in a buffer of this rank's shards.
std::int64_t offset_of(const Argument& a, const Piece& piece);
// Returns the contiguous ranges of elements of `gradients` whose squares this rank adds to the gradient norm. Each
// weight is counted on one rank: a weight that all ranks of a tensor group hold counts on the first of these ranks,
// key/value heads on the first rank that holds them, a tied embedding table on the first stage.
std::vector<Stretch> norm_stretches(const OpCall& c, const Argument& gradients);

}  // namespace orrery
