#pragma once

#include <vector>

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// Tables, of shape (positions, head_dim / 2), of the cosine and sine of position * theta^(-2 i / head_dim) for pair i
// of a head's elements (Su et al. 2021, arXiv:2104.09864).
struct RotaryTable {
  std::int64_t half = 0;  // number of rotated pairs: head_dim / 2
  std::vector<float> cosine, sine;
};
RotaryTable rotary_table(std::int64_t positions, std::int64_t head_dim, double theta);

// The positions in their sequences of a buffer's rows: row r has position first + r % rows_per_sample.
struct Positions {
  std::int64_t rows_per_sample = 0;
  std::int64_t first = 0;
};

// Rotates (RoPE) every head of x (rows, heads * head_dim) in place; element i of a head is paired with element i +
// head_dim / 2, as in Llama's published weights for Hugging Face. x is the queries and keys of a packed buffer: the
// buffer's first (heads + kv_heads) * head_dim columns. back: rotates by the opposite angle, as the backward pass must.
void rotate(const RotaryTable& table, Positions positions, bool back, Matrix<float> x);

}  // namespace orrery::kernels
