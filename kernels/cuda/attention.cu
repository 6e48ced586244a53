#include "kernels/cuda/attention.h"

#include "kernels/cuda/attention_limits.h"
#include "kernels/cuda/attention_parts.h"
#include "kernels/cuda/team.cuh"

namespace orrery::kernels::cuda {
namespace {

// If the backward pass would have fewer thread blocks than this number, query heads that share a key head run in
// separate blocks. The number is two blocks for each of an H100's 132 multiprocessors.
constexpr std::int64_t kFewBlocks = 264;

// A view of the query rows of all heads: row r is query r % queries of head r / queries % heads.
template <class T>
struct QueryRows {
  T* data;
  std::int64_t stride, queries, heads, head_dim;

  __device__ T* at(std::int64_t row) const {
    const std::int64_t query = row % queries, head = row / queries % heads, sample = row / queries / heads;
    return data + (sample * queries + query) * stride + head * head_dim;
  }
};
template <class T>
QueryRows<const T> query_rows_as(const ConstHeads& h) {
  return {static_cast<const T*>(h.data), h.stride, h.rows, h.heads, h.head_dim};
}

// Computes two statistics of every row for the backward pass: the logarithm, to base 2, of the sum of exponentials of
// the row's scores, and the dot product of the row's dout and out. One warp computes a row.
template <class T>
__global__ void __launch_bounds__(kBlock) prepare_row(Team team, std::int64_t rows, QueryRows<const T> out,
                                                      QueryRows<const T> dout, const float* lse, float* statistics) {
  const std::int64_t row = team.row();
  if (row >= rows) return;
  float sum = 0;
  team.over<kWide>(out.head_dim, [&](std::int64_t c) {
    float y[kWide], g[kWide];
    load(out.at(row) + c, y);
    load(dout.at(row) + c, g);
#pragma unroll
    for (int i = 0; i < kWide; ++i) sum += y[i] * g[i];
  });
  sum = team.join(sum, Sum{});
  if (team.lane() != 0) return;
  statistics[row] = lse[row] * kLog2E;
  statistics[rows + row] = sum;
}

// Sums the gradients of keys or values that were computed separately from several parts of the query heads, in a fixed
// order. One row of the CUDA grid computes the gradient of one token and key head.
template <class T>
struct AddParts {
  const float* partial;
  int parts;
  std::int64_t heads, columns, whole;  // whole: number of elements of all keys' (or values') gradients
  T* to;
  std::int64_t stride;

  template <int n>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float sum[n] = {};
    for (int p = 0; p < parts; ++p) {
      float x[n];
      load(partial + p * whole + row * columns + column, x);
#pragma unroll
      for (int i = 0; i < n; ++i) sum[i] += x[i];
    }
    store(sum, to + row / heads * stride + row % heads * columns + column);
  }
};

template <class T>
void add_parts(const float* partial, std::int64_t parts, const Heads& to, cudaStream_t stream) {
  const std::int64_t rows = to.batch * to.rows * to.heads;
  const AddParts<T> f = {
      partial, static_cast<int>(parts), to.heads, to.head_dim, rows * to.head_dim, static_cast<T*>(to.data), to.stride};
  launch_over_rows("attention_gradient", rows, to.head_dim, true, f, stream);
}

template <class... Tensors>
void require_tiles(const Tensors&... tensors) {
  const auto fits = [](const auto& h) {
    return takes_head_dim(h.head_dim, true) && h.stride % kWide == 0 && is_wide(h.data);
  };
  require((fits(tensors) && ...), "attention: needs head_dim a multiple of 8 up to 256, and rows 16-byte aligned");
}

template <class First, class... Others>
void require_one_type(const First& first, const Others&... others) {
  require(((first.type == others.type) && ...), "attention: all tensors must have one type");
}

// Returns the number of parts into which the query heads that share a key head are split in the backward pass, so that
// enough thread blocks run.
std::int64_t parts_of(const ConstHeads& q, const ConstHeads& k) {
  const std::int64_t tiles = ceil_div(k.rows, backward_extent(q.head_dim).keys), group = q.heads / k.heads;
  return tiles * k.heads * k.batch < kFewBlocks ? group : 1;
}

// Offsets, in floats, of the arrays that the backward pass keeps in its workspace. Arrays are aligned so that four
// floats can be read at once.
struct Scratch {
  std::int64_t dq_sums, statistics, partial_keys;
};
Scratch scratch_of(const ConstHeads& q, const ConstHeads& k) {
  const BackwardExtent e = backward_extent(q.head_dim);
  const std::int64_t parts = parts_of(q, k);
  return {q.batch * q.heads * ceil_div(q.rows, e.queries) * e.queries * e.depth,
          ceil_div(2 * q.batch * q.heads * q.rows, 4) * 4,
          parts > 1 ? 2 * parts * k.batch * k.rows * k.heads * k.head_dim : 0};
}

}  // namespace

