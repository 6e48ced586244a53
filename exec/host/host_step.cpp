// This file runs ops that the host computes once per step: casts, sums of gradients, the gradient norm, the optimizer
// update.
#include <algorithm>
#include <cmath>

#include "exec/host/host_call.h"
#include "models/layers/blocks.h"

namespace orrery {
namespace {

using kernels::Bf16;

// Calls f with a null pointer whose type stands for elements of `width` bytes: float for 4 bytes, else bf16.
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
      // A fused buffer (Scope::rank) begins with element work.first of the shards; other buffers begin with element 0.
      const std::int64_t first = a.operand.scope == Scope::rank ? 0 : work.first;
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

// Returns the offset (in elements) of a piece of the shards in a buffer of the optimizer states; a buffer that holds
// only a tile of the shards begins at element `first`.
static std::int64_t place_in(const Argument& a, const Piece& piece, std::int64_t first) {
  return a.operand.scope == Scope::own ? piece.shard_first - first : place_of(a, piece);
}

// Runs the first update of a run with delayed optimizer updates. There are no gradients yet, so the weights are only
// cast to the type that is uploaded to the device.
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

// The decisions about one optimizer update: whether it undoes the previous update, whether it makes a new one, and the
// factor by which it multiplies the gradients.
struct UpdateCourse {
  bool undoes = false, updates = true;
  double factor = 1;
};

// Decides what an update does. An update that is validated later is made unless the gradient norm known so far would
// clip it. An update that is rolled back is made again with the norm of all stages, or not at all if that norm is not
// finite.
static UpdateCourse course_of(const CpuCall& c, const Update& work) {
  const double limit = c.state.training.clip;
  const auto norm = [&](std::size_t i) { return *CpuCall::floats(c.reads[i]); };
  if (!work.validated) return {.factor = c.reads.size() > 1 ? kernels::clip_factor(norm(1), limit) : 1};
  const bool made = !kernels::is_clipped(norm(1), limit);
  if (!c.state.redoes_update) return {.updates = made};
  return {.undoes = made, .updates = std::isfinite(norm(2)), .factor = kernels::clip_factor(norm(2), limit)};
}

void run_update(const CpuCall& c, const Update& work) {
  const Argument& gradients = c.reads[0];
  if (work.delayed && c.state.round == 0) return first_delayed(c, work);
  const UpdateCourse course = course_of(c, work);
  const kernels::UpdateStep step = {c.updates_before() + (work.delayed ? 0 : 1), course.factor};
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
        const G* g = at<G>(gradients, place_in(gradients, piece, work.first));
        F* to = master ? at<F>(forward, there) : nullptr;
        const kernels::UpdateRule& rule = c.state.training.rule;
        if (course.undoes) kernels::undo_update(rule, step.number, piece.owned, g, weights, first, second, to);
        if (course.updates) kernels::update(rule, step, piece.owned, g, weights, first, second, to);
      });
    });
  }
}

}  // namespace orrery
