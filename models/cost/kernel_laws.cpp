#include "models/cost/kernel_laws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

// Shapes of tiles that libraries have for 16 and 8 bits, as powers of two (CUTLASS, default_gemm_configuration).
struct TileShape {
  int rows_log2, columns_log2;
};
constexpr std::array<TileShape, 7> kTiles = {{{8, 7}, {7, 8}, {7, 7}, {7, 6}, {6, 7}, {6, 6}, {6, 5}}};
constexpr int kMostSplits_log2 = 4;  // a sum is cut into 1, 2, 4, 8 or 16 parts
constexpr int kDepth_log2 = 6;       // a step of a tile's loop adds 64 elements of the sum

// Numbers that all families share, whose exact values matter little: in brackets stands how far off the rows are that
// laws are fitted to, in the mean of |ln(predicted / measured)| up to 0.4, with the number and after a new fit with
// others. Traffic of one multiprocessor to an L2 cache, GB/s, which counts where it is faster than memory: of A100,
// L40S and RTX PRO 6000, which differ by a tenth, from products with few rows whose weights stay in the cache
// (14.8: 9.0 %; 12: 9.2 %; 18: 9.0 %).
constexpr double kCacheGBps = 14.8;
// Bytes, in caches, at which all traffic of activations goes to memory (1.13: 9.0 %; 0.9: 9.1 %; 1.4: 8.9 %).
constexpr double kCacheUsed = 1.13;
// Time in which clocks begin to fall under load; `heat` is fitted with it (products: 6.4 % with 300, 1000 and 3000;
// attention: 7.8 % with 1000, 8.0 % with 300, 7.8 % with 3000).
constexpr double kHeatingUs = 1000;
constexpr double kGemmLoads = 2;  // bytes of an element in 16 bits
// Bytes of memory traffic for an element of a part of a split sum, which is written and read in 32 bits: half
// of it is taken to stay in the cache (4: 6.4 % and 9.0 % in the two families; 8 bytes of the traffic of
// activations: 6.4 % and 9.1 %).
constexpr double kPartialBytes = 4;
constexpr double kUsPerSecond = 1e6;

// FLOPs in 16 bits that a multiprocessor's tensor cores do in a clock, by compute capability (NVIDIA's whitepapers of
// V100, Turing, A100, Ada, H100 and Blackwell).
double flops_per_clock(const Gpu& gpu) {
  switch (gpu.compute_capability) {
    case 70:
    case 75:
    case 89:
    case 120:
      return 1024;
    case 80:
      return 2048;
    case 90:
      return 4096;
    case 100:
    case 103:
      return 8192;
    default:
      throw Error(fmt::format("{}: laws of kernels do not know compute capability {}", gpu.id, gpu.compute_capability));
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

// The number of parts of 2^log2 that n is cut into, the last one perhaps smaller.
double parts_of(std::int64_t n, int log2) { return std::ceil(std::ldexp(static_cast<double>(n), -log2)); }

// Microseconds of memory traffic of activations, which the cache holds in part.
struct Traffic {
  double memory, cache;  // bytes a microsecond
  double held;
  Traffic(const Gpu& gpu, double fraction)
      : memory(gpu.memory_GBps * 1e3 * fraction),
        cache(std::max(memory, kCacheGBps * 1e3 * gpu.sms)),
        held(held_in_cache(gpu)) {}
  double us(double bytes) const {
    const double missed = std::clamp(2 * bytes / (kCacheUsed * held) - 1, 0.0, 1.0);
    return bytes * ((1 - missed) / cache + missed / memory);
  }
};

// Microseconds of arithmetic whose clocks fall under load.
double heated_us(double us, double heat) { return us * (1 + heat * us / (us + kHeatingUs)); }

// The arithmetic of products, and what it depends on beside their sizes.
struct Arithmetic {
  const Gpu& gpu;
  const ProductLaw& law;
  const Traffic& traffic;
  double width, fraction;  // bytes of an element; fraction of the peak

  double us(const Gemm& g) const {
    const double latency = slower_clock(gpu);
    // FLOPs of a multiprocessor in a microsecond, in the product's precision and in the 16 bits of `intensity`
    const double rate = per_sm(width < kGemmLoads ? Precision::fp8 : Precision::bf16), wide = per_sm(Precision::bf16);
    std::array<double, kMostSplits_log2 + 1> depths{}, sums{};
    for (int split = 0; split <= kMostSplits_log2; ++split) {
      depths[split] = std::ldexp(parts_of(g.k, split + kDepth_log2), kDepth_log2);
      sums[split] = split > 0 ? latency * law.split_us + sum_us(g, split) : 0;
    }
    double best = std::numeric_limits<double>::max();
    for (const TileShape& tile : kTiles) {
      const double rows = 1 << tile.rows_log2, columns = 1 << tile.columns_log2;
      const double waves =
          parts_of(g.m, tile.rows_log2) * parts_of(g.n, tile.columns_log2) * static_cast<double>(g.batch) / gpu.sms;
      const double element =
          std::max({2 * rows * columns / (rate * fraction), (rows + columns) * law.intensity * width / wide,
                    latency * law.depth_us / (1 << kDepth_log2)});
      for (int split = 0; split <= kMostSplits_log2; ++split)
        best = std::min(
            best, counted(waves * (1 << split)) * (latency * law.prologue_us + depths[split] * element) + sums[split]);
    }
    return heated_us(best, law.heat);
  }

 private:
  double per_sm(Precision p) const { return peak_flops(gpu, p) / kUsPerSecond / gpu.sms; }
  double counted(double waves) const {
    return law.smoothing * std::max(1.0, waves) + (1 - law.smoothing) * std::ceil(waves);
  }
  // Microseconds of the traffic of the parts of a split sum.
  double sum_us(const Gemm& g, int split) const {
    const double results = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.batch);
    return std::ldexp(kPartialBytes * results, split) / traffic.memory;
  }
};

}  // namespace

