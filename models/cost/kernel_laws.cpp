#include "models/cost/kernel_laws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace orrery {
namespace {

// Shapes of tiles that libraries have for 16 and 8 bits, as powers of two (CUTLASS, default_gemm_configuration).
struct TileShape {
  int rows_log2, columns_log2;
};
constexpr std::array<TileShape, 7> kTiles = {{{8, 7}, {7, 8}, {7, 7}, {7, 6}, {6, 7}, {6, 6}, {6, 5}}};
constexpr int kMostSplits_log2 = 4;  // a sum is cut into 1, 2, 4, 8 or 16 parts
constexpr int kDepth_log2 = 6;       // a step of a tile's loop adds 64 elements of the sum

// Traffic of one multiprocessor to an L2 cache that is faster than memory, GB/s: of A100, L40S and RTX PRO 6000, which
// differ by a tenth (products with few rows whose weights stay in the cache).
constexpr double kCacheGBps = 14.8;
constexpr double kCacheUsed = 1.13;  // bytes, in caches, at which all traffic of activations goes to memory
constexpr double kHeatingUs = 1000;  // time in which clocks begin to fall under load
constexpr double kGemmLoads = 2;     // bytes of an element in 16 bits
constexpr double kUsPerSecond = 1e6;

// FLOPs in 16 bits that a multiprocessor's tensor cores do in a clock, by compute capability (NVIDIA's whitepapers of
// A100, Ada, H100 and Blackwell).
double flops_per_clock(const Gpu& gpu) {
  switch (gpu.compute_capability) {
    case 80:
      return 2048;
    case 90:
      return 4096;
    case 100:
    case 103:
      return 8192;
    default:
      return 1024;
  }
}

// Exponentials that a multiprocessor does in a clock (NVIDIA, CUDA C++ Programming Guide, throughput of arithmetic
// instructions; twice as many on Blackwell Ultra).
double exponentials_per_clock(const Gpu& gpu) { return gpu.compute_capability == 103 ? 32 : 16; }

// Returns how much longer than at 2 GHz a latency is, which is a number of clocks.
double slower_clock(const Gpu& gpu) {
  const double clock = peak_flops(gpu, Precision::bf16) / (gpu.sms * flops_per_clock(gpu));
  return 2e9 / clock;
}

std::int64_t up(std::int64_t n, int log2) { return (n + (std::int64_t{1} << log2) - 1) >> log2; }

double cache_bytes(const Gpu& gpu) {
  // The L2 cache of A100 and H100 has two parts, and each holds what its multiprocessors read (NVIDIA A100 whitepaper).
  const bool parts = gpu.compute_capability == 80 || gpu.compute_capability == 90;
  return gpu.l2_MB * 1048576.0 * (parts ? 0.5 : 1);
}

// Microseconds of memory traffic of activations, which the cache holds in part.
struct Traffic {
  double memory, cache;  // bytes a microsecond
  double held;
  Traffic(const Gpu& gpu, double fraction)
      : memory(gpu.memory_GBps * 1e3 * fraction),
        cache(std::max(memory, kCacheGBps * 1e3 * gpu.sms)),
        held(cache_bytes(gpu)) {}
  double us(double bytes) const {
    const double missed = std::clamp(2 * bytes / (kCacheUsed * held) - 1, 0.0, 1.0);
    return bytes * ((1 - missed) / cache + missed / memory);
  }
};

// Microseconds of arithmetic whose clocks fall under load.
double heated_us(double us, double heat) { return us * (1 + heat * us / (us + kHeatingUs)); }

// Microseconds of the arithmetic of a product: the fastest shape of tile and number of parts.
double arithmetic_us(const Gemm& g, double peak, double fraction, double width, double partial_rate, const Gpu& gpu,
                     const ProductLaw& law) {
  const double per_sm = peak / kUsPerSecond / gpu.sms, latency = slower_clock(gpu);
  double best = std::numeric_limits<double>::max();
  for (const TileShape& tile : kTiles) {
    const double rows = 1 << tile.rows_log2, columns = 1 << tile.columns_log2;
    const std::int64_t tiles = up(g.m, tile.rows_log2) * up(g.n, tile.columns_log2) * g.batch;
    const double element =
        std::max({2 * rows * columns / (per_sm * fraction), (rows + columns) * law.intensity * width / per_sm,
                  latency * law.depth_us / (1 << kDepth_log2)});
    for (int split = 0; split <= kMostSplits_log2; ++split) {
      const double waves = static_cast<double>(tiles << split) / gpu.sms;
      const double counted = law.smoothing * std::max(1.0, waves) + (1 - law.smoothing) * std::ceil(waves);
      const double depth = static_cast<double>(up(g.k, split + kDepth_log2) << kDepth_log2);
      double us = counted * (latency * law.prologue_us + depth * element);
      if (split > 0)
        us += latency * law.split_us + 8.0 * static_cast<double>(g.m * g.n * g.batch << split) / (2 * partial_rate);
      best = std::min(best, us);
    }
  }
  return heated_us(best, law.heat);
}

}  // namespace

Seconds product_time(const Gemm& g, bool eight_bit, bool cached, OperandCast cast, const Gpu& gpu,
                     const KernelRates& rates, const ProductLaw& law) {
  const Traffic traffic(gpu, rates.memory);
  const double width = eight_bit ? 1 : kGemmLoads;
  const double peak = peak_flops(gpu, eight_bit ? Precision::fp8 : Precision::bf16);
  const double m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
  const double arithmetic = arithmetic_us(g, peak, eight_bit ? rates.fp8 : rates.bf16, width, traffic.memory, gpu, law);
  const double weights = width * n * k / (cached ? traffic.cache : traffic.memory);
  const double moved = weights + traffic.us(static_cast<double>(g.result_bytes) * m * n + width * m * k);
  double us =
      rates.start_us + std::pow(std::pow(arithmetic, law.overlap) + std::pow(moved, law.overlap), 1 / law.overlap);
  if (cast.kernels > 0) us += cast.kernels * law.cast_us + law.cast_part * traffic.us(cast.bytes * m * k);
  return us * kMicrosecond;
}

namespace {

constexpr std::int64_t kQueryBlock = 128;  // queries of a block (FlashAttention-2, heads of 128)
// Keys and values are read and written once more on their way into the cache of a server, whose kernels are measured.
constexpr double kCacheWrites = 2;

}  // namespace

Seconds attention_time(const FlashAttention& a, const Gpu& gpu, const KernelRates& rates, const AttentionLaw& law) {
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  const double queries = d(a.batch) * d(a.query), heads = d(a.heads), dim = d(a.head_dim);
  const double pairs = queries * heads * (keys_per_query(a) + law.key_block / 2);
  const double softmax = law.softmax + law.softmax_slope * flops_per_clock(gpu) / exponentials_per_clock(gpu);
  const double rate = peak_flops(gpu, Precision::bf16) / kUsPerSecond * rates.attention;
  const double arithmetic = 4 * pairs * (dim + softmax) / rate;
  const double waves = d(a.batch * a.heads * ceil_div(a.query, kQueryBlock)) / gpu.sms;
  const double bytes = 2 * queries * dim * (2 * heads * law.result_passes + 2 * d(a.kv_heads) * kCacheWrites);
  const double blocks = arithmetic * (1 + rates.attention_tail / waves);
  return (law.start_us + heated_us(blocks, law.heat) + Traffic(gpu, rates.memory).us(bytes)) * kMicrosecond;
}

}  // namespace orrery
