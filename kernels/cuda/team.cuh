#pragma once

#include "kernels/cuda/pack.cuh"

// This header has teams of threads that work together on a row of a matrix: a warp for short rows, a whole thread block
// for long ones.
namespace orrery::kernels::cuda {

constexpr unsigned kWarp = 32;
constexpr unsigned kWarps = kBlock / kWarp;

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Largest {
  __device__ float operator()(float a, float b) const { return a < b ? b : a; }
};

// Reduces a value over the threads of a warp with `join`; every thread gets the result.
template <class T, class Join>
__device__ inline T join_warp(T value, Join join) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value = join(value, shuffle_xor(value, mask));
  return value;
}

// Reduces a value over the threads of a block, in the order of the warps; every thread gets the result. slots: shared
// memory for kWarps values.
template <class T, class Join>
__device__ inline T join_block(T value, Join join, T* slots) {
  value = join_warp(value, join);
  sync_block();  // waits, because threads may still read the values of the previous call in `slots`
  if (threadIdx.x % kWarp == 0) slots[threadIdx.x / kWarp] = value;
  sync_block();
  value = slots[0];
  for (unsigned w = 1; w < blockDim.x / kWarp; ++w) value = join(value, slots[w]);
  return value;
}

// A team of `size` threads (kWarp or kBlock) that work on one row together; a thread block holds kBlock / size teams.
struct Team {
  unsigned size;

  __device__ unsigned lane() const { return threadIdx.x & (size - 1); }
  __device__ unsigned index() const { return threadIdx.x / size; }
  __device__ unsigned count() const { return kBlock / size; }
  __device__ std::int64_t row() const { return std::int64_t{blockIdx.x} * count() + index(); }

  template <class Join>
  __device__ float join(float value, Join f) const {
    if (size == kWarp) return join_warp(value, f);
    return join_block(value, f, reinterpret_cast<float*>(shared_memory()));
  }
  // Calls f(column) for each group of `width` neighbouring elements of the row that this thread takes.
  template <int width, class F>
  __device__ void over(std::int64_t columns, const F& f) const {
    for (std::int64_t c = lane() * width; c < columns; c += size * width) f(c);
  }
};

constexpr std::int64_t kTeamBytes = kWarps * sizeof(float);  // number of bytes of shared memory that Team::join() uses

inline Team team_for(std::int64_t columns) { return {columns <= 1024 ? kWarp : kBlock}; }

template <class... Parameters, class... Arguments>
void launch_teams(const char* name, void (*kernel)(Team, Parameters...), std::int64_t rows, Team team,
                  cudaStream_t stream, const Arguments&... arguments) {
  const dim3 grid(static_cast<unsigned>(ceil_div(rows, kBlock / team.size)));
  launch(name, kernel, grid, kBlock, kTeamBytes, stream, team, arguments...);
}

}  // namespace orrery::kernels::cuda
