#include "models/cost/product_kernels.h"

#include <algorithm>
#include <cmath>

#include "models/cost/few_rows.h"

namespace orrery {

namespace {

// GPUs whose peak for each multiprocessor is farther from a measured GPU's are taken for ones whose peak is cut, not
// their clock: H100 PCIe is 12 % below the SXM's by its clock, H20 75 and RTX 4090 (beside L40S) 50 % by their peaks.
constexpr double kSameClock = 0.2;

double peak_of_multiprocessor(const Gpu& gpu) { return peak_flops(gpu, Precision::bf16) / gpu.sms; }

bool is_like(const Gpu& gpu, const std::string& name) {
  const Gpu measured = find_gpu(name);
  return measured.compute_capability == gpu.compute_capability &&
         std::abs(peak_of_multiprocessor(gpu) / peak_of_multiprocessor(measured) - 1) <= kSameClock;
}

// Whether a product reads weights as they are stored, so that nothing widens them.
bool reads_as_stored(const Gemm& g, Precision precision) {
  return !g.weights.narrow() || reads_codes(g.weights, precision);
}

}  // namespace

std::optional<ProductKernels> find_product_kernels(const Gpu& gpu, const KernelLaws& laws) {
  const auto numbers = [&](const std::string& name) -> std::optional<ProductKernels> {
    const auto* family = family_of(laws.products, name);
    const auto rates = laws.rates.find(name);
    if (family == nullptr || rates == laws.rates.end()) return std::nullopt;
    return ProductKernels{rates->second, family->law};
  };
  if (const auto own = numbers(gpu.id)) return own;
  for (const auto& family : laws.products) {
    const auto like = std::ranges::find_if(family.gpus, [&](const std::string& name) { return is_like(gpu, name); });
    if (like != family.gpus.end()) return numbers(*like);
  }
  return std::nullopt;
}

static bool is_plain(const Gemm& g) {
  return g.heads == 0 && g.role == Gemm::Role::output && g.pieces == 1 && !g.accumulate && g.m < kFewRows;
}

bool has_product_law(const Gemm& g, Precision precision) {
  const bool sixteen_bits = precision == Precision::bf16 || precision == Precision::fp16;
  return is_plain(g) && (sixteen_bits || precision == Precision::fp8) && reads_as_stored(g, precision);
}

bool has_narrow_product_law(const Gemm& g, Precision precision) {
  return is_plain(g) && precision == Precision::nvfp4 && reads_as_stored(g, precision);
}

}  // namespace orrery