void attention(ConstHeads q, ConstHeads k, ConstHeads v, float scale, const CausalMask& mask, Heads out, float* lse,
               cudaStream_t stream) {
  require_one_type(q, k, v, out);
  require(scale > 0 && q.heads % k.heads == 0, "attention: needs a scale above 0, and heads a multiple of kv_heads");
  const ForwardArguments arguments = {q, k, v, scale, mask, out, lse};
  if (q.type == Type::fp32) return attention_plain(arguments, stream);
  require_tiles(q, k, v, out);
  switch (backward_extent(q.head_dim).depth) {
    case 64:
      return attention_64(arguments, stream);
    case 96:
      return attention_96(arguments, stream);
    case 128:
      return attention_128(arguments, stream);
    default:
      return attention_256(arguments, stream);
  }
}

std::int64_t attention_gradient_workspace(ConstHeads q, ConstHeads k) {
  const Scratch s = scratch_of(q, k);
  return (s.dq_sums + s.statistics + s.partial_keys) * bytes_of(Type::fp32);
}

void attention_gradient(const AttentionSaved& saved, ConstHeads dout, float scale, const CausalMask& mask, Heads dq,
                        Heads dk, Heads dv, Workspace workspace, cudaStream_t stream) {
  const auto& [q, k, v, out, lse] = saved;
  require_one_type(q, k, v, out, dout, dq, dk, dv);
  require(workspace.bytes >= attention_gradient_workspace(q, k), "attention_gradient: the workspace is too small");
  const Scratch scratch = scratch_of(q, k);
  auto* sums = static_cast<float*>(workspace.data);
  float *statistics = sums + scratch.dq_sums, *partial = statistics + scratch.statistics;
  const std::int64_t rows = q.batch * q.heads * q.rows, parts = parts_of(q, k);
  const BackwardArguments arguments = {saved, dout, scale, mask,       dq,
                                       dk,    dv,   sums,  statistics, parts > 1 ? partial : nullptr};
  with_type(q.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, float>) {
      attention_gradient_plain(arguments, stream);
    } else {
      require_tiles(q, k, v, out, dout, dq, dk, dv);
      launch_teams("attention_gradient", prepare_row<T>, rows, Team{kWarp}, stream, rows, query_rows_as<T>(out),
                   query_rows_as<T>(dout), lse, statistics);
      ORRERY_CHECK_CUDA(cudaMemsetAsync(sums, 0, static_cast<std::size_t>(scratch.dq_sums) * sizeof(float), stream));
      switch (backward_extent(q.head_dim).depth) {
        case 64:
          attention_gradient_64(arguments, stream);
          break;
        case 96:
          attention_gradient_96(arguments, stream);
          break;
        case 128:
          attention_gradient_128(arguments, stream);
          break;
        default:
          attention_gradient_256(arguments, stream);
      }
      if (parts == 1) return;
      add_parts<T>(partial, parts, dk, stream);
      add_parts<T>(partial + scratch.partial_keys / 2, parts, dv, stream);
    }
  });
}

}  // namespace orrery::kernels::cuda
