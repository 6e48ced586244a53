#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "exec/host/run_state.h"
#include "exec/memory/buffers.h"
#include "kernels/cpu/residual.h"

namespace orrery {

// One task being launched: its operands sorted into what a block builder recorded (reads, weights, updates, writes,
// weight gradients), and where its rows stand in the batch. Addresses are the device's; nothing is read here.
struct OpCall {
  OpCall(RunState& s, const Launch& l)
      : state(s), rank(s.rank), op(rank.plan.op_of(l.task)), frame(rank.plan.frames[rank.plan.tasks[l.task].frame]) {
    for (const Argument& a : l.arguments) {
      const Operand& o = a.operand;
      if (o.parameter >= 0)
        (o.access == Access::read ? weights : gradients).push_back(a);
      else
        (o.access == Access::read ? reads : o.access == Access::write ? writes : updates).push_back(a);
    }
  }

  static float* floats(const Argument& a) { return reinterpret_cast<float*>(a.data); }
  static std::int64_t* integers(const Argument& a) { return reinterpret_cast<std::int64_t*>(a.data); }

  // Tokens of one sample that this rank has.
  std::int64_t sequence() const { return rank.spec.sequence / rank.spec.strategy.context; }
  // Samples of a micro-batch on this rank: a grid of tensor ranks cuts them.
  std::int64_t batch() const { return rank.samples / (size(Dimension::tensor_column) * size(Dimension::tensor_depth)); }
  std::int64_t size(Dimension d) const { return rank.seat(d).size; }
  // Number of ranks that the attention heads are cut over.
  std::int64_t head_parts() const {
    return size(Dimension::tensor_row) > 1 ? size(Dimension::tensor_row) : size(Dimension::tensor);
  }
  // Columns of a matrix of activations, from the buffer's bytes and the number of rows.
  std::int64_t columns(const Argument& a, std::int64_t rows) const {
    return a.bytes / (rows * rank.plan.element_bytes);
  }
  // Number of a sample of this micro-batch, counted over the whole run.
  std::int64_t sample(std::int64_t in_micro_batch) const { return sample(in_micro_batch, rank.replica); }
  std::int64_t sample(std::int64_t in_micro_batch, std::int64_t replica) const {  // for another data-parallel rank
    const Strategy& s = rank.spec.strategy;
    const std::int64_t first = (frame.micro_batch * s.data + replica) * s.micro_batch + rank.first_sample;
    return state.round * rank.plan.steps * s.global_batch + first + in_micro_batch;
  }
  // Steps of the plan before this task's step; 0 for tasks that belong to no micro-batch. step() counts over the whole
  // run.
  std::size_t step_of_plan() const {
    const Plan& p = rank.plan;
    return frame.micro_batch < 0 ? 0 : static_cast<std::size_t>(frame.micro_batch / p.step_micro_batches());
  }
  std::int64_t step() const { return state.round * rank.plan.steps + static_cast<std::int64_t>(step_of_plan()); }
  // Optimizer updates of the run before this task's update.
  std::int64_t updates_before() const {
    const Plan& p = rank.plan;
    const std::int64_t before = frame.micro_batch < 0 ? 0 : frame.micro_batch / p.update_every;
    return state.round * (p.micro_batches / p.update_every) + before;
  }
  // First row of this rank. Under sequence parallelism a rank holds rows [tensor rank * rows, ...) of the micro-batch.
  std::int64_t first_row(std::int64_t rows) const {
    return rows < batch() * sequence() ? rank.seat(Dimension::tensor).index * rows : 0;
  }
  // First row of this rank on a tensor-parallel grid, among the rows that the tensor group has: rows of a depth layer,
  // or this rank's part of them.
  std::int64_t first_row(std::int64_t rows, const Side& side) const {
    const Seat &depth = rank.seat(Dimension::tensor_depth), &part = rank.seat(side.rows);
    if (depth.size * part.size == 1) return first_row(rows);
    const std::int64_t layer = rank.samples * sequence() / depth.size;
    return depth.index * layer + (rows < layer ? part.index * rows : 0);
  }
  // Calls f(row, count, sample, position) for each run of rows that follow each other in one sample.
  template <class F>
  void for_samples(std::int64_t rows, const F& f) const {
    for_samples(first_row(rows), rows, f);
  }
  template <class F>
  void for_samples(std::int64_t first, std::int64_t rows, const F& f) const {
    for (std::int64_t r = 0; r < rows;) {
      std::int64_t in_part = (first + r) % sequence();
      const SequencePart* part = rank.parts.data();
      for (; in_part >= part->count; ++part) in_part -= part->count;
      const std::int64_t count = std::min(rows - r, part->count - in_part);
      f(r, count, (first + r) / sequence(), part->first + in_part);
      r += count;
    }
  }

  RunState& state;
  const Rank& rank;
  const Op& op;
  const Frame& frame;
  std::vector<Argument> reads, weights, updates, writes, gradients;
};

// Copies this rank's tokens of this micro-batch, or their labels, to host memory.
void copy_text(const OpCall& c, const Load& load, std::int64_t* to);

// The rows of one prediction in an op on several predictions (Load): rows that predict tokens further on by `depth`,
// and their first place among the micro-batch's tokens.
struct PredictedRows {
  std::int64_t first = 0, count = 0;
  std::int64_t depth = 0, token = 0;
};
std::vector<PredictedRows> predicted_rows(std::int64_t rows, std::int64_t predictions, std::int64_t parts);
// Weight of the losses of a prediction's rows in the total loss.
double loss_weight(const PredictedRows& rows, std::int64_t predictions);

// The token-embedding table, in the flat buffer of the chunk that an operand with Part::tied stands for.
Argument word_table(const OpCall& c, const Argument& whole);

// First token id of this rank's part of a vocabulary that is cut over a group, `columns` ids for each rank.
std::int64_t first_token(const OpCall& c, Dimension over, std::int64_t columns);

// Factor of the gradient of a token's loss: the loss is the mean over an update's tokens; a stack that averages
// gradients takes the mean over one rank's tokens.
float loss_scale(const OpCall& c);

// One part of a dropout's mask: rows [row, row + count) of the op.
struct MaskPart {
  kernels::Dropout dropout;
  std::int64_t row = 0, count = 0;
};
std::vector<MaskPart> mask_parts(const OpCall& c, const Residual& r);

// A stretch of elements that this rank owns, on which an op on a chunk's state works; `first` counts in the buffer.
struct Stretch {
  std::int64_t first = 0, count = 0;
};
// The pieces that this rank owns of the chunk or, for the op of a unit, of the unit.
const std::vector<Piece>& pieces_of(const OpCall& c);
// The parts of those pieces that lie among elements [first, first + n) of the rank's shards.
std::vector<Piece> pieces_within(const OpCall& c, std::int64_t first, std::int64_t n);
// Offset of a piece in a buffer of the whole chunk, or in a buffer of shards.
std::int64_t place_of(const Argument& a, const Piece& piece);
// The stretches of `gradients` whose squares this rank counts. Weights that each rank of the tensor group holds whole
// count on the first one, key/value heads on the first of those that hold them, a tied table on the first stage.
std::vector<Stretch> norm_stretches(const OpCall& c, const Argument& gradients);

}  // namespace orrery
