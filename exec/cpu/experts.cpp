// This file runs the ops of a mixture of experts on the CPU: the router's choice, the permutation of token rows, and
// the experts' matrix products.
#include <cmath>
#include <numeric>

#include "exec/host/host_call.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu/gemm.h"

namespace orrery {
namespace {

using kernels::matrix;
using kernels::rows_of;

kernels::GateShape shape_of(const Gate& g) {
  return {g.experts, g.top_k, g.capacity, g.groups, g.padded, g.sigmoid, g.aux_loss, g.expert_groups, g.top_groups};
}

// Returns, for each pair of source rank and expert, the number of token rows: as counted at run time, or, if nothing
// was counted (`counts` is null), the same number for every pair.
std::vector<std::int32_t> chunk_counts(const Argument* counts, std::int64_t chunks, std::int64_t rows) {
  if (counts == nullptr)
    return std::vector<std::int32_t>(static_cast<std::size_t>(chunks), static_cast<std::int32_t>(rows / chunks));
  const std::int32_t* numbers = CpuCall::whole_numbers(*counts);
  return {numbers, numbers + counts->bytes / 4};
}

void tell(const CpuCall& c, const Gate& g, const kernels::Routing& r) {
  if (!c.state.on_routing) return;
  std::vector<std::int32_t> taken(r.experts, r.experts + g.rows * g.top_k);
  for (std::size_t i = 0; i < taken.size(); ++i) taken[i] = r.places[i] < 0 ? -1 : taken[i];
  c.for_samples(g.rows, [&](std::int64_t row, std::int64_t count, std::int64_t sample, std::int64_t position) {
    for (std::int64_t i = 0; i < count; ++i) {
      c.state.on_routing(
          {c.step(), c.frame.layer, c.sample(sample), position + i, c.of_second(),
           std::span(taken).subspan(static_cast<std::size_t>((row + i) * g.top_k), static_cast<std::size_t>(g.top_k))});
    }
  });
}

}  // namespace

// Chooses experts where every rank of a group has all tokens and some of the experts: the choices of its own experts
// get rows, in the order of experts, all others none.
static void serve_gate(const CpuCall& c, const Gate& g) {
  const std::int64_t choices = g.rows * g.top_k, local = c.writes[2].bytes / 4;
  std::vector<float> scores(static_cast<std::size_t>(g.rows * g.experts));
  std::vector<std::int32_t> counts(static_cast<std::size_t>(g.experts));
  std::int32_t* routing = CpuCall::whole_numbers(c.writes[1]);
  const kernels::Routing r = {.scores = scores.data(),
                              .weights = CpuCall::floats(c.writes[0]),
                              .experts = routing,
                              .places = routing + choices,
                              .counts = counts.data()};
  const Values logits = c.read(c.reads[0], g.rows * g.experts);
  const bool corrected = !c.weights.empty();
  const Values bias = c.view(corrected ? c.weights[0] : c.reads[0], corrected ? g.experts : 0, Values::Mode::read);
  kernels::choose_experts(matrix<const float>(logits.data(), g.rows, g.experts), shape_of(g),
                          corrected ? bias.data() : nullptr, r);
  tell(c, g, r);
  // The ranks of a group that hold the same experts, each a part of their weights, follow one another.
  const std::int64_t first = c.rank.position_in(Dimension::expert).index * local;
  const auto begin = counts.begin() + first, end = begin + local;
  const std::int32_t before = std::accumulate(counts.begin(), begin, 0), own = std::accumulate(begin, end, 0);
  for (std::int64_t i = 0; i < choices; ++i) {
    std::int32_t& place = r.places[i];
    place = place >= before && place < before + own ? place - before : -1;
  }
  std::copy(begin, end, CpuCall::whole_numbers(c.writes[2]));
}

void run_gate(const CpuCall& c, const Gate& g) {
  if (c.writes.size() == 3) return serve_gate(c, g);
  const std::int64_t choices = g.rows * g.top_k;
  const bool forward = g.direction == Direction::forward;
  const std::vector<Argument>& from = forward ? c.writes : c.reads;
  std::int32_t* routing = CpuCall::whole_numbers(from[forward ? 2 : 1]);
  kernels::Routing r = {.scores = CpuCall::floats(from[0]), .experts = routing, .places = routing + choices};
  if (!forward) {
    const Values dlogits = c.write(c.writes[0], g.rows * g.experts);
    return kernels::choose_experts_gradient(r, CpuCall::floats(c.reads[2]), shape_of(g), c.loss_factor(),
                                            matrix(dlogits.data(), g.rows, g.experts),
                                            g.sharers > 1 ? CpuCall::floats(c.reads[3]) : nullptr, g.sharers);
  }
  r.weights = CpuCall::floats(c.writes[1]);
  r.counts = CpuCall::whole_numbers(c.writes[3]);
  const Values logits = c.read(c.reads[0], g.rows * g.experts);
  const auto x = matrix<const float>(logits.data(), g.rows, g.experts);
  const bool corrected = !c.weights.empty();
  const Values bias = c.view(corrected ? c.weights[0] : c.reads[0], corrected ? g.experts : 0, Values::Mode::read);
  kernels::choose_experts(x, shape_of(g), corrected ? bias.data() : nullptr, r);
  if (g.sharers > 1) kernels::count_choices(routing, choices, g.experts, CpuCall::floats(c.writes[4]));
  tell(c, g, r);
}

void run_permute(const CpuCall& c, const Permute& p) {
  const std::int32_t* places = CpuCall::whole_numbers(c.reads.back()) + p.rows * p.copies;
  const Argument& sent = p.expand ? c.writes[0] : c.reads[0];
  const std::int64_t moved = c.rows_in(sent, p.columns);
  const auto tokens = [&](const Values& v) { return matrix(v.data(), p.rows, p.columns); };
  const auto rows = [&](const Values& v) { return matrix(v.data(), moved, p.columns); };
  const auto choices = [&](const Argument& a) { return matrix(CpuCall::floats(a), p.rows * p.copies, 1); };
  const auto numbers = [&](const Argument& a) { return matrix(CpuCall::floats(a), moved, 1); };
  const Values x = c.read(c.reads[0], (p.expand ? p.rows : moved) * p.columns);
  const Values y = c.write(c.writes[0], (p.expand ? moved : p.rows) * p.columns);
  // If every rank has all tokens (generation), the router's weights stay where they are, and the op that sums the rows
  // of a token reads them.
  const bool serves = p.weighted && c.writes.size() == 1;
  if (serves && !p.expand)
    return kernels::sum_weighted_rows(rows(x), places, CpuCall::floats(c.reads[1]), p.copies, tokens(y));
  if (p.expand) {
    kernels::expand_rows(tokens(x), places, p.copies, rows(y));
    if (p.weighted && !serves) kernels::expand_rows(choices(c.reads[1]), places, 1, numbers(c.writes[1]));
  } else {
    kernels::sum_rows(rows(x), places, p.copies, tokens(y));
    if (p.weighted) kernels::sum_rows(numbers(c.reads[1]), places, 1, choices(c.writes[1]));
  }
}

void run_sigmoid_gate(const CpuCall& c, const SigmoidGate& g) {
  const std::int64_t n = g.rows * g.columns;
  const auto rows = [&](const Values& v) { return matrix(v.data(), g.rows, g.columns); };
  const Values x = c.read(c.reads[0], n), gate = c.read(c.reads[1], g.rows), y = c.write(c.writes[0], n);
  std::vector<float> factors(gate.data(), gate.data() + g.rows);
  for (float& f : factors) f = 1 / (1 + std::exp(-f));
  if (g.direction == Direction::forward) {
    kernels::copy(rows(x), rows(y));
    return kernels::scale_rows(factors.data(), rows(y));
  }
  const Values dy = c.read(c.reads[2], n), dgate = c.write(c.writes[1], g.rows);
  kernels::copy(rows(dy), rows(y));
  kernels::scale_rows(factors.data(), rows(y));
  kernels::row_products(rows(x), rows(dy), dgate.data());
  for (std::int64_t r = 0; r < g.rows; ++r) dgate.data()[r] *= factors[r] * (1 - factors[r]);
}

void run_sort(const CpuCall& c, const SortChunks& s) {
  const std::int64_t rows = c.rows_in(c.reads[0], s.columns);
  const std::vector<std::int32_t> counts =
      chunk_counts(s.even ? nullptr : &c.reads.back(), s.sources * s.experts, rows);
  const Values x = c.read(c.reads[0], rows * s.columns), y = c.write(c.writes[0], rows * s.columns);
  kernels::sort_chunks(matrix(x.data(), rows, s.columns), counts.data(), s.sources, s.experts, s.back,
                       matrix(y.data(), rows, s.columns));
  if (!s.weighted) return;
  kernels::sort_chunks(matrix(CpuCall::floats(c.reads[1]), rows, 1), counts.data(), s.sources, s.experts, s.back,
                       matrix(CpuCall::floats(c.writes[1]), rows, 1));
}

// Returns the number of rows of each expert, summed over all source ranks.
static std::vector<std::int64_t> rows_by_expert(const Argument* counts, std::int64_t groups, std::int64_t rows) {
  const std::vector<std::int32_t> chunks = chunk_counts(counts, groups, rows);
  std::vector<std::int64_t> sums(static_cast<std::size_t>(groups));
  for (std::size_t i = 0; i < chunks.size(); ++i) sums[i % sums.size()] += chunks[i];
  return sums;
}

// Calls f(row, expert) for every row of the experts' input, whose rows are sorted by expert.
template <class F>
static void for_rows(const std::vector<std::int64_t>& counts, const F& f) {
  std::int64_t row = 0, expert = 0;
  for (const std::int64_t count : counts) {
    for (std::int64_t i = 0; i < count; ++i) f(row++, expert);
    ++expert;
  }
}

// Returns the factor for an expert's bias on this rank. If an expert's weights are cut over several ranks, each of
// these ranks holds the complete bias. The outputs of these ranks are summed later, so each rank adds only its share of
// the bias.
static float bias_part(const CpuCall& c, const GroupedBias& b) {
  return b.weighted ? 1 / static_cast<float>(c.size(Dimension::expert_tensor)) : 1;
}

static void add_expert_bias(const CpuCall& c, const GroupedBias& b) {
  const std::int64_t rows = c.rows_in(c.updates[0], b.columns);
  const float* factors = b.weighted ? CpuCall::floats(c.reads[0]) : nullptr;
  const Values values = c.update(c.updates[0], rows * b.columns), bias = c.weight(c.weights[0]);
  const auto counts = rows_by_expert(b.even ? nullptr : &c.reads.back(), b.groups, rows);
  const auto y = matrix(values.data(), rows, b.columns);
  for_rows(counts, [&](std::int64_t row, std::int64_t expert) {
    const float factor = bias_part(c, b) * (factors == nullptr ? 1 : factors[row]);
    for (std::int64_t i = 0; i < b.columns; ++i) y.row(row)[i] += factor * bias.data()[expert * b.columns + i];
  });
}

void run_grouped_bias(const CpuCall& c, const GroupedBias& b) {
  if (b.direction == Direction::forward) return add_expert_bias(c, b);
  const std::int64_t rows = c.rows_in(c.reads[0], b.columns);
  const Values values = c.read(c.reads[0], rows * b.columns), gradient = c.gradient(c.gradients[0]);
  const auto counts = rows_by_expert(b.even ? nullptr : &c.reads.back(), b.groups, rows);
  const auto dy = matrix(values.data(), rows, b.columns);
  const auto add = [&](std::int64_t row, std::int64_t expert, float factor) {
    for (std::int64_t i = 0; i < b.columns; ++i) gradient.data()[expert * b.columns + i] += factor * dy.row(row)[i];
  };
  if (!b.weighted) return for_rows(counts, [&](std::int64_t row, std::int64_t expert) { add(row, expert, 1); });
  const Values bias = c.weight(c.weights[0]);
  const float* factors = CpuCall::floats(c.reads[1]);
  float* dfactors = CpuCall::floats(c.writes[0]);
  for_rows(counts, [&](std::int64_t row, std::int64_t expert) {
    add(row, expert, factors[row]);
    const auto of = matrix<const float>(bias.data() + expert * b.columns, 1, b.columns);
    kernels::row_products(of, rows_of(dy, row, 1), dfactors + row);
    dfactors[row] *= bias_part(c, b);
  });
}

void run_grouped(const CpuCall& c, const GroupedGemm& g) {
  const bool weights = g.role == Gemm::Role::weight_gradient, input = g.role == Gemm::Role::input_gradient;
  const std::int64_t rows = c.rows_in(c.reads[0], input ? g.out : g.in);
  const std::size_t operands = weights ? 2 : 1;
  // In generation `groups` counts the experts that are expected to get tokens; the counts are of all of the rank's, by
  // the rank that sends where even is not set.
  const Argument* counted = c.reads.size() > operands ? &c.reads[operands] : nullptr;
  const std::int64_t sources = g.even ? 1 : c.size(Dimension::expert) * c.size(Dimension::expert_tensor);
  const std::int64_t groups = c.state.generated && counted != nullptr ? counted->bytes / 4 / sources : g.groups;
  const std::vector<std::int64_t> counts = rows_by_expert(counted, groups, rows);
  const Values a = c.read(c.reads[0], rows * (input ? g.out : g.in));
  const Values dy = weights ? c.read(c.reads[1], rows * g.out) : c.read(c.reads[0], 0);
  const Values w = weights ? c.read(c.reads[0], 0) : c.weight(c.weights[0]);
  const bool flat = !c.gradients.empty();
  const std::int64_t n = weights ? groups * g.out * g.in : rows * (input ? g.in : g.out);
  const Values y = weights && flat ? c.gradient(c.gradients[0]) : c.write(c.writes[0], n);
  std::int64_t first = 0;
  for (std::int64_t e = 0; e < groups; ++e) {
    const std::int64_t count = counts[static_cast<std::size_t>(e)];
    const auto run = [&](const Values& v, std::int64_t columns) {
      return rows_of(matrix(v.data(), rows, columns), first, count);
    };
    const auto of_expert = [&](const Values& v) { return matrix(v.data() + e * g.out * g.in, g.out, g.in); };
    if (weights)
      kernels::linear_weight_gradient(run(dy, g.out), run(a, g.in), g.accumulate, of_expert(y));
    else if (input)
      kernels::linear_input_gradient(run(a, g.out), of_expert(w), run(y, g.in));
    else
      kernels::linear(run(a, g.in), of_expert(w), nullptr, run(y, g.out));
    first += count;
  }
}

}  // namespace orrery
