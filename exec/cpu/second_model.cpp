// This file runs the losses that read the frozen model beside the one that trains.
#include "exec/host/host_call.h"
#include "kernels/cpu/distillation.h"
#include "kernels/cpu/preference.h"

namespace orrery {
namespace {

// Adds the losses of a micro-batch's rows to the loss of the step.
void add_losses(const CpuCall& c, std::int64_t rows, const float* losses) {
  StepLoss& of_step = c.state.losses[c.step_of_plan()];
  for (std::int64_t r = 0; r < rows; ++r) of_step.sum += losses[r];
  of_step.tokens += rows;
}

kernels::LabelSums label_sums_of(const Argument& sums, std::int64_t rows) {
  return {CpuCall::floats(sums), CpuCall::floats(sums) + rows};
}

}  // namespace

void run_distillation(const CpuCall& c, const Distillation& d) {
  const kernels::VocabularyPart part = {first_token(c, Dimension::tensor, d.columns), c.rank.spec.model.vocab};
  const kernels::DistillationLoss loss = {d.temperature, d.divergence, d.cross_entropy};
  const auto logits = [&](const Argument& a) { return matrix(CpuCall::floats(a), d.rows, d.columns); };
  switch (d.part) {
    case Distillation::Part::maximum:
      return kernels::distillation_maxima({logits(c.reads[0]), logits(c.reads[1]), part}, CpuCall::floats(c.writes[0]));
    case Distillation::Part::exponent:
      return kernels::distillation_sums({logits(c.reads[0]), logits(c.reads[1]), part}, loss,
                                        CpuCall::floats(c.reads[2]), CpuCall::integers(c.reads[3]),
                                        CpuCall::floats(c.writes[0]));
    case Distillation::Part::loss: {
      float* losses = CpuCall::floats(c.writes[0]);
      kernels::distillation_losses(d.rows, loss, CpuCall::floats(c.reads[0]), losses);
      return add_losses(c, d.rows, losses);
    }
    case Distillation::Part::gradient:
      return kernels::distillation_gradient({logits(c.updates[0]), logits(c.reads[0]), part}, loss,
                                            CpuCall::floats(c.reads[1]), CpuCall::integers(c.reads[2]),
                                            CpuCall::floats(c.reads[3]), c.loss_factor(), logits(c.updates[0]));
  }
}

void run_preference(const CpuCall& c, const Preference& p) {
  float* losses = CpuCall::floats(c.writes[0]);
  kernels::preference_losses(p.rows, p.samples, p.beta, label_sums_of(c.reads[0], p.rows),
                             label_sums_of(c.reads[1], p.rows), losses, CpuCall::floats(c.writes[1]));
  add_losses(c, p.rows, losses);
}

// The loss of the step leaves this loss out: in a pipeline, other ranks may compute it than those that have the losses
// of tokens. In fp16 the gradient reads the loss scale before the teacher's hidden states.
void run_feature_loss(const CpuCall& c, const FeatureLoss& f) {
  const std::int64_t n = f.rows * f.columns;
  const Values student = c.read(c.reads[0], n), teacher = c.read(c.reads.back(), n);
  const auto view = [&](const Values& v) { return matrix<const float>(v.data(), f.rows, f.columns); };
  if (f.part == FeatureLoss::Part::loss) {
    CpuCall::floats(c.writes[0])[0] = kernels::feature_loss(view(student), view(teacher), f.weight);
    return;
  }
  const Values gradient = c.write(c.writes[0], n);
  kernels::feature_gradient(view(student), view(teacher), f.weight * c.loss_factor(),
                            matrix(gradient.data(), f.rows, f.columns));
}

}  // namespace orrery
