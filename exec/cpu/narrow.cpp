// This file runs, on the CPU, conversions of numbers to and from formats of few bits.
#include <algorithm>
#include <vector>

#include "exec/host/host_call.h"
#include "kernels/cpu/quantize.h"
#include "kernels/cpu/weight_codes.h"

namespace orrery {
namespace {

kernels::Codes codes_of_blocks(const NarrowFormat& format) {
  return format.kind == NarrowKind::int8 ? kernels::Codes::int8 : kernels::Codes::int4;
}

void widen(const NarrowFormat& format, std::int64_t n, const std::byte* from, float* to) {
  if (format.kind == NarrowKind::nf4)
    kernels::dequantize_nf4(n, from, to);
  else
    kernels::dequantize(codes_of_blocks(format), format.block, n, from, to);
}

// A buffer of converted numbers: `summands` copies of `pieces` runs. Adds to `sum` the numbers of run number `piece` of
// every copy, in the order of the copies.
void sum_pieces(const NarrowFormat& format, const std::byte* from, std::int64_t summands, std::int64_t pieces,
                std::int64_t piece, std::vector<float>& sum) {
  const auto n = static_cast<std::int64_t>(sum.size());
  std::vector<float> one(sum.size());
  for (std::int64_t s = 0; s < summands; ++s) {
    widen(format, n, from + (s * pieces + piece) * narrow_bytes(format, n), one.data());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
}

}  // namespace

void run_quantize(const CpuCall& c, const Quantize& q) {
  const std::int64_t each = ceil_div(q.elements, q.pieces), places = q.pieces / q.nodes;
  const Values wide(c.reads[0].data, q.summands > 0 ? 0 : q.elements, q.wide, c.rank.format16(), Values::Mode::read);
  for (std::int64_t piece = 0; piece < q.pieces; ++piece) {
    std::vector<float> x(static_cast<std::size_t>(each));  // zeros stand behind the last element
    const std::int64_t first = std::min(piece * each, q.elements);
    if (q.summands > 0)
      sum_pieces(q.format, c.reads[0].data, q.summands, q.pieces, piece, x);
    else
      std::copy(wide.data() + first, wide.data() + std::min(first + each, q.elements), x.begin());
    const std::int64_t to = piece % places * q.nodes + piece / places;
    kernels::quantize(codes_of_blocks(q.format), q.format.block, each, x.data(),
                      c.writes[0].data + to * q.piece_bytes());
  }
}

void run_fake_quantize(const CpuCall& c, const FakeQuantize& f) {
  const bool input = c.weights.empty();
  const Values from = input ? c.read(c.reads[0], f.rows * f.columns) : c.weight(c.weights[0]);
  const Values to = c.write(c.writes[0], f.rows * f.columns);
  kernels::round_matrix({.codes = codes_of(f.format.code), .group = f.format.group, .out = f.rows, .in = f.columns},
                        from.data(), to.data());
}

void run_dequantize(const CpuCall& c, const Dequantize& q) {
  const Argument& from = c.weights.empty() ? c.reads[0] : c.weights[0];
  const Argument& to = q.adds ? c.updates[0] : c.writes[0];
  const std::int64_t each = ceil_div(q.elements, q.pieces);
  const Values wide(to.data, q.elements, q.wide, c.rank.format16(),
                    q.adds ? Values::Mode::update : Values::Mode::write);
  for (std::int64_t piece = 0; piece < q.pieces; ++piece) {
    std::vector<float> sum(static_cast<std::size_t>(each));
    sum_pieces(q.format, from.data, q.summands, q.pieces, piece, sum);
    const std::int64_t first = std::min(piece * each, q.elements), end = std::min(first + each, q.elements);
    for (std::int64_t i = first; i < end; ++i) {
      const auto x = static_cast<float>(q.factor * sum[static_cast<std::size_t>(i - first)]);
      wide.data()[i] = x + (q.adds ? wide.data()[i] : 0);
    }
  }
}

}  // namespace orrery
