#include "kernels/cuda/reduce.cuh"

#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/elementwise.h"

namespace orrery::kernels::cuda {
namespace {

constexpr unsigned kNormBlocks = 1024;
constexpr std::int64_t kMostParts = 256;
constexpr std::int64_t kPartRows = 64;  // smallest number of rows that are summed as one part

__global__ void __launch_bounds__(kBlock)
    sum_parts(const float* partial, std::int64_t parts, std::int64_t columns, Array to) {
  auto* sums = reinterpret_cast<float(*)[kReduceColumns]>(shared_memory());
  const unsigned lane = threadIdx.x % kReduceColumns, group = threadIdx.x / kReduceColumns;
  const std::int64_t column = std::int64_t{blockIdx.x} * kReduceColumns + lane;
  float sum = 0;
  if (column < columns) {
#pragma unroll 8
    for (std::int64_t p = group; p < parts; p += kBlock / kReduceColumns) sum += partial[p * columns + column];
  }
  sums[group][lane] = sum;
  sync_block();
  if (group != 0 || column >= columns) return;
  for (unsigned g = 1; g < kBlock / kReduceColumns; ++g) sum += sums[g][lane];
  add_to(to, column, sum);
}

// Computes partial(part, column): the sum of rows [part * rows_each, ...) of dy. The threads of a warp take
// neighbouring columns; each of the block's eight warps takes every eighth row.
template <int width, class T>
__global__ void __launch_bounds__(kBlock)
    sum_rows(std::int64_t rows, std::int64_t columns, std::int64_t rows_each, Rows<const T> dy, float* partial) {
  auto* sums = reinterpret_cast<float*>(shared_memory());  // partial sums of shape (kWarps, kWarp * width)
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t column = (std::int64_t{blockIdx.x} * kWarp + lane) * width;
  const std::int64_t first = blockIdx.y * rows_each;
  const std::int64_t last = first + rows_each < rows ? first + rows_each : rows;
  float sum[width] = {};
  if (column < columns) {
#pragma unroll 4
    for (std::int64_t r = first + warp; r < last; r += kWarps) {
      float x[width];
      load(dy.at(r, column), x);
#pragma unroll
      for (int i = 0; i < width; ++i) sum[i] += x[i];
    }
  }
#pragma unroll
  for (int i = 0; i < width; ++i) sums[(warp * width + i) * kWarp + lane] = sum[i];
  sync_block();
  if (warp != 0 || column >= columns) return;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    for (unsigned w = 1; w < kWarps; ++w) sum[i] += sums[(w * width + i) * kWarp + lane];
    partial[blockIdx.y * columns + column + i] = sum[i];
  }
}

std::int64_t bias_parts(std::int64_t rows) {
  return std::clamp<std::int64_t>(ceil_div(rows, kPartRows), 1, kMostParts);
}

template <int width, class T>
__global__ void __launch_bounds__(kBlock) sum_squares(std::int64_t n, const T* x, double* partial) {
  double sum = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock * width;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kBlock + threadIdx.x) * width; i < n; i += step) {
    float v[width];
    if (i + width <= n) {
      load(x + i, v);
    } else {
      for (int j = 0; j < width; ++j) v[j] = i + j < n ? widen(x[i + j]) : 0;
    }
    double squares = 0;
#pragma unroll
    for (int j = 0; j < width; ++j) squares += static_cast<double>(v[j]) * static_cast<double>(v[j]);
    sum += squares;
  }
  sum = join_block(sum, Sum{}, reinterpret_cast<double*>(shared_memory()));
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// Adds the sum of n numbers to *total, in one thread block.
template <class T>
__global__ void __launch_bounds__(kBlock) add_numbers(std::int64_t n, const T* x, double* total) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += kBlock) sum += static_cast<double>(x[i]);
  sum = join_block(sum, Sum{}, reinterpret_cast<double*>(shared_memory()));
  if (threadIdx.x == 0) *total += sum;
}

__global__ void store_number(const double* total, bool adds, float* to) {
  if (threadIdx.x == 0) *to = static_cast<float>(*total + (adds ? static_cast<double>(*to) : 0));
}

constexpr std::int64_t kDoubleSlots = kWarps * sizeof(double);

}  // namespace

void add_partial_sums(const float* partial, std::int64_t parts, std::int64_t columns, Array to, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(ceil_div(columns, kReduceColumns)));
  launch("add_partial_sums", sum_parts, grid, kBlock, kBlock * sizeof(float), stream, partial, parts, columns, to);
}

std::int64_t bias_gradient_workspace(std::int64_t rows, std::int64_t columns) {
  return bias_parts(rows) * columns * bytes_of(Type::fp32);
}

void bias_gradient(ConstMatrix dy, Array dbias, Workspace workspace, cudaStream_t stream) {
  if (dy.rows == 0) return;
  require(workspace.bytes >= bias_gradient_workspace(dy.rows, dy.columns), "bias_gradient: the workspace is too small");
  const std::int64_t rows_each = ceil_div(dy.rows, bias_parts(dy.rows)), parts = ceil_div(dy.rows, rows_each);
  auto* partial = static_cast<float*>(workspace.data);
  with_type(dy.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_width(all_wide(dy), [&](auto width) {
      const dim3 grid(static_cast<unsigned>(ceil_div(dy.columns, std::int64_t{kWarp} * width())),
                      static_cast<unsigned>(parts));
      launch("bias_gradient", sum_rows<width(), T>, grid, kBlock, kBlock * width() * sizeof(float), stream, dy.rows,
             dy.columns, rows_each, rows_as<T>(dy), partial);
    });
  });
  add_partial_sums(partial, parts, dy.columns, dbias, stream);
}

std::int64_t squared_norm_workspace() { return kNormBlocks * sizeof(double); }

void add_squared_norm(std::int64_t n, ConstArray x, double* total, Workspace workspace, cudaStream_t stream) {
  require(workspace.bytes >= squared_norm_workspace(), "add_squared_norm: the workspace is too small");
  if (n == 0) return;
  auto* partial = static_cast<double*>(workspace.data);
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_width(is_wide(x), [&](auto width) {
      const std::int64_t blocks = std::min<std::int64_t>(kNormBlocks, ceil_div(n, std::int64_t{kBlock} * width()));
      launch("squared_norm", sum_squares<width(), T>, dim3(static_cast<unsigned>(blocks)), kBlock, kDoubleSlots, stream,
             n, static_cast<const T*>(x.data), partial);
      launch("squared_norm", add_numbers<double>, dim3(1), kBlock, kDoubleSlots, stream, blocks, partial, total);
    });
  });
}

void store_sum(const double* total, bool adds, float* to, cudaStream_t stream) {
  launch("store_sum", store_number, dim3(1), kWarp, 0, stream, total, adds, to);
}

void add_sum(std::int64_t n, const float* losses, double* total, cudaStream_t stream) {
  launch("add_sum", add_numbers<float>, dim3(1), kBlock, kDoubleSlots, stream, n, losses, total);
}

}  // namespace orrery::kernels::cuda
