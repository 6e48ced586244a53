// This file runs the ops of Muon's update: the momentum of layers' matrices, their moves to whole layers and back, the
// orthogonalization, and the update of all weights.
#include "kernels/cpu/muon.h"

#include <algorithm>

#include "exec/host/host_call.h"
#include "exec/host/whole_layers.h"
#include "models/layout/uncut_place.h"

namespace orrery {
namespace {

std::uint32_t muon_frame(const CpuCall& c) { return static_cast<std::uint32_t>(&c.frame - c.rank.plan.frames.data()); }

// Consecutive elements of a weight that this rank owns.
struct WeightRun {
  const PlacedParameter& parameter;
  std::int64_t flat, count;  // index of the first element in the chunk's flat buffers, and number of elements
  std::int64_t shard;        // index of the first element in the rank's shards
  std::int64_t vector;       // index of the first element among those of this rank that are not in layers' matrices
};

// Returns how many elements of the range [first, end) of the flat buffers are not in layers' matrices.
std::int64_t vectors_between(const std::vector<PlacedParameter>& parameters, std::int64_t first, std::int64_t end) {
  std::int64_t sum = 0;
  for (const PlacedParameter& p : parameters) {
    const std::int64_t from = std::max(first, p.first), to = std::min(end, p.first + p.local.out * p.local.in);
    if (!p.layer_matrix() && from < to) sum += to - from;
  }
  return sum;
}

// Calls f for each run of owned elements. Second moments have room for as many elements of each piece as the rank with
// most of them needs (own_vectors(), models/layout/whole_layers.h).
template <class F>
void for_weights(const CpuCall& c, const F& f) {
  const std::vector<PlacedParameter>& parameters = c.rank.parameters.at(muon_frame(c));
  std::int64_t room = 0;
  for (const Piece& piece : pieces_of(c)) {
    for (const PlacedParameter& p : parameters) {
      const std::int64_t begin = std::max(p.first, piece.owned_first);
      const std::int64_t end = std::min(p.first + p.local.out * p.local.in, piece.owned_first + piece.owned);
      if (begin >= end) continue;
      const std::int64_t vector = room + vectors_between(parameters, piece.owned_first, begin);
      f(WeightRun{p, begin, end - begin, piece.shard_first + begin - piece.owned_first, vector});
    }
    room += std::min(ceil_div(piece.elements, piece.ranks),
                     vectors_between(parameters, piece.first, piece.first + piece.elements));
  }
}

// Returns the index of a run's first element in a flat buffer of the chunk or of the rank's shards.
std::int64_t muon_index(const Argument& a, std::int64_t flat, std::int64_t shard) {
  return offset_of(a, Piece{.owned_first = flat, .shard_first = shard});
}

// Returns the place in the uncut weight of the part of it that tensor-parallel rank number `tensor` has.
UncutPlace whole_place_of(const Rank& rank, const LocalParameter& p, std::int64_t tensor) {
  return uncut_place(rank.spec.model, p, [&](Dimension d) {
    const GroupPosition& own = rank.position_in(d);
    return d == Dimension::tensor ? GroupPosition{tensor, own.size} : own;
  });
}

// Copies directions of one layer between the gradients and an area of the buffer of whole layers.
void move_runs(const CpuCall& c, const std::vector<OwnedRun>& runs, std::int64_t area) {
  const Argument &from = c.reads[0], &to = c.writes[0];
  for (const OwnedRun& run : runs) {
    const auto index = [&](const Argument& a) {
      return a.operand.slot == kBuckets ? area + run.share : muon_index(a, run.flat, run.shard);
    };
    const Values x = state_values(c, from, index(from), run.count, Values::Mode::read);
    const Values y = state_values(c, to, index(to), run.count, Values::Mode::write);
    std::copy_n(x.data(), run.count, y.data());
  }
}

// One weight of the layer that this rank orthogonalizes, in the buffer of whole layers. Every member's share of the
// layer has some of the elements of the rank's part of the weight; a complete matrix is the parts of all
// tensor-parallel ranks.
class LayerMatrix {
 public:
  LayerMatrix(const CpuCall& c, const LayerRound& round, std::int64_t layer, const LocalParameter& p)
      : c_(c), round_(round), layer_(layer), p_(p), tensor_(c.rank.position_in(Dimension::tensor)) {}

  std::vector<float> complete() const {
    std::vector<float> all(static_cast<std::size_t>(shape().out * shape().in));
    for (std::int64_t t = 0; t < tensor_.size; ++t) {
      const std::int64_t area = tensor_.size == 1 ? round_.own_area() : round_.parts_area() + t * round_.area();
      for_elements(area, t, Values::Mode::read, [&](float value, std::int64_t place) {
        all[place] = value;
        return value;
      });
    }
    return all;
  }
  // Writes this tensor-parallel rank's part of the matrix back.
  void store(const std::vector<float>& all) const {
    for_elements(round_.own_area(), tensor_.index, Values::Mode::update,
                 [&](float, std::int64_t place) { return all[place]; });
  }
  UncutShape shape() const { return whole_place_of(c_.rank, p_, 0).whole; }

