#include "kernels/cpu/embedding.h"

#include <algorithm>

namespace orrery::kernels {
namespace {

void add_row(const float* from, std::int64_t columns, float* to) {
  for (std::int64_t c = 0; c < columns; ++c) to[c] += from[c];
}

std::int64_t position_of(Positions positions, std::int64_t row) {
  return positions.first + row % positions.rows_per_sample;
}

}  // namespace

void embed(const std::int64_t* tokens, std::int64_t first, Matrix<const float> table, Matrix<float> y, bool keep) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const std::int64_t row = tokens[r] - first;
    if (row >= 0 && row < table.rows) {
      std::copy_n(table.row(row), y.columns, y.row(r));
    } else if (!keep) {
      std::fill_n(y.row(r), y.columns, 0.0F);
    }
  }
}

void embed_gradient(const std::int64_t* tokens, std::int64_t first, Matrix<const float> dy, Matrix<float> dtable) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    const std::int64_t row = tokens[r] - first;
    if (row >= 0 && row < dtable.rows) add_row(dy.row(r), dy.columns, dtable.row(row));
  }
}

void add_positions(Matrix<const float> x, Matrix<const float> table, Positions positions, Matrix<float> y) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const float *in = x.row(r), *position = table.row(position_of(positions, r));
    float* out = y.row(r);
    for (std::int64_t c = 0; c < y.columns; ++c) out[c] = in[c] + position[c];
  }
}

void positions_gradient(Matrix<const float> dy, Positions positions, Matrix<float> dtable) {
  for (std::int64_t r = 0; r < dy.rows; ++r) add_row(dy.row(r), dy.columns, dtable.row(position_of(positions, r)));
}

}  // namespace orrery::kernels
