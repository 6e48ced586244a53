#pragma once

#include "kernels/common/matrix.h"
#include "kernels/cpu/rotary.h"

namespace orrery::kernels {

// Copies the row of a (vocabulary, columns) table for each token to y. A rank may hold only the rows [first, first +
// table.rows): tokens of other rows give zeros, so that the sum of the ranks' results is the complete embedding; with
// `keep`, the rows of y for these tokens stay unchanged.
void embed(const std::int64_t* tokens, std::int64_t first, Matrix<const float> table, Matrix<float> y,
           bool keep = false);

// Adds every row of dy to its token's row of the table's gradient, in the order of rows, so that the result has the
// same bits every time.
void embed_gradient(const std::int64_t* tokens, std::int64_t first, Matrix<const float> dy, Matrix<float> dtable);

// Adds learned position embeddings: y = x + the table's row for each row's position; y may be x. positions_gradient()
// adds each row of dy to the row of dtable for that row's position.
void add_positions(Matrix<const float> x, Matrix<const float> table, Positions positions, Matrix<float> y);
void positions_gradient(Matrix<const float> dy, Positions positions, Matrix<float> dtable);

}  // namespace orrery::kernels
