// What happens once a step: casts, sums of gradients, their norm, the update.
#include <algorithm>

#include "exec/cpu_call.h"
#include "models/blocks.h"

namespace orrery {
namespace {

using kernels::Bf16;

// Calls f with a null pointer of the stored type.
template <class F>
void with_type(Bytes width, const F& f) {
  if (width == 4)
    f(static_cast<float*>(nullptr));
  else
    f(static_cast<Bf16*>(nullptr));
}

template <class T>
T* at(const Argument& a, std::int64_t element) {
  return reinterpret_cast<T*>(a.data) + element;
}

}  // namespace

void run_cast(const CpuCall& c, const Cast& work) {
  with_type(work.from, [&](auto* from) {
    with_type(work.to, [&](auto* to) {
      using From = std::remove_pointer_t<decltype(from)>;
      using To = std::remove_pointer_t<decltype(to)>;
      kernels::cast(work.elements, at<From>(c.reads[0], 0), at<To>(c.writes[0], 0));
    });
  });
}

void run_accumulate(const CpuCall& c, const Accumulate& work) {
  const Argument& target = c.gradients.empty() ? c.updates[0] : c.gradients[0];
  with_type(work.from, [&](auto* from) {
    with_type(work.to, [&](auto* to) {
      using From = std::remove_pointer_t<decltype(from)>;
      using To = std::remove_pointer_t<decltype(to)>;
      kernels::accumulate(work.elements, at<From>(c.reads[0], 0), at<To>(target, 0));
    });
  });
}

void run_squared_norm(const CpuCall& c, const SquaredNorm&) {
  const Argument& gradients = c.reads[0];
  double sum = 0;
  for (const Stretch& s : norm_stretches(c, gradients)) {
    with_type(gradients.width, [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      sum += kernels::squared_norm(s.count, at<T>(gradients, s.first));
    });
  }
  const bool adds = !c.updates.empty();
  float* norm = CpuCall::floats(adds ? c.updates[0] : c.writes[0]);
  *norm = static_cast<float>(sum + (adds ? *norm : 0));
}

void run_multiply(const CpuCall& c, const Multiply& work) {
  if (work.factor != 0) {
    const Argument& to = c.updates.empty() ? c.writes[0] : c.updates[0];
    const Argument& from = c.updates.empty() ? c.reads[0] : c.updates[0];
    const auto values = [&](const Argument& a, Values::Mode mode) {
      const std::int64_t first = a.operand.scope == Scope::rank ? 0 : work.first;  // a fused buffer begins there
      return Values(a.data + first * work.width, work.elements, work.width, mode);
    };
    const Values x = values(from, Values::Mode::read), y = values(to, Values::Mode::write);
    for (std::int64_t i = 0; i < work.elements; ++i) y.data()[i] = static_cast<float>(work.factor * x.data()[i]);
    return;
  }
  const double factor = kernels::clip_factor(*CpuCall::floats(c.reads[0]), c.state.training.clip);
  const Argument& gradients = c.updates[0];
  for (const Piece& piece : pieces_of(c)) {
    std::byte* data = gradients.data + place_of(gradients, piece) * gradients.width;
    const Values g(data, piece.owned, gradients.width, Values::Mode::update);
    for (std::int64_t i = 0; i < piece.owned; ++i) g.data()[i] = static_cast<float>(factor * g.data()[i]);
  }
}

// Where a piece lies in a buffer of the states, or in a tile's, which begins at `first` of the shards.
static std::int64_t place_in(const Argument& a, const Piece& piece, std::int64_t first) {
  return a.operand.scope == Scope::own ? piece.shard_first - first : place_of(a, piece);
}

// There are no gradients yet: the weights go up as they are.
static void first_delayed(const CpuCall& c, const Update& work) {
  const Argument& forward = c.writes[0];
  for (const Piece& piece : pieces_within(c, work.first, work.elements)) {
    with_type(work.forward, [&](auto* copy) {
      using F = std::remove_pointer_t<decltype(copy)>;
      kernels::cast(piece.owned, at<float>(c.updates[0], place_in(c.updates[0], piece, work.first)),
                    at<F>(forward, place_in(forward, piece, work.first)));
    });
  }
}

void run_update(const CpuCall& c, const Update& work) {
  const Argument& gradients = c.reads[0];
  if (work.delayed && c.state.round == 0) return first_delayed(c, work);
  const bool clips = c.reads.size() > 1;
  const double factor = clips ? kernels::clip_factor(*CpuCall::floats(c.reads[1]), c.state.training.clip) : 1;
  const kernels::UpdateStep step = {c.updates_before() + (work.delayed ? 0 : 1), factor};
  const Argument& forward = c.writes[0];
  const Bytes width = forward.operand.scope == Scope::own ? work.forward : forward.width;
  const bool master = c.updates[0].data != nullptr;
  for (const Piece& piece : pieces_within(c, work.first, work.elements)) {
    const std::int64_t there = place_in(forward, piece, work.first);
    const auto state = [&](int i) { return at<float>(c.updates[i], place_in(c.updates[i], piece, work.first)); };
    float* weights = master ? state(0) : at<float>(forward, there);
    float* first = work.moments > 0 ? state(1) : nullptr;
    float* second = work.moments > 0 ? state(2) : nullptr;
    with_type(work.gradient, [&](auto* gradient) {
      with_type(width, [&](auto* copy) {
        using G = std::remove_pointer_t<decltype(gradient)>;
        using F = std::remove_pointer_t<decltype(copy)>;
        kernels::update(c.state.training.rule, step, piece.owned,
                        at<G>(gradients, place_in(gradients, piece, work.first)), weights, first, second,
                        master ? at<F>(forward, there) : static_cast<F*>(nullptr));
      });
    });
  }
}

}  // namespace orrery