// The L2 cache of A100 and H100 has two parts, and each holds what its multiprocessors read (NVIDIA A100 whitepaper).
double held_in_cache(const Gpu& gpu) {
  const bool parts = gpu.compute_capability == 80 || gpu.compute_capability == 90;
  return gpu.l2_MB * 1048576.0 * (parts ? 0.5 : 1);
}

Seconds product_time(const Gemm& g, bool eight_bit, bool cached, OperandCast cast, const Gpu& gpu,
                     const KernelRates& rates, const ProductLaw& law) {
  const Traffic traffic(gpu, rates.memory);
  const double width = eight_bit ? 1 : kGemmLoads;
  const double arithmetic = Arithmetic{gpu, law, traffic, width, eight_bit ? rates.fp8 : rates.bf16}.us(g);
  const double m = static_cast<double>(g.m) * static_cast<double>(g.batch);  // rows of all products of a batch
  const double n = static_cast<double>(g.n), k = static_cast<double>(g.k);
  const double weights = width * n * k * static_cast<double>(g.batch) / (cached ? traffic.cache : traffic.memory);
  const double moved = weights + traffic.us(static_cast<double>(g.result_bytes) * m * n + width * m * k);
  double us =
      rates.start_us + std::pow(std::pow(arithmetic, law.overlap) + std::pow(moved, law.overlap), 1 / law.overlap);
  if (cast.kernels > 0) us += cast.kernels * law.cast_us + law.cast_part * traffic.us(cast.bytes * m * k);
  return us * kMicrosecond;
}

namespace {

// Returns the queries of a block: 128, but 64 where FlashAttention-2 found that to be faster, for causal heads of 96
// and 128 on Ada (run_mha_fwd_hdim96 and run_mha_fwd_hdim128 in its flash_fwd_launch_template.h).
std::int64_t query_block(const FlashAttention& a, const Gpu& gpu) {
  const bool small = gpu.compute_capability == 89;
  return small && a.pairs < 0 && a.head_dim > 64 && a.head_dim <= 128 ? 64 : 128;
}
// How often keys and values pass through memory: they are written once more on their way into the cache of a server,
// whose kernels are measured (as kCacheGBps: 7.8 %; with 1: 8.5 %, with 3: 8.4 %).
constexpr double kCacheWrites = 2;

}  // namespace

Seconds attention_time(const FlashAttention& a, const Gpu& gpu, const KernelRates& rates, const AttentionLaw& law) {
  if (a.direction != Direction::forward || a.cached > 0 || a.merges)
    throw Error("the law of attention is that of forward without cached tokens and merging");
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  const bool causal = a.pairs < 0;
  const double queries = d(a.batch) * d(a.query), heads = d(a.heads), dims = d(a.head_dim) + d(a.value_dim);
  const double pairs = queries * heads * (keys_per_query(a) + (causal ? law.key_block / 2 : 0));
  const double softmax = law.softmax + law.softmax_slope * flops_per_clock(gpu) / exponentials_per_clock(gpu);
  const double peak = peak_flops(gpu, Precision::bf16) / kUsPerSecond, rate = peak * rates.attention;
  // Exponentials count as FLOPs, so the fraction may exceed 1; the products alone take no less than at the nominal
  // peak.
  const double arithmetic = 2 * pairs * std::max((dims + 2 * softmax) / rate, dims / peak);
  const double waves = d(a.batch) * heads * d(ceil_div(a.query, query_block(a, gpu))) / gpu.sms;
  const double bytes = 2 * queries * dims * (heads * law.result_passes + d(a.kv_heads) * kCacheWrites);
  // A block of queries runs on one multiprocessor, so that less than a wave of them takes as long as one.
  const double blocks = arithmetic * (std::max(waves, 1.0) + rates.attention_tail) / waves;
  return (law.start_us + heated_us(blocks, law.heat) + Traffic(gpu, rates.memory).us(bytes)) * kMicrosecond;
}

}  // namespace orrery
