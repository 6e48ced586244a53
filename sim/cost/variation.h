#pragma once

#include "models/plan/plan.h"
#include "models/spec/variation.h"
#include "sim/engine/timing.h"

namespace orrery {

// Returns whether a GPU's clock limits an op: products and attention. GPUs of one model differ in speed at such work,
// but hardly at work that memory bandwidth limits.
bool is_clocked(const Op& op);

// Returns whether the ranks of a dimension's groups wait for each other in every layer, because a collective of the
// layer gives each of them what it computes with next: tensor, context and expert groups.
bool meets_in_layers(Dimension d);

// Adds to the duration of every collective within a layer the mean time for which its ranks wait for the slowest of
// them, if the times of kernels are normally distributed around their mean with standard deviation `variation.kernels`
// times the mean. Between two collectives of a rank its kernels take a sum of such times, whose variance is the sum of
// theirs; the slowest of n ranks is later than the mean by largest_normal(n) (models/base/normal.h) standard
// deviations. Where GPUs differ too (variation.gpus), ranks wait for the slowest GPU anyway, which the timing has
// already: what kernels add to that is the difference of the standard deviations with and without them.
void wait_for_slowest_kernels(const Plan& plan, const Variation& variation, Timing& timing);

}  // namespace orrery
