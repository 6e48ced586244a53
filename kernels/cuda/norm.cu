#include "kernels/cuda/norm.h"

#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/team.cuh"

namespace orrery::kernels::cuda {
namespace {

// Number of thread blocks in the backward pass; each writes one row of partial sums.
constexpr std::int64_t kGradientBlocks = 512;

// A view of the rows of all heads, head by head: row r is token r % tokens of head r / tokens.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t stride, tokens;
  std::int64_t columns;

  __device__ T* at(std::int64_t row) const { return data + row % tokens * stride + row / tokens * columns; }
};
template <class T>
HeadRows<T> head_rows_as(const Heads& h) {
  return {static_cast<T*>(h.data), h.stride, h.batch * h.rows, h.head_dim};
}
template <class T>
HeadRows<const T> head_rows_as(const ConstHeads& h) {
  return {static_cast<const T*>(h.data), h.stride, h.batch * h.rows, h.head_dim};
}
template <class Void>
std::int64_t rows_in(const BasicHeads<Void>& h) {
  return h.batch * h.rows * h.heads;
}
template <class Void>
bool is_wide(const BasicHeads<Void>& h) {
  return is_wide(BasicMatrix<Void>{h.data, h.type, h.rows, h.head_dim, h.stride});
}

// The forward pass of one row: computes the mean (if centred), then the variance around it, then writes the result. The
// row is read three times, the second and third time from the L1 cache.
template <int width, class T>
__global__ void __launch_bounds__(kBlock)
    norm_row(Team team, std::int64_t rows, HeadRows<const T> x, ConstArray weight, ConstArray bias, float epsilon,
             bool centred, HeadRows<T> y, NormStatistics saved) {
  const std::int64_t row = team.row(), columns = x.columns;
  if (row >= rows) return;
  const T* in = x.at(row);
  const float share = 1 / static_cast<float>(columns);
  float mean = 0;
  if (centred) {
    float sum = 0;
    team.over<width>(columns, [&](std::int64_t c) {
      float v[width];
      load(in + c, v);
#pragma unroll
      for (int i = 0; i < width; ++i) sum += v[i];
    });
    mean = share * team.join(sum, Sum{});
  }
  float squares = 0;
  team.over<width>(columns, [&](std::int64_t c) {
    float v[width];
    load(in + c, v);
#pragma unroll
    for (int i = 0; i < width; ++i) squares += (v[i] - mean) * (v[i] - mean);
  });
  const float reciprocal = 1 / sqrtf(share * team.join(squares, Sum{}) + epsilon);
  T* out = y.at(row);
  team.over<width>(columns, [&](std::int64_t c) {
    float v[width], w[width], b[width] = {};
    load(in + c, v);
    load(weight, c, w);
    if (centred) load(bias, c, b);
#pragma unroll
    for (int i = 0; i < width; ++i) v[i] = (v[i] - mean) * reciprocal * w[i] + b[i];
    store(v, out + c);
  });
  if (team.lane() != 0) return;
  saved.reciprocal[row] = reciprocal;
  if (centred) saved.mean[row] = mean;
}

// The backward pass: dx = reciprocal (g - mean(g) - z mean(g z)), where reciprocal is 1 / the row's deviation, z the
// normalised x and g = dy weight (kernels/cpu/norm.cpp). With n teams of threads (team.cuh), each team takes every n-th
// row and sums the gradients of weight and bias in shared memory. A thread uses only its own columns of these sums, so
// that no synchronisation is needed.
template <int width, class T>
__global__ void __launch_bounds__(kBlock)
    norm_gradient_rows(Team team, std::int64_t rows, HeadRows<const T> x, NormStatistics saved, HeadRows<const T> dy,
                       ConstArray weight, bool centred, HeadRows<T> dx, float* partial_weight, float* partial_bias) {
  const std::int64_t columns = x.columns;
  // Sums of the gradients of weight and, for layer norm, of bias: (teams, 1 or 2, columns).
  auto* sums = reinterpret_cast<float*>(shared_memory() + kTeamBytes);
  const std::int64_t per_team = centred ? 2 * columns : columns;
  float* dweight = sums + team.index() * per_team;
  float* dbias = dweight + columns;
  team.over<width>(columns, [&](std::int64_t c) {
    for (int i = 0; i < width; ++i) dweight[c + i] = 0;
    for (int i = 0; i < width && centred; ++i) dbias[c + i] = 0;
  });
  const float share = 1 / static_cast<float>(columns);
  for (std::int64_t row = team.row(); row < rows; row += std::int64_t{gridDim.x} * team.count()) {
    const T *in = x.at(row), *slope = dy.at(row);
    T* out = dx.at(row);
    const float reciprocal = saved.reciprocal[row], mean = centred ? saved.mean[row] : 0;
    float along = 0, level = 0;
    team.over<width>(columns, [&](std::int64_t c) {
      float v[width], g[width], w[width];
      load(in + c, v);
      load(slope + c, g);
      load(weight, c, w);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        along += g[i] * w[i] * ((v[i] - mean) * reciprocal);
        level += g[i] * w[i];
      }
    });
    along = share * team.join(along, Sum{});
    level = centred ? share * team.join(level, Sum{}) : 0;
    team.over<width>(columns, [&](std::int64_t c) {
      float v[width], g[width], w[width], d[width];
      load(in + c, v);
      load(slope + c, g);
      load(weight, c, w);
      load(dweight + c, d);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        v[i] = (v[i] - mean) * reciprocal;
        d[i] += g[i] * v[i];
        v[i] = reciprocal * (g[i] * w[i] - level - v[i] * along);
      }
      store(v, out + c);
      store(d, dweight + c);
      if (!centred) return;
      load(dbias + c, d);
#pragma unroll
      for (int i = 0; i < width; ++i) d[i] += g[i];
      store(d, dbias + c);
    });
  }
  sync_block();
  for (std::int64_t c = threadIdx.x; c < columns; c += kBlock) {
    float w = 0, b = 0;
    for (unsigned t = 0; t < team.count(); ++t) {
      w += sums[t * per_team + c];
      if (centred) b += sums[t * per_team + columns + c];
    }
    partial_weight[blockIdx.x * columns + c] = w;
    if (centred) partial_bias[blockIdx.x * columns + c] = b;
  }
}

