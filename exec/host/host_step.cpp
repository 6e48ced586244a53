// This file runs ops that the host computes once per step: casts, sums of gradients, the gradient norm, the optimizer
// update.
#include <algorithm>
#include <cmath>

#include "exec/host/host_call.h"
#include "exec/host/moments.h"
#include "models/layers/blocks.h"

namespace orrery {
namespace {

template <class T>
T* at(const Argument& a, std::int64_t element) {
  return reinterpret_cast<T*>(a.data) + element;
}

}  // namespace

// Copies this rank's part of a unit's gathered weights into its secondary shard (ZeRO++).
static void keep_secondary(const CpuCall& c) {
  const auto unit = static_cast<std::uint32_t>(&c.frame - c.rank.plan.frames.data());
  const Piece part = c.rank.secondary_piece(unit);
  const Argument &from = c.reads[0], &to = c.writes[0];
  std::copy_n(from.data + (part.owned_first - part.first) * from.width, part.owned * from.width, to.data);
}

void run_cast(const CpuCall& c, const Cast& work) {
  if (c.writes[0].operand.scope == Scope::state && c.writes[0].operand.slot == kSecondaryShard)
    return keep_secondary(c);
  if (work.from == work.to) {
    std::copy_n(c.reads[0].data, work.elements * work.from, c.writes[0].data);
    return;
  }
  kernels::with_types(work.from, work.to, c.rank.format16(), [&](auto* from, auto* to) {
    using From = std::remove_pointer_t<decltype(from)>;
    using To = std::remove_pointer_t<decltype(to)>;
    kernels::cast(work.elements, at<From>(c.reads[0], 0), at<To>(c.writes[0], 0));
  });
}

void run_accumulate(const CpuCall& c, const Accumulate& work) {
  const Argument& target = c.gradients.empty() ? c.updates[0] : c.gradients[0];
  kernels::with_types(work.from, work.to, c.rank.format16(), [&](auto* from, auto* to) {
    using From = std::remove_pointer_t<decltype(from)>;
    using To = std::remove_pointer_t<decltype(to)>;
    kernels::accumulate(work.elements, at<From>(c.reads[0], 0), at<To>(target, 0));
  });
}

void run_squared_norm(const CpuCall& c, const SquaredNorm& work) {
  if (work.of == SquaredNorm::Of::lines) return run_line_sums(c);
  if (work.of == SquaredNorm::Of::updates) return run_update_norms(c);
  const Argument& gradients = c.reads[0];
  double sum = 0;
  for (const Stretch& s : norm_stretches(c, gradients)) {
    kernels::with_type(gradients.width, c.rank.format16(), [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      sum += kernels::squared_norm(s.count, at<T>(gradients, s.first));
    });
  }
  const bool adds = !c.updates.empty();
  float* norm = CpuCall::floats(adds ? c.updates[0] : c.writes[0]);
  *norm = static_cast<float>(sum + (adds ? *norm : 0));
}

double gradient_factor(const CpuCall& c) {
  const float* due = c.rank_number(kDueScale);
  const float* scale = due != nullptr ? due : c.rank_number(kLossScale);
  const float* squared_norm = c.rank_number(kSquaredNorm);
  const double unscale = scale == nullptr ? 1 : 1.0 / static_cast<double>(*scale);
  if (squared_norm == nullptr || c.state.training.clip <= 0) return unscale;
  return unscale * kernels::clip_factor(static_cast<double>(*squared_norm) * unscale * unscale, c.state.training.clip);
}

// Returns whether an op of fp16 training finds that a gradient was infinite or NaN.
static bool has_overflow(const CpuCall& c) {
  if (const float* found = c.rank_number(kFoundInfinity)) return *found != 0;
  const float* squared_norm = c.rank_number(kSquaredNorm);
  return squared_norm != nullptr && !std::isfinite(*squared_norm);
}

// Sets the loss scale of the next step: half of it after an infinite gradient, and twice as much after many updates
// without one (Micikevicius et al. 2018).
static void adapt_loss_scale(const CpuCall& c) {
  LossScaling& scaling = c.state.scaling;
  float* scale = c.rank_number(kLossScale);
  if (float* due = c.rank_number(kDueScale)) *due = *scale;
  if (has_overflow(c)) {
    *scale /= 2;
    scaling.good_updates = 0;
    ++scaling.skipped;
  } else if (++scaling.good_updates % c.state.training.loss_scale_interval == 0) {
    *scale *= 2;
  }
}

void run_multiply(const CpuCall& c, const Multiply& work) {
  if (work.factor != 0) {
    const Argument& to = c.updates.empty() ? c.writes[0] : c.updates[0];
    const Argument& from = c.updates.empty() ? c.reads[0] : c.updates[0];
    const auto values = [&](const Argument& a, Values::Mode mode) {
      // The fused buffer of a rank (Scope::rank) holds one bucket and begins with element work.first of the gradients;
      // other buffers begin with element 0.
      const std::int64_t first = a.operand.scope == Scope::rank ? 0 : work.first;
      return Values(a.data + first * work.width, work.elements, work.width, c.rank.format16(), mode);
    };
    const Values x = values(from, Values::Mode::read), y = values(to, Values::Mode::write);
    for (std::int64_t i = 0; i < work.elements; ++i) y.data()[i] = static_cast<float>(work.factor * x.data()[i]);
    return;
  }
  if (c.updates[0].operand.scope == Scope::rank) return adapt_loss_scale(c);
  const double factor = gradient_factor(c);
  const Argument& gradients = c.updates[0];
  bool infinite = false;
  for (const Piece& piece : pieces_of(c)) {
    std::byte* data = gradients.data + offset_of(gradients, piece) * gradients.width;
    const Values g(data, piece.owned, gradients.width, c.rank.format16(), Values::Mode::update);
    infinite = infinite || (work.check && kernels::has_infinity(piece.owned, g.data()));
    for (std::int64_t i = 0; i < piece.owned; ++i) g.data()[i] = static_cast<float>(factor * g.data()[i]);
  }
  if (!work.check) return;
  float* found = c.rank_number(kFoundInfinity);
  // earlier: whether an infinite gradient was already found in an earlier chunk of layers
  const bool earlier = c.writes.empty() && *found != 0;
  *found = infinite || earlier ? 1.0F : 0.0F;
}

// Returns the offset (in elements) of a piece of the rank's shards in a buffer of the optimizer states. A buffer that
// holds only a tile (a contiguous range) of the shards begins at element `first` of them.
static std::int64_t place_in(const Argument& a, const Piece& piece, std::int64_t first) {
  return a.operand.scope == Scope::own ? piece.shard_first - first : offset_of(a, piece);
}

// Casts weights to the type that is uploaded to the device, without an update. This is done in place of the first
// update of a run with delayed optimizer updates, when there are no gradients yet, and of an update that is skipped.
static void cast_weights(const CpuCall& c, const Update& work) {
  const Argument& forward = c.writes[0];
  for (const Piece& piece : pieces_within(c, work.first, work.elements)) {
    kernels::with_type(work.forward, c.rank.format16(), [&](auto* copy) {
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

// Decides what an optimizer update does. With post-update validation, an update is first made unless the gradient norm
// known by then would clip it. When updates are redone, an update that was made is undone, and made again with the
// gradient norm of all pipeline stages unless that norm is not finite.
static UpdateCourse course_of(const CpuCall& c, const Update& work) {
  const double limit = c.state.training.clip;
  const auto norm = [&](std::size_t i) { return *CpuCall::floats(c.reads[i]); };
  if (c.rank.spec.strategy.precision == Precision::fp16) {
    // An update multiplies its gradients itself if it reads both the gradient norm, for the clip coefficient, and the
    // loss scale.
    const bool multiplies = c.rank_number(kSquaredNorm) != nullptr &&
                            (c.rank_number(kLossScale) != nullptr || c.rank_number(kDueScale) != nullptr);
    return {.updates = !has_overflow(c), .factor = multiplies ? gradient_factor(c) : 1};
  }
  if (!work.validated) return {.factor = c.reads.size() > 1 ? kernels::clip_factor(norm(1), limit) : 1};
  const bool made = !kernels::is_clipped(norm(1), limit);
  if (!c.state.redoes_update) return {.updates = made};
  return {.undoes = made, .updates = std::isfinite(norm(2)), .factor = kernels::clip_factor(norm(2), limit)};
}

void run_update(const CpuCall& c, const Update& work) {
  if (work.momentum) return run_momentum(c);
  const Argument& gradients = c.reads[0];
  if (work.delayed && c.state.round == 0) return cast_weights(c, work);
  const OptimizerKind kind = c.rank.spec.strategy.optimizer.kind;
  if (kind == OptimizerKind::muon) return run_muon_update(c, {c.updates_before() + 1, gradient_factor(c)});
  if (kind == OptimizerKind::adafactor) return run_adafactor_update(c, c.updates_before() + 1);
  const UpdateCourse course = course_of(c, work);
  const bool uploads = c.writes[0].operand.scope == Scope::own;
  if (!course.updates && !course.undoes && uploads) return cast_weights(c, work);
  const std::int64_t made = c.updates_before() - c.state.scaling.skipped;
  const kernels::UpdateStep step = {made + (work.delayed ? 0 : 1), course.factor};
  const Argument& forward = c.writes[0];
  const Bytes width = forward.operand.scope == Scope::own ? work.forward : forward.width;
  const bool master = c.updates[0].data != nullptr;
  const Moments moment1(c, c.updates[1], kernels::MomentSign::either, work);
  const Moments moment2(c, c.updates[2], kernels::MomentSign::positive, work);
  for (const Piece& piece : pieces_within(c, work.first, work.elements)) {
    const std::int64_t there = place_in(forward, piece, work.first);
    const auto place = [&](int i) { return place_in(c.updates[i], piece, work.first); };
    float* weights = master ? at<float>(c.updates[0], place(0)) : at<float>(forward, there);
    float* first = work.moments > 0 ? moment1.at(place(1)) : nullptr;
    float* second = work.moments > 0 ? moment2.at(place(2)) : nullptr;
    kernels::with_types(work.gradient, width, c.rank.format16(), [&](auto* gradient, auto* copy) {
      using G = std::remove_pointer_t<decltype(gradient)>;
      using F = std::remove_pointer_t<decltype(copy)>;
      const G* g = at<G>(gradients, place_in(gradients, piece, work.first));
      F* to = master ? at<F>(forward, there) : nullptr;
      const kernels::UpdateRule& rule = c.state.training.rule;
      if (course.undoes) kernels::undo_update(rule, step.number, piece.owned, g, weights, first, second, to);
      if (course.updates) kernels::update(rule, step, piece.owned, g, weights, first, second, to);
    });
  }
  const bool adapts = c.updates.size() > 3 && c.updates.back().operand.slot == kLossScale;
  if (adapts) adapt_loss_scale(c);
}

}  // namespace orrery
