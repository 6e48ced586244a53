#include "models/cost/product_kernels.h"

#include <algorithm>

namespace orrery {

std::optional<ProductKernels> find_product_kernels(const Gpu& gpu) {
  const KernelLaws& laws = built_in_kernel_laws();
  const auto numbers = [&](const std::string& name) -> std::optional<ProductKernels> {
    const auto* family = family_of(laws.products, name);
    const auto rates = laws.rates.find(name);
    if (family == nullptr || rates == laws.rates.end()) return std::nullopt;
    return ProductKernels{rates->second, family->law};
  };
  if (const auto own = numbers(gpu.id)) return own;
  for (const auto& family : laws.products) {
    const auto like = std::ranges::find_if(family.gpus, [&](const std::string& name) {
      return find_gpu(name).compute_capability == gpu.compute_capability;
    });
    if (like != family.gpus.end()) return numbers(*like);
  }
  return std::nullopt;
}

// As many rows wait for the weights on every GPU; with more, clocks under a load of minutes decide, which bursts do not
// tell.
constexpr std::int64_t kFewRows = 64;

bool has_product_law(const Gemm& g, Precision precision) {
  const bool sixteen_bits = precision == Precision::bf16 || precision == Precision::fp16;
  const bool plain = g.heads == 0 && g.role == Gemm::Role::output && g.pieces == 1 && !g.accumulate;
  return plain && sixteen_bits && !g.weights.narrow() && g.m < kFewRows;
}

}  // namespace orrery
