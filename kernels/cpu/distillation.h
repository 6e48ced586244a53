#pragma once

#include "kernels/cpu/cross_entropy.h"

namespace orrery::kernels {

// The loss of a student beside a teacher: for each row, cross_entropy * CE + divergence * temperature^2 * KL(teacher ||
// student), in which KL divides all logits by the temperature (Hinton et al. 2015, arXiv 1503.02531, section 2).
struct DistillationLoss {
  double temperature = 1, divergence = 1, cross_entropy = 0;
};

// The logits of both models on one rank, (rows, columns) each, which cover the same part of the vocabulary. Padding
// columns beyond the vocabulary's end are ignored.
struct BothLogits {
  Matrix<const float> student, teacher;
  VocabularyPart part;
};

// Writes maxima (2, rows): the largest logits of the student, then those of the teacher. Ranks that hold parts of the
// vocabulary reduce them by maximum.
void distillation_maxima(const BothLogits& logits, float* maxima);
// Writes sums (5, rows), which ranks add up. With s and t a student's and a teacher's logit less their maximum, and T
// the temperature: the sums of e^s, of e^(s/T) and of e^(t/T); the sum of e^(t/T) (t - s) / T; the label's s.
void distillation_sums(const BothLogits& logits, const DistillationLoss& loss, const float* maxima,
                       const std::int64_t* labels, float* sums);
// Computes losses (rows), in nats, from the sums over the whole vocabulary.
void distillation_losses(std::int64_t rows, const DistillationLoss& loss, const float* sums, float* losses);
// Overwrites the student's logits with the gradient of `scale` times the sum of the rows' losses. student: the same
// memory as logits.student.
void distillation_gradient(const BothLogits& logits, const DistillationLoss& loss, const float* maxima,
                           const std::int64_t* labels, const float* sums, float scale, Matrix<float> student);

// Returns the sum over the rows of `weight` times the mean squared difference of a row of the student's hidden states
// from the teacher's.
float feature_loss(Matrix<const float> student, Matrix<const float> teacher, double weight);
// Writes the gradient of the student's hidden states: that of the same sum, times `scale` in place of the weight.
void feature_gradient(Matrix<const float> student, Matrix<const float> teacher, double scale, Matrix<float> gradient);

}  // namespace orrery::kernels
