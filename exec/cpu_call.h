#pragma once

#include <algorithm>
#include <vector>

#include "exec/cpu_launch.h"
#include "exec/values.h"
#include "kernels/matrix.h"

namespace orrery {

// One task being run: its operands sorted into what a block builder recorded (reads, weights, updates, writes, weight
// gradients), and where its rows stand in the batch.
struct CpuCall {
  CpuCall(RunState& s, const Launch& l)
      : state(s), rank(s.rank), op(rank.plan.op_of(l.task)), frame(rank.plan.frames[rank.plan.tasks[l.task].frame]) {
    for (const Argument& a : l.arguments) {
      const Operand& o = a.operand;
      if (o.parameter >= 0)
        (o.access == Access::read ? weights : gradients).push_back(a);
      else
        (o.access == Access::read ? reads : o.access == Access::write ? writes : updates).push_back(a);
    }
  }

  // Activations have the plan's width.
  Values read(const Argument& a, std::int64_t n) const { return view(a, n, Values::Mode::read); }
  Values write(const Argument& a, std::int64_t n) const { return view(a, n, Values::Mode::write); }
  Values update(const Argument& a, std::int64_t n) const { return view(a, n, Values::Mode::update); }
  Values view(const Argument& a, std::int64_t n, Values::Mode mode) const {
    return {a.data, n, rank.plan.element_bytes, mode};
  }
  // Weights and their gradients have the width of the buffer they lie in.
  Values weight(const Argument& a) const { return {a.data, a.bytes / a.width, a.width, Values::Mode::read}; }
  Values gradient(const Argument& a) const { return {a.data, a.bytes / a.width, a.width, Values::Mode::update}; }

  // A table's gradient, or the dense one that the stack's autograd makes before it adds that.
  Values table_gradient(std::int64_t n) const {
    return gradients.empty() ? update(updates[0], n) : gradient(gradients[0]);
  }

  static float* floats(const Argument& a) { return reinterpret_cast<float*>(a.data); }
  static std::int64_t* integers(const Argument& a) { return reinterpret_cast<std::int64_t*>(a.data); }

  std::int64_t sequence() const { return rank.spec.sequence; }
  std::int64_t batch() const { return rank.spec.strategy.micro_batch; }
  // The number over the whole run of a sample of this micro-batch.
  std::int64_t sample(std::int64_t in_micro_batch) const {
    const Strategy& s = rank.spec.strategy;
    const std::int64_t first = (frame.micro_batch * s.data + rank.replica) * s.micro_batch;
    return state.step * s.global_batch + first + in_micro_batch;
  }
  // Under sequence parallelism a rank holds rows [tensor rank * rows, ...) of the micro-batch's.
  std::int64_t first_row(std::int64_t rows) const {
    return rows < batch() * sequence() ? rank.seat(Dimension::tensor).index * rows : 0;
  }
  // Calls f(row, count, sample, position) for each run of rows that lies in one sample.
  template <class F>
  void for_samples(std::int64_t rows, const F& f) const {
    const std::int64_t first = first_row(rows);
    for (std::int64_t r = 0; r < rows;) {
      const std::int64_t position = (first + r) % sequence();
      const std::int64_t count = std::min(rows - r, sequence() - position);
      f(r, count, (first + r) / sequence(), position);
      r += count;
    }
  }

  RunState& state;
  const Rank& rank;
  const Op& op;
  const Frame& frame;
  std::vector<Argument> reads, weights, updates, writes, gradients;
};

// The once-a-step ops, in cpu_step.cpp.
void run_cast(const CpuCall& c, const Cast& work);
void run_accumulate(const CpuCall& c, const Accumulate& work);
void run_squared_norm(const CpuCall& c, const SquaredNorm& work);
void run_multiply(const CpuCall& c, const Multiply& work);
void run_update(const CpuCall& c, const Update& work);
// Products, in cpu_products.cpp.
void run_product(const CpuCall& c, const Gemm& work);
void run_attention(const CpuCall& c, const FlashAttention& work);

}  // namespace orrery
