#include "models/cost/expert_law.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/cost/kernel_laws.h"
#include "models/cost/product_kernels.h"

namespace orrery {
namespace {

constexpr std::int64_t kTileRows[] = {8, 16, 32, 64, 128, 256};
constexpr std::int64_t kTileColumns = 128;
constexpr double kDepth = 64;  // elements of a sum that a step of a tile's loop adds

// Numbers that all laws share: the fraction of the nominal memory bandwidth; and arithmetic c and memory traffic m take
// (c^overlap + m^overlap)^(1/overlap). They are chosen by hand. Trial fits of TensorRT-LLM's nvfp4 and mxfp4 with mxfp8
// on B200 to both and a factor of activations' traffic too were 0.4 and 2 points farther off with few tokens, and 0.3
// and 3 points nearer with more.
constexpr double kMemory = 0.9, kOverlap = 2.5;

// Bytes of an operand's element; 16 elements in nvfp4 share a scale of one byte.
double operand_bytes(Precision p) {
  if (p == Precision::nvfp4) return 0.5 + 1.0 / 16;
  return is_eight_bit(p) ? 1 : 2;
}

// Returns how many tiles an expert's rows are cut into, in the mean. If the experts have unequal numbers of rows, these
// are taken to be spread exponentially (of all spreads with a mean the one that assumes least): the mean of ceil(x) of
// an exponentially distributed x of mean m is 1 / (1 - exp(-1 / m)), half a tile more than m where experts have many
// tiles. With 384 to 512 rows an expert, measured kernels with rows by a power law take 1.21 to 1.26 times as long as
// with even rows (vLLM's and TensorRT-LLM's for w4a16_mxfp4 on H100).
double tiles_of_rows(double rows, double tile, bool even) {
  return even ? std::ceil(rows / tile) : 1 / -std::expm1(-tile / rows);
}

// Microseconds of arithmetic: waves of tiles, each wave as long as a whole one. No tile is done before its loop over
// the sum is; the loops of tiles on one multiprocessor wait together.
double arithmetic_us(const GroupedGemm& g, double rows, double rate, const ExpertLaw& law, int sms) {
  double best = std::numeric_limits<double>::max();
  for (const std::int64_t tile : kTileRows) {
    const double of_expert = tiles_of_rows(rows, static_cast<double>(tile), !g.uneven);
    const double tiles = of_expert * static_cast<double>(g.groups * ceil_div(g.out, kTileColumns));
    const double flops = 2.0 * static_cast<double>(kTileColumns * g.in) * (static_cast<double>(tile) + law.half_rows);
    best = std::min(best, std::ceil(tiles / sms) * (law.prologue_us + flops / rate));
  }
  return std::max(best, law.depth_us * static_cast<double>(g.in) / kDepth);
}

}  // namespace

std::optional<ExpertFormat> expert_format(Precision precision, const WeightFormat& weights) {
  const bool sixteen_bits = precision == Precision::bf16 || precision == Precision::fp16;
  const bool floats = weights.code == WeightCode::nvfp4 || weights.code == WeightCode::mxfp4;
  if (precision == Precision::mxfp8 && weights.code == WeightCode::mxfp4) return ExpertFormat::fp4_fp8;
  if (weights.narrow() && !reads_codes(weights, precision)) {
    if (sixteen_bits && weights.code == WeightCode::int4) return ExpertFormat::int4;
    if (sixteen_bits && floats) return ExpertFormat::fp4;
    return {};
  }
  if (precision == Precision::nvfp4) return ExpertFormat::nvfp4;
  if (precision == Precision::fp8) return weights.group > 0 ? ExpertFormat::fp8_blocks : ExpertFormat::fp8;
  if (sixteen_bits) return ExpertFormat::bf16;
  return {};
}

const ExpertLaw* law_of(const ExpertLaws& laws, Precision precision, const WeightFormat& weights) {
  const auto format = expert_format(precision, weights);
  const auto found = format ? laws.find(*format) : laws.end();
  return found == laws.end() ? nullptr : &found->second;
}

Seconds experts_time(const GroupedGemm& g, Precision precision, const Gpu& gpu, const ExpertLaw& law) {
  const double rows = static_cast<double>(g.rows) / static_cast<double>(g.groups);
  const double rate = peak_flops(gpu, precision) * kMicrosecond / gpu.sms * law.fraction;
  const double arithmetic = arithmetic_us(g, rows, rate, law, gpu.sms);
  const double elements = static_cast<double>(g.groups) * static_cast<double>(g.out) * static_cast<double>(g.in);
  const double weights = g.weights.narrow()
                             ? static_cast<double>(weight_bytes(g.weights, g.groups * g.out, g.in, g.groups))
                             : elements * operand_bytes(precision);
  const double activations = static_cast<double>(g.rows) * (static_cast<double>(g.in) * operand_bytes(precision) +
                                                            static_cast<double>(g.out * g.result_bytes));
  const double traffic = (weights + activations) / (gpu.memory_GBps * 1e3 * kMemory);
  const double us = law.start_us + static_cast<double>(g.passed) * law.passed_ns * 1e-3 +
                    std::pow(std::pow(arithmetic, kOverlap) + std::pow(traffic, kOverlap), 1 / kOverlap);
  return us * kMicrosecond;
}

double peak_share(ExpertFormat format, const Gpu& gpu, const KernelLaws& laws) {
  const auto products = find_product_kernels(gpu, laws);
  const bool four_bits = format == ExpertFormat::nvfp4 || format == ExpertFormat::fp4_fp8;
  if (!products || four_bits) return 1;
  const bool wide = format == ExpertFormat::bf16 || format == ExpertFormat::int4 || format == ExpertFormat::fp4;
  return wide ? products->rates.bf16 : products->rates.fp8;
}

ExpertLaws find_expert_laws(std::string_view framework, const Gpu& gpu) {
  const auto& families = built_in_kernel_laws().experts;
  const auto found = std::ranges::find_if(families, [&](const KernelFamily<ExpertLaws>& family) {
    return family.framework == framework && std::ranges::any_of(family.gpus, [&](const std::string& name) {
             return find_gpu(name).compute_capability == gpu.compute_capability;
           });
  });
  if (found == families.end()) return {};
  ExpertLaws laws = found->law;
  for (auto& [format, law] : laws) law.fraction *= peak_share(format, gpu, built_in_kernel_laws());
  std::erase_if(laws, [](const auto& law) { return law.second.fraction == 0; });  // products that the GPU does not have
  return laws;
}

}  // namespace orrery
