#include "kernels/cpu/residual.h"

#include <cmath>

#include "kernels/common/philox.h"

namespace orrery::kernels {
namespace {

// Returns the threshold of a dropout, 2^32 times the probability: an element with a random word below it is dropped.
std::uint64_t threshold_of(double probability) { return static_cast<std::uint64_t>(std::ldexp(probability, 32)); }

// Returns the random words for an element; four consecutive elements use the four words of one Philox counter.
Philox words_of(const DropoutStream& stream, std::uint64_t element) {
  const std::uint64_t block = element / 4;
  const std::uint32_t where = static_cast<std::uint32_t>(stream.layer) << 16 | stream.op;
  return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), stream.step, where},
                stream.seed);
}

void mask_row(const Dropout& dropout, std::uint64_t first, std::int64_t columns, std::uint8_t* mask) {
  const std::uint64_t threshold = threshold_of(dropout.probability);
  for (std::int64_t c = 0; c < columns;) {
    const std::uint64_t element = first + static_cast<std::uint64_t>(c);
    const Philox words = words_of(dropout.stream, element);
    for (std::uint64_t w = element % 4; w < 4 && c < columns; ++w, ++c) mask[c] = words[w] >= threshold ? 1 : 0;
  }
}

float factor_of(double probability) { return static_cast<float>(1 / (1 - probability)); }

}  // namespace

void dropout_mask(const Dropout& dropout, std::int64_t rows, std::int64_t columns, std::uint8_t* mask) {
  for (std::int64_t r = 0; r < rows; ++r) mask_row(dropout, dropout.index.of_row(r), columns, mask + r * columns);
}

void residual(Matrix<const float> base, Matrix<const float> x, const float* bias, double probability,
              const std::uint8_t* mask, Matrix<float> y) {
  const float factor = factor_of(probability);
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const float* in = x.row(r);
    const float* from = base.data == nullptr ? nullptr : base.row(r);
    const std::uint8_t* kept = mask == nullptr ? nullptr : mask + r * y.columns;
    float* out = y.row(r);
    for (std::int64_t c = 0; c < y.columns; ++c) {
      float value = bias == nullptr ? in[c] : in[c] + bias[c];
      if (kept != nullptr) value *= factor * static_cast<float>(kept[c]);
      out[c] = from == nullptr ? value : from[c] + value;
    }
  }
}

void dropout_gradient(Matrix<const float> dy, double probability, const std::uint8_t* mask, Matrix<float> dx) {
  const float factor = factor_of(probability);
  for (std::int64_t r = 0; r < dy.rows; ++r, mask += dy.columns) {
    const float* in = dy.row(r);
    float* out = dx.row(r);
    for (std::int64_t c = 0; c < dy.columns; ++c) out[c] = in[c] * (factor * static_cast<float>(mask[c]));
  }
}

}  // namespace orrery::kernels
