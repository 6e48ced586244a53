// This file runs the ops of Adafactor's update: the sums of squares of rows and columns, the norms of each tensor, and
// the update of all weights.
#include "kernels/cpu/adafactor.h"

#include <algorithm>
#include <cmath>

#include "exec/host/host_call.h"
#include "models/layout/uncut_place.h"

namespace orrery {
namespace {

// A tensor of a chunk, and the places of its numbers in the buffers of Adafactor. Every rank has the numbers of
// complete tensors: the sums of each row and then of each column, or for a vector one for each element.
struct FactoredTensor {
  const PlacedParameter& parameter;
  UncutPlace place;
  std::vector<std::int64_t> rows;  // row in the complete tensor of each row of the rank's part
  std::int64_t sums = 0;           // index of the tensor's first sum
  std::size_t number = 0;          // index of the tensor in the chunk
  std::int64_t real_rows = 0;      // rows of the complete tensor, without those that fill a vocabulary up

  bool matrix() const { return place.whole.in > 1; }
  std::int64_t row_count() const { return place.whole.out; }
  std::int64_t column_count() const { return matrix() ? place.whole.in : 0; }
  double elements() const { return static_cast<double>(real_rows * place.whole.in); }
};

std::uint32_t factored_frame(const CpuCall& c) {
  return static_cast<std::uint32_t>(&c.frame - c.rank.plan.frames.data());
}

std::vector<FactoredTensor> tensors_of(const CpuCall& c) {
  std::vector<FactoredTensor> tensors;
  std::int64_t sums = 0;
  for (const PlacedParameter& p : c.rank.parameters.at(factored_frame(c))) {
    FactoredTensor t = {p,
                        uncut_place(c.rank.spec.model, p.local, [&](Dimension d) { return c.rank.position_in(d); }),
                        {},
                        sums,
                        tensors.size()};
    for (const UncutRows& run : t.place.rows) {
      for (std::int64_t r = 0; r < run.rows; ++r) t.rows.push_back(run.uncut + r);
    }
    const bool of_vocabulary = p.name == kEmbeddingTable || p.name == "output.weight";
    t.real_rows = of_vocabulary ? std::min(t.row_count(), c.rank.spec.model.vocab) : t.row_count();
    sums += t.row_count() + t.column_count();
    tensors.push_back(std::move(t));
  }
  return tensors;
}

// Consecutive elements of a tensor that this rank owns: of the tensor's part, and their first one's indices in the
// chunk's flat buffers and in the rank's shards.
struct OwnedElements {
  kernels::TensorElements of;
  std::int64_t flat, shard;
};

// Returns how many of the first elements of the rank's part of a tensor this rank adds to sums over the tensor-parallel
// ranks: none that an earlier one of these ranks has too.
std::int64_t counted_elements(const CpuCall& c, const FactoredTensor& t) {
  const LocalParameter& p = t.parameter.local;
  if (p.cut == Cut::none && c.rank.position_in(Dimension::tensor).index > 0) return 0;
  return (c.rank.position_in(Dimension::kv).index > 0 ? p.out - p.kv_rows : p.out) * p.in;
}

// Returns the number of elements of the rank's part of a tensor before the rows that fill a vocabulary up.
std::int64_t real_elements(const FactoredTensor& t) {
  const auto filled = [&](std::int64_t row) { return row >= t.real_rows; };
  return t.parameter.local.in * (std::ranges::find_if(t.rows, filled) - t.rows.begin());
}

// Returns those of the first `count` elements of the rank's part of a tensor that this rank owns.
std::vector<OwnedElements> owned_elements(const CpuCall& c, const FactoredTensor& t, std::int64_t count) {
  const LocalParameter& p = t.parameter.local;
  std::vector<OwnedElements> result;
  for (const Piece& piece : pieces_of(c)) {
    const std::int64_t begin = std::max(t.parameter.first, piece.owned_first);
    const std::int64_t end = std::min(t.parameter.first + count, piece.owned_first + piece.owned);
    if (begin >= end) continue;
    result.push_back({{p.in, begin - t.parameter.first, end - begin, t.rows.data(), t.place.column},
                      begin,
                      piece.shard_first + begin - piece.owned_first});
  }
  return result;
}

Values values_of(const CpuCall& c, const Argument& a, const OwnedElements& e, Values::Mode mode) {
  return state_values(c, a, offset_of(a, Piece{.owned_first = e.flat, .shard_first = e.shard}), e.of.count, mode);
}

// Returns whether this rank is the first of those that sum their numbers, and so the one that adds what was summed in
// earlier steps.
bool is_first(const CpuCall& c) {
  const bool first_shard = !c.rank.plan.shards_optimizer || c.rank.position_in(Dimension::data).index == 0;
  return first_shard && c.rank.position_in(Dimension::tensor).index == 0;
}

kernels::InverseRoots roots_of(const FactoredTensor& t, const Argument& sums) {
  const float* rows = CpuCall::floats(sums) + t.sums;
  return kernels::inverse_roots(rows, t.row_count(), t.matrix() ? rows + t.row_count() : nullptr,
                                std::max<std::int64_t>(1, t.column_count()));
}

}  // namespace

void run_line_sums(const CpuCall& c) {
  const double decay = kernels::square_decay(c.updates_before() + 1), factor = gradient_factor(c);
  for (const FactoredTensor& t : tensors_of(c)) {
    std::vector<double> fresh(static_cast<std::size_t>(t.row_count() + t.column_count()));
    for (const OwnedElements& e : owned_elements(c, t, counted_elements(c, t))) {
      const Values g = values_of(c, c.reads[0], e, Values::Mode::read);
      kernels::add_squares(e.of, factor, c.state.training.rule.square_epsilon, g.data(), fresh.data(),
                           t.matrix() ? fresh.data() + t.row_count() : nullptr);
    }
    float* sums = CpuCall::floats(c.updates[0]) + t.sums;
    for (std::size_t i = 0; i < fresh.size(); ++i)
      sums[i] = static_cast<float>((is_first(c) ? decay * sums[i] : 0) + (1 - decay) * fresh[i]);
  }
}

void run_update_norms(const CpuCall& c) {
  const Argument &gradients = c.reads[0], &sums = c.reads[3];
  const Argument& weights = c.reads[1].data != nullptr ? c.reads[1] : c.reads[2];
  for (const FactoredTensor& t : tensors_of(c)) {
    const kernels::InverseRoots roots = roots_of(t, sums);
    kernels::TensorNorms norms;
    for (const OwnedElements& e : owned_elements(c, t, std::min(counted_elements(c, t), real_elements(t)))) {
      const Values g = values_of(c, gradients, e, Values::Mode::read), w = values_of(c, weights, e, Values::Mode::read);
      kernels::add_norms(e.of, roots, gradient_factor(c), g.data(), w.data(), norms);
    }
    float* to = CpuCall::floats(c.writes[0]) + 2 * t.number;
    to[0] = static_cast<float>(norms.update);
    to[1] = static_cast<float>(norms.weights);
  }
}

void run_adafactor_update(const CpuCall& c, std::int64_t number) {
  const kernels::UpdateRule& rule = c.state.training.rule;
  const Argument &gradients = c.reads[0], &norms = c.reads[1], &forward = c.writes[0], &master = c.updates[0];
  const Argument& weights = master.data != nullptr ? master : forward;
  for (const FactoredTensor& t : tensors_of(c)) {
    const auto root_mean_square = [&](std::size_t i) {
      return std::sqrt(CpuCall::floats(norms)[2 * t.number + i] / t.elements());
    };
    const double rate = kernels::adafactor_rate(rule, number, root_mean_square(1));
    const double clipped = rate * kernels::update_clip(root_mean_square(0));
    const kernels::InverseRoots roots = roots_of(t, c.updates[2]);
    for (const OwnedElements& e : owned_elements(c, t, t.parameter.local.out * t.parameter.local.in)) {
      const Values g = values_of(c, gradients, e, Values::Mode::read),
                   w = values_of(c, weights, e, Values::Mode::update);
      kernels::adafactor_step(e.of, roots, gradient_factor(c), 1 - rule.learning_rate * rule.weight_decay, clipped,
                              g.data(), w.data());
      if (master.data == nullptr) continue;
      const Values copy = values_of(c, forward, e, Values::Mode::write);
      std::copy_n(w.data(), e.of.count, copy.data());
    }
  }
}

}  // namespace orrery
