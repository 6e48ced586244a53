#pragma once

#include <machine.cuh>

// This header has tiles of 16-bit elements in shared memory, and their fragments: the registers that a warp's matrix
// instructions take.
namespace orrery::kernels::cuda {

constexpr int kChunk = 8;  // number of 16-bit elements in 16 bytes

// Returns the offset of a chunk (8 elements) of a tile, in bytes from the tile's beginning. Rows have `stride`
// elements, a power of two of at least 64; chunk c of row r is stored as chunk c ^ (r % 8). So a read of the same chunk
// of eight rows, or of eight consecutive chunks, uses all 32 banks of shared memory.
template <int stride>
constexpr std::uint32_t place_of(unsigned row, unsigned chunk) {
  static_assert(stride >= 64 && (stride & (stride - 1)) == 0);
  return row * (2 * stride) + ((chunk ^ (row & 7)) << 4);
}

// The addresses that one thread of a warp gives to the instruction ldmatrix: each is the address of 8 elements in a row
// of the 16 x 16 block that begins at (row, chunk) of a tile; row is a multiple of 8, chunk a multiple of 2. The four 8
// x 8 matrices of the block are numbered down first, or across first. Tiles begin at multiples of a row's bytes, so
// that a bit operation on the whole address changes the chunk.
template <int stride>
struct Reader {
  std::uint32_t begin;  // address in shared memory that this thread uses for the tile's first block

  __device__ std::uint32_t at(int row, int chunk) const {
    return (begin ^ (static_cast<std::uint32_t>(chunk) << 4)) + static_cast<std::uint32_t>(row) * (2 * stride);
  }
};
template <int stride>
__device__ inline Reader<stride> down_first(std::uint32_t tile) {
  const unsigned l = threadIdx.x % 32;
  return {tile + place_of<stride>(l & 15, l >> 4)};
}
template <int stride>
__device__ inline Reader<stride> across_first(std::uint32_t tile) {
  const unsigned l = threadIdx.x % 32;
  return {tile + place_of<stride>((l & 7) + ((l >> 4) << 3), (l >> 3) & 1)};
}

// Return the row and the column, in a 16 x 8 block of results, of this thread's i-th element (0 to 3) of the block.
__device__ inline int result_row(int i) { return static_cast<int>(threadIdx.x % 32) / 4 + 8 * (i / 2); }
__device__ inline int result_column(int i) { return 2 * static_cast<int>(threadIdx.x % 4) + i % 2; }

// Computes sums(16 row_tiles, 8 column_tiles) += a b over `steps` steps of 16 elements. a(fragment, row tile, step)
// loads 16 x 16 elements of a, and b(fragment, pair of column tiles, step) 16 x 16 elements of b. Fragments of b are
// loaded one pair of column tiles ahead of their use.
template <class T, int steps, int row_tiles, int column_tiles, class LoadA, class LoadB>
__device__ inline void multiply_tiles(float (&sums)[row_tiles][column_tiles][4], const LoadA& a, const LoadB& b) {
  static_assert(column_tiles % 2 == 0);
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    std::uint32_t of_a[row_tiles][4];
#pragma unroll
    for (int m = 0; m < row_tiles; ++m) a(of_a[m], m, step);
    std::uint32_t of_b[2][4];
    b(of_b[0], 0, step);
#pragma unroll
    for (int n = 0; n < column_tiles / 2; ++n) {
      if (n + 1 < column_tiles / 2) b(of_b[(n + 1) % 2], n + 1, step);
#pragma unroll
      for (int m = 0; m < row_tiles; ++m) {
        multiply_add<T>(sums[m][2 * n], of_a[m], of_b[n % 2][0], of_b[n % 2][1]);
        multiply_add<T>(sums[m][2 * n + 1], of_a[m], of_b[n % 2][2], of_b[n % 2][3]);
      }
    }
  }
}

