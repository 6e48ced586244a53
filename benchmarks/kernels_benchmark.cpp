// Measures the speed of CPU kernels on one thread: in GFLOP/s for matrix products and attention (causal attention
// counts half of the square of scores), in GB/s for kernels that only move data.

#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/update.h"

namespace orrery::kernels {
namespace {

std::vector<float> filled(std::int64_t n) {
  std::vector<float> x(n);
  for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 17) / 17 - 0.5F;
  return x;
}

void count(benchmark::State& state, const char* name, double amount) {
  state.counters[name] = benchmark::Counter(amount * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void kernels_linear(benchmark::State& state) {
  products_on_one_thread();
  const std::int64_t rows = 512, n = state.range(0);
  const std::vector<float> x = filled(rows * n), w = filled(n * n);
  std::vector<float> y(rows * n);
  for (auto _ : state) {
    linear(matrix(x.data(), rows, n), matrix(w.data(), n, n), nullptr, matrix(y.data(), rows, n));
    benchmark::ClobberMemory();
  }
  count(state, "GFLOP/s", 2.0 * static_cast<double>(rows * n * n));
}
BENCHMARK(kernels_linear)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

// The size of an attention benchmark: one sequence, 8 query heads, 4 key heads and 4 value heads, each 64 columns wide;
// a row of the packed buffer holds the 16 x 64 columns of one token.
struct AttentionCase {
  explicit AttentionCase(std::int64_t s) : sequence(s) { products_on_one_thread(); }
  Heads<float> part(std::vector<float>& x, std::int64_t first, std::int64_t heads) const {
    return heads_of(matrix(x.data(), sequence, 16 * 64), 1, first, heads, 64);
  }
  double flops() const { return 2.0 * 8 * 64 * 2 * static_cast<double>(sequence * sequence) / 2; }

  std::int64_t sequence;
  std::vector<float> qkv = filled(sequence * 16 * 64), out = filled(sequence * 16 * 64),
                     gradient = filled(sequence * 16 * 64);
  std::vector<float> lse = std::vector<float>(8 * sequence);
};

void kernels_attention(benchmark::State& state) {
  AttentionCase c(state.range(0));
  for (auto _ : state) {
    attention(c.part(c.qkv, 0, 8), c.part(c.qkv, 8, 4), c.part(c.qkv, 12, 4), 0.125F, {}, c.part(c.out, 0, 8),
              c.lse.data());
  }
  count(state, "GFLOP/s", c.flops());
}
BENCHMARK(kernels_attention)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

void kernels_attention_gradient(benchmark::State& state) {
  AttentionCase c(state.range(0));
  const auto q = c.part(c.qkv, 0, 8), k = c.part(c.qkv, 8, 4), v = c.part(c.qkv, 12, 4), out = c.part(c.out, 0, 8);
  attention(q, k, v, 0.125F, {}, out, c.lse.data());
  for (auto _ : state) {
    attention_gradient({q, k, v, out, c.lse.data()}, out, 0.125F, {}, c.part(c.gradient, 0, 8),
                       c.part(c.gradient, 8, 4), c.part(c.gradient, 12, 4));
  }
  count(state, "GFLOP/s", 2.5 * c.flops());
}
BENCHMARK(kernels_attention_gradient)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

// Benchmarks of GB/s work on float arrays of kRows x kColumns, of kArray bytes. They count the fewest bytes that a
// kernel must move: each operand once.
constexpr std::int64_t kRows = 1024, kColumns = 1024;
constexpr double kArray = 4.0 * kRows * kColumns;

void kernels_rms_norm(benchmark::State& state) {
  const std::vector<float> x = filled(kRows * kColumns), w = filled(kColumns);
  std::vector<float> y(x.size()), reciprocal(kRows);
  for (auto _ : state) {
    rms_norm(matrix(x.data(), kRows, kColumns), w.data(), 1e-5F, matrix(y.data(), kRows, kColumns),
             {reciprocal.data()});
  }
  count(state, "GB/s", 2 * kArray);
}
BENCHMARK(kernels_rms_norm)->Unit(benchmark::kMillisecond);

void kernels_swiglu(benchmark::State& state) {
  const std::vector<float> x = filled(2 * kRows * kColumns);
  std::vector<float> y(kRows * kColumns);
  for (auto _ : state) swiglu(matrix(x.data(), kRows, 2 * kColumns), matrix(y.data(), kRows, kColumns));
  count(state, "GB/s", 3 * kArray);
}
BENCHMARK(kernels_swiglu)->Unit(benchmark::kMillisecond);

void kernels_gelu(benchmark::State& state) {
  const std::vector<float> x = filled(kRows * kColumns);
  std::vector<float> y(x.size());
  for (auto _ : state) gelu(matrix(x.data(), kRows, kColumns), nullptr, matrix(y.data(), kRows, kColumns));
  count(state, "GB/s", 2 * kArray);
}
BENCHMARK(kernels_gelu)->Unit(benchmark::kMillisecond);

void kernels_adamw(benchmark::State& state) {
  const std::vector<float> gradient = filled(kRows * kColumns);
  std::vector<float> weights = filled(kRows * kColumns), moment1(weights.size()), moment2(weights.size());
  float* const no_copy = nullptr;
  for (auto _ : state) {
    update({}, {}, kRows * kColumns, gradient.data(), weights.data(), moment1.data(), moment2.data(), no_copy);
  }
  count(state, "GB/s", 7 * kArray);
}
BENCHMARK(kernels_adamw)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::kernels
