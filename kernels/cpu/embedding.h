#pragma once

#include "kernels/common/matrix.h"
#include "kernels/cpu/rotary.h"

namespace orrery::kernels {

// Rows of a (vocabulary, columns) table by token. A rank may hold the rows [first, first + table.rows) alone: tokens
// outside give zeros and add nothing, so that the ranks' results sum to the whole; or leave what is in y (`keep`).
void embed(const std::int64_t* tokens, std::int64_t first, Matrix<const float> table, Matrix<float> y,
           bool keep = false);

// Adds every dy row to its token's row of the table's gradient, in the order of rows: the same bits every time.
void embed_gradient(const std::int64_t* tokens, std::int64_t first, Matrix<const float> dy, Matrix<float> dtable);

// Learned positions: y = x + table's row of each position; y may be x. Its gradient adds each dy row to its position's
// row.
void add_positions(Matrix<const float> x, Matrix<const float> table, Positions positions, Matrix<float> y);
void positions_gradient(Matrix<const float> dy, Positions positions, Matrix<float> dtable);

}  // namespace orrery::kernels
