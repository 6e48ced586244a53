#include "kernels/cuda/embedding.h"

#include "kernels/cuda/pack.cuh"

namespace orrery::kernels::cuda {
namespace {

template <class From, class To>
struct Embed {
  const std::int64_t* tokens;
  std::int64_t first, vocabulary;
  Rows<const From> table;
  Rows<To> y;

  template <int n>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const std::int64_t token = tokens[row] - first;
    float x[n] = {};
    if (token >= 0 && token < vocabulary) load(table.at(token, column), x);
    store(x, y.at(row, column));
  }
};

template <class From, class To>
struct AddPositions {
  Rows<const To> x;
  Rows<const From> table;
  Positions positions;
  Rows<To> y;

  template <int n>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float v[n], p[n];
    load(x.at(row, column), v);
    load(table.at(positions.first + row % positions.rows_per_sample, column), p);
#pragma unroll
    for (int i = 0; i < n; ++i) v[i] += p[i];
    store(v, y.at(row, column));
  }
};

// Adds to the gradient of the position-embedding table. Each row of the kernel's grid is one position, whose row of the
// table gets the sum of the gradients dy of all samples at that position.
template <class From, class To>
struct PositionsGradient {
  Rows<const From> dy;
  std::int64_t rows;
  Positions positions;
  Rows<To> dtable;

  template <int n>
  __device__ void run(std::int64_t place, std::int64_t column) const {
    float sum[n];
    load(dtable.at(positions.first + place, column), sum);
    for (std::int64_t r = place; r < rows; r += positions.rows_per_sample) {
      float g[n];
      load(dy.at(r, column), g);
#pragma unroll
      for (int i = 0; i < n; ++i) sum[i] += g[i];
    }
    store(sum, dtable.at(positions.first + place, column));
  }
};

// Rows of activations, grouped by their token. Entries [start[t], start[t + 1]) of the lists are the rows whose token
// is t. next[t] first counts the rows of token t, and then is the next free entry of its range.
struct Groups {
  const std::int64_t* tokens;
  std::int64_t first, rows, vocabulary;
  int *start, *next;  // start: array of `vocabulary` + 1 ints; next: array of `vocabulary` ints
  // arrays with `rows` elements: the rows grouped by token, in any order (listed) and in rising order (sorted)
  int *listed, *sorted;

  __device__ std::int64_t token(std::int64_t row) const { return tokens[row] - first; }
  __device__ bool holds(std::int64_t t) const { return t >= 0 && t < vocabulary; }
};

__device__ std::int64_t thread_index() { return std::int64_t{blockIdx.x} * kBlock + threadIdx.x; }

__global__ void __launch_bounds__(kBlock) count_rows(Groups g) {
  const std::int64_t row = thread_index();
  if (row < g.rows && g.holds(g.token(row))) atomicAdd(g.next + g.token(row), 1);
}

// Computes, from the number of rows of each token, the index of the token's first entry in the list of rows grouped by
// token. It runs in one thread block: every thread adds up a range of tokens, thread 0 adds up the ranges, and each
// thread writes the indices of its tokens.
__global__ void __launch_bounds__(kBlock) place_tokens(Groups g) {
  auto* before = reinterpret_cast<int*>(shared_memory());
  const std::int64_t run = (g.vocabulary + kBlock - 1) / kBlock, from = threadIdx.x * run;
  const std::int64_t to = from + run < g.vocabulary ? from + run : g.vocabulary;
  int sum = 0;
  for (std::int64_t t = from; t < to; ++t) sum += g.next[t];
  before[threadIdx.x] = sum;
  sync_block();
  if (threadIdx.x == 0) {
    int total = 0;
    for (unsigned i = 0; i < kBlock; ++i) {
      const int own = before[i];
      before[i] = total;
      total += own;
    }
    g.start[g.vocabulary] = total;
  }
  sync_block();
  int place = before[threadIdx.x];
  for (std::int64_t t = from; t < to; ++t) {
    const int own = g.next[t];
    g.start[t] = place;
    g.next[t] = place;
    place += own;
  }
}

__global__ void __launch_bounds__(kBlock) list_rows(Groups g) {
  const std::int64_t row = thread_index();
  if (row < g.rows && g.holds(g.token(row))) g.listed[atomicAdd(g.next + g.token(row), 1)] = static_cast<int>(row);
}

