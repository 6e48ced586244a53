#include "models/cost/expert_law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "models/cost/kernel_laws.h"

namespace orrery {
namespace {

constexpr std::int64_t kTileRows[] = {8, 16, 32, 64, 128, 256};
constexpr std::int64_t kTileColumns = 128;

// Bytes of an operand's element; 16 elements in nvfp4 share a scale of one byte.
double operand_bytes(Precision p) {
  if (p == Precision::nvfp4) return 0.5 + 1.0 / 16;
  return is_eight_bit(p) ? 1 : 2;
}

// Microseconds of arithmetic: waves of tiles, each wave as long as a whole one.
double arithmetic_us(const GroupedGemm& g, double rows, double rate, const ExpertLaw& law, int sms) {
  double best = std::numeric_limits<double>::max();
  for (const std::int64_t tile : kTileRows) {
    const auto of_expert = static_cast<std::int64_t>(std::ceil(rows / static_cast<double>(tile)));
    const double tiles = static_cast<double>(g.groups * of_expert * ceil_div(g.out, kTileColumns));
    const double flops = 2.0 * static_cast<double>(kTileColumns * g.in) * (static_cast<double>(tile) + law.half_rows);
    best = std::min(best, std::ceil(tiles / sms) * (law.prologue_us + flops / rate));
  }
  return best;
}

}  // namespace

ExpertRate rate_of(const ExpertLaw& law, Precision precision, const WeightFormat& weights) {
  const bool sixteen_bits = precision == Precision::bf16 || precision == Precision::fp16;
  if (weights.narrow() && !reads_codes(weights, precision)) {
    if (!sixteen_bits) return {};
    if (weights.code == WeightCode::int4) return {law.int4, law.int4_start_us};
    if (weights.code == WeightCode::nvfp4) return {law.fp4, law.fp4_start_us};
    return {};
  }
  if (precision == Precision::nvfp4) return {law.nvfp4, law.nvfp4_start_us};
  if (precision == Precision::fp8)
    return weights.group > 0 ? ExpertRate{law.fp8_blocks, law.fp8_blocks_start_us}
                             : ExpertRate{law.fp8, law.fp8_start_us};
  if (sixteen_bits) return {law.bf16, law.bf16_start_us};
  return {};
}

Seconds experts_time(const GroupedGemm& g, Precision precision, const Gpu& gpu, const ExpertLaw& law) {
  const double rows = static_cast<double>(g.rows) / static_cast<double>(g.groups);
  const ExpertRate of = rate_of(law, precision, g.weights);
  const double rate = peak_flops(gpu, precision) * kMicrosecond / gpu.sms * of.fraction;
  const double arithmetic = arithmetic_us(g, rows, rate, law, gpu.sms);
  const double elements = static_cast<double>(g.groups) * static_cast<double>(g.out) * static_cast<double>(g.in);
  const double weights = g.weights.narrow()
                             ? static_cast<double>(weight_bytes(g.weights, g.groups * g.out, g.in, g.groups))
                             : elements * operand_bytes(precision);
  const double activations = static_cast<double>(g.rows) * (static_cast<double>(g.in) * operand_bytes(precision) +
                                                            static_cast<double>(g.out * g.result_bytes));
  const double traffic = (weights + law.traffic * activations) / (gpu.memory_GBps * 1e3 * law.memory);
  return (of.start_us + std::pow(std::pow(arithmetic, law.overlap) + std::pow(traffic, law.overlap), 1 / law.overlap)) *
         kMicrosecond;
}

const ExpertLaw* find_expert_law(std::string_view framework, const Gpu& gpu) {
  const auto& families = built_in_kernel_laws().experts;
  const auto found = std::ranges::find_if(families, [&](const KernelFamily<ExpertLaw>& family) {
    return family.framework == framework && std::ranges::any_of(family.gpus, [&](const std::string& name) {
             return find_gpu(name).compute_capability == gpu.compute_capability;
           });
  });
  return found == families.end() ? nullptr : &found->law;
}

}  // namespace orrery
