#include "kernels/cuda/cross_entropy.h"

#include "kernels/cuda/team.cuh"

namespace orrery::kernels::cuda {
namespace {

// A rank's part of the vocabulary: id of the first token, number of columns that are tokens, and number of all columns
// including padding.
struct Part {
  std::int64_t first, tokens, columns;
};
Part part_of(VocabularyPart part, std::int64_t columns) {
  return {part.first, std::clamp<std::int64_t>(part.vocabulary - part.first, 0, columns), columns};
}

template <int width, class T>
__global__ void __launch_bounds__(kBlock)
    maximum_row(Team team, std::int64_t rows, Part part, Rows<const T> logits, float* maxima) {
  const std::int64_t row = team.row();
  if (row >= rows) return;
  float largest = -INFINITY;
  team.over<width>(part.tokens, [&](std::int64_t c) {
    float x[width];
    load(logits.at(row, c), x);
#pragma unroll
    for (int i = 0; i < width; ++i) largest = c + i < part.tokens && largest < x[i] ? x[i] : largest;
  });
  largest = team.join(largest, Largest{});
  if (team.lane() == 0) maxima[row] = largest;
}

template <int width, class T>
__global__ void __launch_bounds__(kBlock)
    exponent_row(Team team, std::int64_t rows, Part part, Rows<T> logits, const float* maxima,
                 const std::int64_t* labels, float* sums, float* label_logits) {
  const std::int64_t row = team.row();
  if (row >= rows) return;
  const float shift = maxima[row];
  const std::int64_t label = labels[row] - part.first;
  float sum = 0;
  team.over<width>(part.columns, [&](std::int64_t c) {
    float x[width];
    load(logits.at(row, c), x);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const bool token = c + i < part.tokens;
      if (token && c + i == label) label_logits[row] = x[i] - shift;
      x[i] = token ? expf(x[i] - shift) : 0;
      sum += x[i];
    }
    store(x, logits.at(row, c));
  });
  sum = team.join(sum, Sum{});
  if (team.lane() != 0) return;
  sums[row] = sum;
  if (label < 0 || label >= part.tokens) label_logits[row] = 0;
}

template <int width, class T>
__global__ void __launch_bounds__(kBlock)
    gradient_row(Team team, std::int64_t rows, Part part, Rows<T> exponents, const float* sums,
                 const std::int64_t* labels, float scale, const float* factors) {
  const std::int64_t row = team.row();
  if (row >= rows) return;
  const float factor = (factors != nullptr ? factors[row] : 1.0F) * scale / sums[row];
  const std::int64_t label = labels[row] - part.first;
  team.over<width>(part.tokens, [&](std::int64_t c) {
    float x[width];
    load(exponents.at(row, c), x);
#pragma unroll
    for (int i = 0; i < width; ++i) x[i] = c + i < part.tokens ? x[i] * factor - (c + i == label ? scale : 0) : x[i];
    store(x, exponents.at(row, c));
  });
}

template <int width, class T>
__global__ void __launch_bounds__(kBlock)
    combine_row(Team team, std::int64_t rows, std::int64_t columns, Rows<const T> product, Rows<const T> label_rows,
                const float* sums, const float* factors, float scale, Rows<T> gradient) {
  const std::int64_t row = team.row();
  if (row >= rows) return;
  const float factor = scale * factors[row] / sums[row];
  team.over<width>(columns, [&](std::int64_t c) {
    float x[width], label[width];
    load(product.at(row, c), x);
    load(label_rows.at(row, c), label);
#pragma unroll
    for (int i = 0; i < width; ++i) x[i] = factor * x[i] - scale * label[i];
    store(x, gradient.at(row, c));
  });
}

__global__ void __launch_bounds__(kBlock)
    rescale_row(std::int64_t rows, Part part, const float* maxima, const std::int64_t* labels, float* sums,
                float* label_logits, float* factors) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (row >= rows) return;
  const float rise = factors[row] - maxima[row];
  const std::int64_t label = labels[row] - part.first;
  if (label >= 0 && label < part.tokens) label_logits[row] += rise;
  factors[row] = part.tokens > 0 ? expf(rise) : 0.0F;
  sums[row] *= factors[row];
}

__global__ void __launch_bounds__(kBlock)
    loss_of_row(std::int64_t rows, const float* sums, const float* label_logits, float* losses) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (row < rows) losses[row] = logf(sums[row]) - label_logits[row];
}

// Calls f with the type of the logits and the number of elements that a thread reads at once.
template <class AnyMatrix, class F>
void for_rows(const AnyMatrix& logits, const F& f) {
  with_type(logits.type, [&](auto tag) { with_width(is_wide(logits), [&](auto width) { f(tag, width); }); });
}

}  // namespace

void row_maxima(ConstMatrix logits, VocabularyPart part, float* maxima, cudaStream_t stream) {
  for_rows(logits, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    launch_teams("row_maxima", maximum_row<width(), T>, logits.rows, team_for(logits.columns), stream, logits.rows,
                 part_of(part, logits.columns), rows_as<T>(logits), maxima);
  });
}

void row_exponents(Matrix logits, VocabularyPart part, const float* maxima, const std::int64_t* labels, float* sums,
                   float* label_logits, cudaStream_t stream) {
  for_rows(logits, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    launch_teams("row_exponents", exponent_row<width(), T>, logits.rows, team_for(logits.columns), stream, logits.rows,
                 part_of(part, logits.columns), rows_as<T>(logits), maxima, labels, sums, label_logits);
  });
}

void row_losses(std::int64_t rows, const float* sums, const float* label_logits, float* losses, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(ceil_div(rows, kBlock)));
  launch("row_losses", loss_of_row, grid, kBlock, 0, stream, rows, sums, label_logits, losses);
}

void rescale_rows(std::int64_t rows, std::int64_t columns, VocabularyPart part, const float* maxima,
                  const std::int64_t* labels, float* sums, float* label_logits, float* factors, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(ceil_div(rows, kBlock)));
  launch("rescale_rows", rescale_row, grid, kBlock, 0, stream, rows, part_of(part, columns), maxima, labels, sums,
         label_logits, factors);
}

void combine_gradient(ConstMatrix product, ConstMatrix label_rows, const float* sums, const float* factors, float scale,
                      Matrix gradient, cudaStream_t stream) {
  with_type(gradient.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_width(is_wide(product) && is_wide(label_rows) && is_wide(gradient), [&](auto width) {
      launch_teams("combine_gradient", combine_row<width(), T>, gradient.rows, team_for(gradient.columns), stream,
                   gradient.rows, gradient.columns, rows_as<T>(product), rows_as<T>(label_rows), sums, factors, scale,
                   rows_as<T>(gradient));
    });
  });
}

void cross_entropy_gradient(Matrix exponents, VocabularyPart part, const float* sums, const std::int64_t* labels,
                            float scale, const float* factors, cudaStream_t stream) {
  for_rows(exponents, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    launch_teams("cross_entropy_gradient", gradient_row<width(), T>, exponents.rows, team_for(exponents.columns),
                 stream, exponents.rows, part_of(part, exponents.columns), rows_as<T>(exponents), sums, labels, scale,
                 factors);
  });
}

}  // namespace orrery::kernels::cuda
