#pragma once

#include "kernels/common/matrix.h"
#include "kernels/cpu/update.h"

namespace orrery::kernels {

// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): the step of a matrix is its momentum, brought near the
// orthogonal matrix with the same singular vectors. These functions compute in float.

// Computes, for n elements of a matrix, moment = momentum moment + gradient, and overwrites the gradient with the
// direction gradient + momentum moment (Nesterov's momentum, as in Jordan's implementation).
void add_momentum(const UpdateRule& rule, double gradient_factor, std::int64_t n, float* gradient, float* moment);

// Brings x near the orthogonal matrix with the same singular vectors by Newton-Schulz iterations: with x divided by its
// Frobenius norm and A = x x^T, each iteration computes x <- a x + (b A + c A^2) x. The polynomial's coefficients a, b
// and c are those of Jordan's post; singular values that are not tiny come near 1 in five iterations.
inline constexpr double kNewtonSchulz[] = {3.4445, -4.7750, 2.0315};
inline constexpr double kFrobeniusEpsilon = 1e-7;  // is added to the norm (Jordan's implementation)
void orthogonalize(std::int64_t iterations, Matrix<float> x);

// Makes the step of n elements of a matrix (rows, columns): weights are first reduced by learning_rate * weight_decay,
// then by learning_rate times 0.2 sqrt(max(rows, columns)) times the orthogonalized direction, whose mean square is
// then that of AdamW's steps, so that one learning rate serves both (Liu et al. 2025, 2502.16982, section 2.2).
void muon_step(const UpdateRule& rule, std::int64_t rows, std::int64_t columns, std::int64_t n, const float* direction,
               float* weights);

}  // namespace orrery::kernels
