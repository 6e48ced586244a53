#include "kernels/cpu/distillation.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/exponential.h"
#include "kernels/common/lanes.h"

namespace orrery::kernels {

void distillation_maxima(const BothLogits& logits, float* maxima) {
  row_maxima(logits.student, logits.part, maxima);
  row_maxima(logits.teacher, logits.part, maxima + logits.student.rows);
}

void distillation_sums(const BothLogits& logits, const DistillationLoss& loss, const float* maxima,
                       const std::int64_t* labels, float* sums) {
  const std::int64_t rows = logits.student.rows, tokens = logits.part.tokens_of(logits.student.columns);
  const auto colder = static_cast<float>(1 / loss.temperature);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float *student = logits.student.row(r), *teacher = logits.teacher.row(r);
    const float of_student = maxima[r], of_teacher = maxima[rows + r];
    const auto s = [=](std::int64_t c) { return student[c] - of_student; };
    const auto t = [=](std::int64_t c) { return teacher[c] - of_teacher; };
    const auto add = [tokens](auto term) {
      return static_cast<float>(sum<double>(tokens, [&](std::int64_t c) { return static_cast<double>(term(c)); }));
    };
    sums[r] = add([&](std::int64_t c) { return exponential(s(c)); });
    sums[rows + r] = add([&](std::int64_t c) { return exponential(colder * s(c)); });
    sums[2 * rows + r] = add([&](std::int64_t c) { return exponential(colder * t(c)); });
    sums[3 * rows + r] = add([&](std::int64_t c) { return exponential(colder * t(c)) * (colder * (t(c) - s(c))); });
    const std::int64_t label = labels[r] - logits.part.first;
    sums[4 * rows + r] = label >= 0 && label < tokens ? s(label) : 0.0F;
  }
}

void distillation_losses(std::int64_t rows, const DistillationLoss& loss, const float* sums, float* losses) {
  const double weight = loss.divergence * loss.temperature * loss.temperature;
  for (std::int64_t r = 0; r < rows; ++r) {
    const double of_label = sums[r], of_student = sums[rows + r], of_teacher = sums[2 * rows + r];
    const double hard = std::log(of_label) - sums[4 * rows + r];
    const double soft = sums[3 * rows + r] / of_teacher - std::log(of_teacher) + std::log(of_student);
    losses[r] = static_cast<float>(loss.cross_entropy * hard + weight * soft);
  }
}

void distillation_gradient(const BothLogits& logits, const DistillationLoss& loss, const float* maxima,
                           const std::int64_t* labels, const float* sums, float scale, Matrix<float> student) {
  const std::int64_t rows = student.rows, tokens = logits.part.tokens_of(student.columns);
  const auto colder = static_cast<float>(1 / loss.temperature);
  const auto hard = static_cast<float>(scale * loss.cross_entropy);
  const auto soft = static_cast<float>(scale * loss.divergence * loss.temperature);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* x = student.row(r);
    const float* teacher = logits.teacher.row(r);
    const float by_hard = hard / sums[r], by_student = soft / sums[rows + r], by_teacher = soft / sums[2 * rows + r];
    for (std::int64_t c = 0; c < tokens; ++c) {
      const float s = x[c] - maxima[r], t = teacher[c] - maxima[rows + r];
      x[c] = by_hard * exponential(s) + by_student * exponential(colder * s) - by_teacher * exponential(colder * t);
    }
    std::fill(x + tokens, x + student.columns, 0.0F);
    const std::int64_t label = labels[r] - logits.part.first;
    if (label >= 0 && label < tokens) x[label] -= hard;
  }
}

float feature_loss(Matrix<const float> student, Matrix<const float> teacher, double weight) {
  double total = 0;
  for (std::int64_t r = 0; r < student.rows; ++r) {
    const float *own = student.row(r), *other = teacher.row(r);
    total += sum<double>(student.columns, [&](std::int64_t c) {
      const double difference = static_cast<double>(own[c]) - static_cast<double>(other[c]);
      return difference * difference;
    });
  }
  return static_cast<float>(weight * total / static_cast<double>(student.columns));
}

void feature_gradient(Matrix<const float> student, Matrix<const float> teacher, double scale, Matrix<float> gradient) {
  const auto factor = static_cast<float>(2 * scale / static_cast<double>(student.columns));
  for (std::int64_t r = 0; r < student.rows; ++r) {
    const float *own = student.row(r), *other = teacher.row(r);
    float* to = gradient.row(r);
    for (std::int64_t c = 0; c < student.columns; ++c) to[c] = factor * (own[c] - other[c]);
  }
}

}  // namespace orrery::kernels