std::int64_t gradient_blocks(std::int64_t rows, Team team) {
  return std::clamp<std::int64_t>(ceil_div(rows, kBlock / team.size), 1, kGradientBlocks);
}

void norm(const char* name, const ConstHeads& x, ConstArray weight, ConstArray bias, float epsilon, bool centred,
          const Heads& y, NormStatistics saved, cudaStream_t stream) {
  require(x.type == y.type, "norm: x and y must have one type");
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_width(all_wide(weight, bias) && is_wide(x) && is_wide(y), [&](auto width) {
      launch_teams(name, norm_row<width(), T>, rows_in(x), team_for(x.head_dim), stream, rows_in(x), head_rows_as<T>(x),
                   weight, bias, epsilon, centred, head_rows_as<T>(y), saved);
    });
  });
}

void norm_gradient(const char* name, const ConstHeads& x, NormStatistics saved, const ConstHeads& dy, ConstArray weight,
                   bool centred, const Heads& dx, Array dweight, Array dbias, Workspace workspace,
                   cudaStream_t stream) {
  const std::int64_t rows = rows_in(x), columns = x.head_dim;
  if (rows == 0) return;
  require(x.type == dy.type && x.type == dx.type, "norm gradient: x, dy and dx must have one type");
  require(workspace.bytes >= norm_gradient_workspace(rows, columns), "norm gradient: the workspace is too small");
  const Team team = team_for(columns);
  const std::int64_t blocks = gradient_blocks(rows, team), sums = kBlock / team.size * columns * (centred ? 2 : 1);
  auto* partial_weight = static_cast<float*>(workspace.data);
  float* partial_bias = partial_weight + blocks * columns;
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_width(is_wide(weight) && is_wide(x) && is_wide(dy) && is_wide(dx), [&](auto width) {
      launch(name, norm_gradient_rows<width(), T>, dim3(static_cast<unsigned>(blocks)), kBlock,
             kTeamBytes + sums * bytes_of(Type::fp32), stream, team, rows, head_rows_as<T>(x), saved,
             head_rows_as<T>(dy), weight, centred, head_rows_as<T>(dx), partial_weight, partial_bias);
    });
  });
  add_partial_sums(partial_weight, blocks, columns, dweight, stream);
  if (centred) add_partial_sums(partial_bias, blocks, columns, dbias, stream);
}

}  // namespace

void rms_norm(ConstHeads x, ConstArray weight, float epsilon, Heads y, NormStatistics saved, cudaStream_t stream) {
  norm("rms_norm", x, weight, {}, epsilon, false, y, saved, stream);
}

void layer_norm(ConstHeads x, ConstArray weight, ConstArray bias, float epsilon, Heads y, NormStatistics saved,
                cudaStream_t stream) {
  norm("layer_norm", x, weight, bias, epsilon, true, y, saved, stream);
}

std::int64_t norm_gradient_workspace(std::int64_t rows, std::int64_t columns) {
  return 2 * gradient_blocks(rows, team_for(columns)) * columns * bytes_of(Type::fp32);
}

void rms_norm_gradient(ConstHeads x, NormStatistics saved, ConstHeads dy, ConstArray weight, Heads dx, Array dweight,
                       Workspace workspace, cudaStream_t stream) {
  norm_gradient("rms_norm_gradient", x, saved, dy, weight, false, dx, dweight, {}, workspace, stream);
}

void layer_norm_gradient(ConstHeads x, NormStatistics saved, ConstHeads dy, ConstArray weight, Heads dx, Array dweight,
                         Array dbias, Workspace workspace, cudaStream_t stream) {
  norm_gradient("layer_norm_gradient", x, saved, dy, weight, true, dx, dweight, dbias, workspace, stream);
}

}  // namespace orrery::kernels::cuda