// Sorts the rows of each token in rising order: the new position of a row is the number of smaller rows with the same
// token.
__global__ void __launch_bounds__(kBlock) sort_rows(Groups g) {
  const std::int64_t place = thread_index();
  if (place >= g.start[g.vocabulary]) return;
  const int row = g.listed[place];
  const std::int64_t token = g.token(row);
  const int from = g.start[token], to = g.start[token + 1];
  int before = 0;
  for (int i = from; i < to; ++i) before += g.listed[i] < row ? 1 : 0;
  g.sorted[from + before] = row;
}

// Adds, for each token, the token's rows of dy to its row of dtable, in rising order of the rows. The kernel has
// threads for every entry of the list of rows, but only those at the first entry of a token compute its sum, each
// thread for a few columns.
template <class From, class To>
struct AddRows {
  Groups groups;
  Rows<const From> dy;
  Rows<To> dtable;

  template <int n>
  __device__ void run(std::int64_t place, std::int64_t column) const {
    if (place >= groups.start[groups.vocabulary]) return;
    const std::int64_t token = groups.token(groups.sorted[place]);
    if (place != groups.start[token]) return;
    const int end = groups.start[token + 1];
    float sum[n];
    load(dtable.at(token, column), sum);
#pragma unroll 4
    for (int i = static_cast<int>(place); i < end; ++i) {
      float g[n];
      load(dy.at(groups.sorted[i], column), g);
#pragma unroll
      for (int j = 0; j < n; ++j) sum[j] += g[j];
    }
    store(sum, dtable.at(token, column));
  }
};

}  // namespace

void embed(const std::int64_t* tokens, std::int64_t first, ConstMatrix table, Matrix y, cudaStream_t stream) {
  with_types(table.type, y.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    const Embed<From, To> f = {tokens, first, table.rows, rows_as<From>(table), rows_as<To>(y)};
    launch_over_rows("embed", y.rows, y.columns, all_wide(table, y), f, stream);
  });
}

std::int64_t embed_gradient_workspace(std::int64_t rows, std::int64_t vocabulary) {
  return (2 * vocabulary + 1 + 2 * rows) * static_cast<std::int64_t>(sizeof(int));
}

void embed_gradient(const std::int64_t* tokens, std::int64_t first, ConstMatrix dy, Matrix dtable, Workspace workspace,
                    cudaStream_t stream) {
  require(workspace.bytes >= embed_gradient_workspace(dy.rows, dtable.rows),
          "embed_gradient: the workspace is too small");
  auto* next = static_cast<int*>(workspace.data);
  int *start = next + dtable.rows, *listed = start + dtable.rows + 1;
  const Groups groups = {tokens, first, dy.rows, dtable.rows, start, next, listed, listed + dy.rows};
  const dim3 grid(static_cast<unsigned>(ceil_div(dy.rows, kBlock)));
  ORRERY_CHECK_CUDA(cudaMemsetAsync(next, 0, static_cast<std::size_t>(dtable.rows) * sizeof(int), stream));
  launch("embed_gradient", count_rows, grid, kBlock, 0, stream, groups);
  launch("embed_gradient", place_tokens, dim3(1), kBlock, kBlock * sizeof(int), stream, groups);
  launch("embed_gradient", list_rows, grid, kBlock, 0, stream, groups);
  launch("embed_gradient", sort_rows, grid, kBlock, 0, stream, groups);
  with_types(dy.type, dtable.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    const AddRows<From, To> f = {groups, rows_as<From>(dy), rows_as<To>(dtable)};
    launch_over_rows("embed_gradient", dy.rows, dy.columns, all_wide(dy, dtable), f, stream);
  });
}

void add_positions(ConstMatrix x, ConstMatrix table, Positions positions, Matrix y, cudaStream_t stream) {
  require(x.type == y.type, "add_positions: x and y must have one type");
  with_types(table.type, y.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    const AddPositions<From, To> f = {rows_as<To>(x), rows_as<From>(table), positions, rows_as<To>(y)};
    launch_over_rows("add_positions", y.rows, y.columns, all_wide(x, table, y), f, stream);
  });
}

void positions_gradient(ConstMatrix dy, Positions positions, Matrix dtable, cudaStream_t stream) {
  with_types(dy.type, dtable.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    const PositionsGradient<From, To> f = {rows_as<From>(dy), dy.rows, positions, rows_as<To>(dtable)};
    launch_over_rows("positions_gradient", std::min(dy.rows, positions.rows_per_sample), dy.columns,
                     all_wide(dy, dtable), f, stream);
  });
}

}  // namespace orrery::kernels::cuda