// Loaders for multiply_tiles(): functions that load its operands from (row, column) of a tile on. The letters in their
// names are the dimensions of the tile's rows and columns: m, n, k as in c(m, n) = a(m, k) b(k, n).
template <int stride>
__device__ inline auto a_of_mk(std::uint32_t tile, int row, int column) {
  const Reader<stride> r = down_first<stride>(tile);
  return
      [=](std::uint32_t(&f)[4], int m, int step) { load_matrices(f, r.at(row + 16 * m, column / kChunk + 2 * step)); };
}
template <int stride>
__device__ inline auto a_of_km(std::uint32_t tile, int row, int column) {
  const Reader<stride> r = across_first<stride>(tile);
  return [=](std::uint32_t(&f)[4], int m, int step) {
    load_matrices_transposed(f, r.at(row + 16 * step, column / kChunk + 2 * m));
  };
}
template <int stride>
__device__ inline auto b_of_nk(std::uint32_t tile, int row, int column) {
  const Reader<stride> r = across_first<stride>(tile);
  return
      [=](std::uint32_t(&f)[4], int n, int step) { load_matrices(f, r.at(row + 16 * n, column / kChunk + 2 * step)); };
}
template <int stride>
__device__ inline auto b_of_kn(std::uint32_t tile, int row, int column) {
  const Reader<stride> r = down_first<stride>(tile);
  return [=](std::uint32_t(&f)[4], int n, int step) {
    load_matrices_transposed(f, r.at(row + 16 * step, column / kChunk + 2 * n));
  };
}

// Stores a warp's results of multiply_tiles(), rounded to 16 bits, in a tile from (row, column) on; row and column must
// be multiples of 8.
template <class T, int stride, int row_tiles, int column_tiles>
__device__ inline void store_results(std::uint32_t tile, int row, int column,
                                     const float (&x)[row_tiles][column_tiles][4]) {
  const std::uint32_t within = 4 * (threadIdx.x % 4);
#pragma unroll
  for (int m = 0; m < row_tiles; ++m) {
#pragma unroll
    for (int n = 0; n < column_tiles; ++n) {
      const unsigned chunk = column / kChunk + n;
      const unsigned first = row + 16 * m + result_row(0), second = first + 8;
      store_shared(tile + place_of<stride>(first, chunk) + within, pack<T>(x[m][n][0], x[m][n][1]));
      store_shared(tile + place_of<stride>(second, chunk) + within, pack<T>(x[m][n][2], x[m][n][3]));
    }
  }
}

// The rows of one sample and head: row r at data + r * stride, head_dim elements of each.
template <class T>
struct HeadView {
  T* data;
  std::int64_t stride;
  int rows, head_dim;
};

// Begins to copy rows [first, first + rows) of a head into a tile, with zeros for rows that do not exist. `threads`
// threads share the copy, and this one is number `thread`. Each thread copies one chunk (8 elements) of every
// kRowStep-th row, so that its addresses differ by constants.
template <int stride, int rows, int depth, int threads, class T>
__device__ inline void load_tile(std::uint32_t tile, const HeadView<const T>& from, int first, int thread) {
  constexpr int kChunks = stride / kChunk, kRowStep = threads / kChunks;
  static_assert(threads % kChunks == 0 && kRowStep % 8 == 0 && rows % kRowStep == 0);
  const int row = thread / kChunks, chunk = thread % kChunks;
  if (chunk * kChunk >= depth) return;
  const std::uint32_t to = tile + place_of<stride>(row, chunk);
  const int left = chunk * kChunk < from.head_dim ? from.rows - first - row : 0;
  const T* source = from.data + (first + row) * from.stride + chunk * kChunk;
#pragma unroll
  for (int i = 0; i < rows; i += kRowStep) {
    copy_async(to + i * (2 * stride), i < left ? source + i * from.stride : from.data, i < left);
  }
}

// Writes a tile's rows [0, rows) to rows [first, first + rows) of a head, as far as they exist.
template <int stride, int rows, int depth, int threads, class T>
__device__ inline void save_tile(std::uint32_t tile, const HeadView<T>& to, int first, int thread) {
  constexpr int kChunks = depth / kChunk;
#pragma unroll 4
  for (int at = thread; at < rows * kChunks; at += threads) {
    const int row = at / kChunks, chunk = at % kChunks;
    if (first + row >= to.rows || chunk * kChunk >= to.head_dim) continue;
    *reinterpret_cast<uint4*>(to.data + (first + row) * to.stride + chunk * kChunk) =
        load_shared(tile + place_of<stride>(row, chunk));
  }
}

}  // namespace orrery::kernels::cuda