 private:
  // Calls f with the value of each element of a part, and the element's row-major place in the complete matrix; f
  // returns the new value.
  template <class F>
  void for_elements(std::int64_t area, std::int64_t tensor, Values::Mode mode, const F& f) const {
    const UncutPlace place = whole_place_of(c_.rank, p_, tensor);
    std::vector<std::int64_t> rows;
    for (const UncutRows& run : place.rows) {
      for (std::int64_t r = 0; r < run.rows; ++r) rows.push_back((run.uncut + r) * place.whole.in + place.column);
    }
    const std::int64_t first = layer_ + p_.offset, end = first + p_.out * p_.in;
    for (std::int64_t member = 0; member < round_.members(); ++member) {
      for (const OwnedRun& run : round_.runs(layer_, member)) {
        const std::int64_t from = std::max(first, run.flat), to = std::min(end, run.flat + run.count);
        if (from >= to) continue;
        const std::int64_t at = area + member * round_.share() + run.share + from - run.flat;
        const Values values = state_values(c_, c_.updates[0], at, to - from, mode);
        for (std::int64_t i = 0; i < to - from; ++i) {
          const std::int64_t element = from - first + i;
          const float value = f(values.data()[i], rows[element / p_.in] + element % p_.in);
          if (mode == Values::Mode::update) values.data()[i] = value;
        }
      }
    }
  }

  const CpuCall& c_;
  const LayerRound& round_;
  std::int64_t layer_;
  const LocalParameter& p_;
  GroupPosition tensor_;
};

}  // namespace

void run_momentum(const CpuCall& c) {
  const Argument& gradients = c.updates[0];
  for_weights(c, [&](const WeightRun& run) {
    if (!run.parameter.layer_matrix()) return;
    const Values g =
        state_values(c, gradients, muon_index(gradients, run.flat, run.shard), run.count, Values::Mode::update);
    kernels::add_momentum(c.state.training.rule, gradient_factor(c), run.count, g.data(),
                          CpuCall::floats(c.updates[1]) + run.shard);
  });
}

void run_move_directions(const CpuCall& c, const MoveDirections& work) {
  const LayerRound round(c.rank, muon_frame(c), work.first);
  const std::int64_t seat = c.rank.position_in(Dimension::data).index;
  if (round.sharded()) {
    for (std::int64_t i = 0; i < std::ssize(round.layers()); ++i)
      move_runs(c, round.runs(round.layers()[i], seat), LayerRound::shares_area() + i * round.share());
  } else if (work.back) {
    move_runs(c, round.runs(work.first, 0), round.arrivals_area());
  } else if (seat < std::ssize(round.layers())) {
    move_runs(c, round.runs(round.layers()[seat], 0), round.own_area());
  }
}

void run_orthogonalize(const CpuCall& c, const Orthogonalize& work) {
  const LayerRound round(c.rank, muon_frame(c), work.first);
  const std::int64_t seat = c.rank.position_in(Dimension::data).index;
  if (seat >= std::ssize(round.layers())) return;
  const LayerMatrix matrix(c, round, round.layers()[seat], round.block().parameters[work.parameter]);
  std::vector<float> values = matrix.complete();
  kernels::orthogonalize(work.iterations, kernels::matrix(values.data(), work.rows, work.columns));
  matrix.store(values);
}

void run_muon_update(const CpuCall& c, const kernels::UpdateStep& step) {
  const kernels::UpdateRule& rule = c.state.training.rule;
  const Argument &gradients = c.reads[0], &forward = c.writes[0], &master = c.updates[0];
  const Argument& weights = master.data != nullptr ? master : forward;
  for_weights(c, [&](const WeightRun& run) {
    float* w = CpuCall::floats(weights) + muon_index(weights, run.flat, run.shard);
    const Values g =
        state_values(c, gradients, muon_index(gradients, run.flat, run.shard), run.count, Values::Mode::read);
    if (run.parameter.layer_matrix()) {
      const UncutShape whole = whole_place_of(c.rank, run.parameter.local, 0).whole;
      kernels::muon_step(rule, whole.out, whole.in, run.count, g.data(), w);
    } else {
      kernels::update<float, float>(rule, step, run.count, g.data(), w, CpuCall::floats(c.updates[1]) + run.shard,
                                    CpuCall::floats(c.updates[2]) + run.vector, nullptr);
    }
    if (master.data == nullptr) return;
    const Values copy =
        state_values(c, forward, muon_index(forward, run.flat, run.shard), run.count, Values::Mode::write);
    std::copy_n(w, run.count, copy.data());
  });
}

}  // namespace orrery
