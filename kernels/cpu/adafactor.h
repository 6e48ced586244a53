#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/update.h"

namespace orrery::kernels {

// Adafactor (Shazeer and Stern 2018, 1804.04235, algorithms 4 and 5) without a first moment: instead of a second moment
// of each element of a matrix it keeps sums of squares of each row and each column. Its constants are the paper's.
inline constexpr double kWeightEpsilon = 1e-3;  // epsilon_2, the least scale of a tensor's weights
inline constexpr double kUpdateLimit = 1;       // d, the largest root mean square of a tensor's update
inline constexpr double kSquareExponent = 0.8;  // c in the decay 1 - t^-c of the sums in step t
inline constexpr double kLargestStep = 1e-2;    // relative size of a step, at most 1 / sqrt(t) too

// Returns the decay of the sums of squares in step number `step`, counted from 1: 0 in the first step.
double square_decay(std::int64_t step);

// Returns the learning rate of a tensor whose weights have this root mean square. It is relative to the weights;
// learning_rate of the rule is the largest relative step.
double adafactor_rate(const UpdateRule& rule, std::int64_t step, double weights);

// Returns the factor that clips a tensor's update with this root mean square.
double update_clip(double root_mean_square);

// Consecutive elements of a rank's part of a tensor, which has `in` columns: `count` elements from element `first` on.
// The complete tensor has row rows[r] for row r of the part, and its column column + c for column c. A vector is one
// column.
struct TensorElements {
  std::int64_t in = 1, first = 0, count = 0;
  const std::int64_t* rows = nullptr;
  std::int64_t column = 0;
};

// Adds the squares of gradients, each with epsilon added, to sums over each row and each column of the complete tensor;
// of a vector, the row sums are the squares themselves.
void add_squares(const TensorElements& of, double gradient_factor, double epsilon, const float* gradient, double* rows,
                 double* columns);

// The inverse roots of the estimated second moments: that of the element in row r and column c is rows[r] columns[c].
struct InverseRoots {
  std::vector<float> rows, columns;
};
// Computes them from the sums of squares; a vector has no columns.
InverseRoots inverse_roots(const float* rows, std::int64_t row_count, const float* columns, std::int64_t column_count);

// Adds the squares of a tensor's updates, before they are clipped, and those of its weights to sums.
struct TensorNorms {
  double update = 0, weights = 0;
};
void add_norms(const TensorElements& of, const InverseRoots& roots, double gradient_factor, const float* gradient,
               const float* weights, TensorNorms& sums);

// Makes the step: weights = shrink weights - rate update.
void adafactor_step(const TensorElements& of, const InverseRoots& roots, double gradient_factor, double shrink,
                    double rate, const float* gradient, float* weights);

}  // namespace orrery::kernels
