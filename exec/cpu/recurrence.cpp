// This file runs the ops of layers with a recurrence (state-space models, gated delta net) on the CPU, sample by
// sample.
#include "kernels/cpu/recurrence.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "exec/host/host_call.h"

namespace orrery {
namespace {

using kernels::columns_of;
using kernels::Matrix;
using kernels::matrix;
using kernels::rows_of;

// Returns the shape of a recurrence for the kernels: the numbers of heads and groups, the dimensions of keys and
// values, and the properties of its update rule.
kernels::RecurrenceShape shape_of(const Scan& s) {
  const RecurrenceRow& row = row_of(s.rule);
  return {s.heads, s.groups, s.key_dim, s.value_dim, row.corrects, row.unit_keys};
}

// The columns of a projection that hold a recurrence's gates: one decay per head, and one step per head for rules that
// have two gates.
template <class T>
struct GateColumns {
  Matrix<T> decay, step;

  GateColumns(const Scan& s, Matrix<T> projection) : decay(columns_of(projection, s.first, s.heads)) {
    if (row_of(s.rule).gates > 1) step = columns_of(projection, s.first + s.heads, s.heads);
  }
  GateColumns sample(std::int64_t row, std::int64_t count) const {
    GateColumns part = *this;
    part.decay = rows_of(decay, row, count);
    if (step.data != nullptr) part.step = rows_of(step, row, count);
    return part;
  }
};

// Runs the convolution of a generation's pass. The inputs of the tokens before it come from the pass before, which kept
// them in the precision of activations, or are zero, and the last ones are kept for the next pass.
void continue_convolution(const CpuCall& c, const Convolution& w, const kernels::ConvolutionWeights& weights) {
  const std::int64_t rows = w.batch * w.sequence, before = w.taps - 1, kept = before * w.columns;
  const Values x = c.read(c.reads[0], rows * w.projected), y = c.write(c.writes[0], rows * w.columns);
  const auto projected = columns_of(matrix(x.data(), rows, w.projected), 0, w.columns);
  std::vector<float> in(static_cast<std::size_t>((before + w.sequence) * w.columns)), out(in.size());
  for (std::int64_t b = 0; b < w.batch; ++b) {
    std::byte* at = c.updates[0].data + c.state.generated->recurrent.inputs_at(c.frame, c.sequence_of(b));
    const Values inputs(at, kept, c.rank.plan.element_bytes, c.rank.format16(), Values::Mode::update);
    w.resumes ? std::copy_n(inputs.data(), kept, in.data()) : std::fill_n(in.data(), kept, 0.0F);
    for (std::int64_t t = 0; t < w.sequence; ++t)
      std::copy_n(projected.row(b * w.sequence + t), w.columns, in.data() + kept + t * w.columns);
    kernels::convolve(matrix<const float>(in.data(), before + w.sequence, w.columns), weights,
                      matrix(out.data(), before + w.sequence, w.columns));
    std::copy_n(out.data() + kept, w.sequence * w.columns, y.data() + b * w.sequence * w.columns);
    std::copy_n(in.data() + w.sequence * w.columns, kept, inputs.data());
  }
}

// The states of one sample's recurrence, which a pass of generation goes on from and leaves; null in training.
float* carried_states(const CpuCall& c, const Scan& s, std::int64_t sample) {
  if (!s.keeps) return nullptr;
  std::byte* at = c.updates[0].data + c.state.generated->recurrent.states_at(c.frame, c.sequence_of(sample));
  auto* states = reinterpret_cast<float*>(at);
  if (!s.resumes) std::fill_n(states, s.heads * s.key_dim * s.value_dim, 0.0F);
  return states;
}

}  // namespace

void run_convolution(const CpuCall& c, const Convolution& w) {
  const std::int64_t rows = w.batch * w.sequence;
  const auto projected = [&](const Values& v) { return columns_of(matrix(v.data(), rows, w.projected), 0, w.columns); };
  const auto own = [&](const Values& v) { return matrix(v.data(), rows, w.columns); };
  const Values x = c.read(c.reads[0], rows * w.projected), weight = c.weight(c.weights[0]);
  std::optional<Values> bias, dbias;
  const auto open = [&](std::optional<Values>& v, const Argument& a, Values::Mode mode) {
    v.emplace(a.data, a.bytes / a.width, a.width, c.rank.format16(), mode);
  };
  if (c.weights.size() > 1) open(bias, c.weights[1], Values::Mode::read);
  const kernels::ConvolutionWeights weights = {weight.data(), bias ? bias->data() : nullptr, w.taps};
  if (w.keeps) return continue_convolution(c, w, weights);
  if (w.direction == Direction::forward) {
    const Values y = c.write(c.writes[0], rows * w.columns);
    for (std::int64_t row = 0; row < rows; row += w.sequence)
      kernels::convolve(rows_of(projected(x), row, w.sequence), weights, rows_of(own(y), row, w.sequence));
    return;
  }
  const Values dy = c.read(c.reads[1], rows * w.columns), dx = c.update(c.updates[0], rows * w.projected);
  const Values dweight = c.gradient(c.gradients[0]);
  if (bias) open(dbias, c.gradients[1], Values::Mode::update);
  for (std::int64_t row = 0; row < rows; row += w.sequence)
    kernels::convolve_gradient(rows_of(projected(x), row, w.sequence), weights, rows_of(own(dy), row, w.sequence),
                               rows_of(projected(dx), row, w.sequence), dweight.data(),
                               dbias ? dbias->data() : nullptr);
}

// Runs a recurrence over the tokens. On the CPU, the buffer of states that GPU kernels keep for the backward pass is
// not written: the backward pass computes the states again.
void run_scan(const CpuCall& c, const Scan& s) {
  const std::int64_t rows = s.rows(), values = s.heads * s.value_dim;
  const kernels::RecurrenceShape shape = shape_of(s);
  const Values x = c.read(c.reads[0], rows * s.columns()), projection = c.read(c.reads[1], rows * s.projected);
  const Values decay = c.weight(c.weights[0]), bias = c.weight(c.weights[1]), skip = c.weight(c.weights.back());
  const bool skips = row_of(s.rule).skips;
  const kernels::RecurrenceWeights weights = {decay.data(), bias.data(), skips ? skip.data() : nullptr};
  const GateColumns<const float> gates(s, matrix<const float>(projection.data(), rows, s.projected));
  const auto part = [&](const Values& v, std::int64_t columns, std::int64_t row) {
    return rows_of(matrix(v.data(), rows, columns), row, s.sequence);
  };
  if (s.direction == Direction::forward) {
    const Values y = c.write(c.writes[0], rows * values);
    for (std::int64_t row = 0; row < rows; row += s.sequence) {
      const auto own = gates.sample(row, s.sequence);
      kernels::scan(shape, part(x, s.columns(), row), {own.decay, own.step}, weights, part(y, values, row),
                    carried_states(c, s, row / s.sequence));
    }
    return;
  }
  const Values dy = c.read(c.reads[2], rows * values), dx = c.write(c.writes[0], rows * s.columns());
  const Values dprojection = c.update(c.updates[0], rows * s.projected);
  const Values ddecay = c.gradient(c.gradients[0]), dbias = c.gradient(c.gradients[1]);
  const GateColumns<float> dgates(s, matrix(dprojection.data(), rows, s.projected));
  std::optional<Values> dskip;
  if (skips) {
    const Argument& a = c.gradients[2];
    dskip.emplace(a.data, a.bytes / a.width, a.width, c.rank.format16(), Values::Mode::update);
  }
  for (std::int64_t row = 0; row < rows; row += s.sequence) {
    const auto own = gates.sample(row, s.sequence);
    const auto d = dgates.sample(row, s.sequence);
    kernels::scan_gradient(
        shape, part(x, s.columns(), row), {own.decay, own.step}, weights, part(dy, values, row),
        {part(dx, s.columns(), row), d.decay, d.step, ddecay.data(), dbias.data(), dskip ? dskip->data() : nullptr});
  }
}

void run_gated_norm(const CpuCall& c, const GatedNorm& n) {
  const auto rows = [&](const Values& v) { return matrix(v.data(), n.rows, n.columns); };
  const auto gate = [&](const Values& v) {
    return columns_of(matrix(v.data(), n.rows, n.projected), n.first, n.columns);
  };
  const kernels::GatedNormShape shape = {n.width, n.gates_first, n.shared, kNormEpsilon};
  const Values x = c.read(c.reads[0], n.rows * n.columns), projection = c.read(c.reads[1], n.rows * n.projected);
  const Values weight = c.weight(c.weights[0]);
  if (n.direction == Direction::forward) {
    const Values y = c.write(c.writes[0], n.rows * n.columns);
    return kernels::gated_norm(shape, rows(x), gate(projection), weight.data(), rows(y), CpuCall::floats(c.writes[1]));
  }
  const Values dy = c.read(c.reads[3], n.rows * n.columns), dx = c.write(c.writes[0], n.rows * n.columns);
  const Values dprojection = c.view(c.writes[1], n.rows * n.projected, Values::Mode::update);
  const Values dweight = c.gradient(c.gradients[0]);
  kernels::gated_norm_gradient(shape, rows(x), gate(projection), weight.data(), CpuCall::floats(c.reads[2]), rows(dy),
                               rows(dx), gate(dprojection), dweight.data());
}

}  // namespace orrery
