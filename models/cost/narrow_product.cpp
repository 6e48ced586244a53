#include "models/cost/narrow_product.h"

#include <algorithm>
#include <cmath>

#include "models/cost/kernel_laws.h"

namespace orrery {

Seconds narrow_product_time(const Gemm& g, const Gpu& gpu, const NarrowProductLaw& law) {
  constexpr double kStepDepth = 64, kWaveColumns = 128;
  constexpr double kBytes = 0.5 + 1.0 / 16;  // of an element: four bits, and 16 elements share a scale of one byte
  const double n = static_cast<double>(g.n) * static_cast<double>(g.batch), k = static_cast<double>(g.k);
  const double waves = std::max(1.0, n / kWaveColumns / gpu.sms);
  const double arithmetic = law.depth_us * waves * k / kStepDepth;
  const double memory = kBytes * n * k / (gpu.memory_GBps * 1e3 * law.memory);
  const double both = std::pow(std::pow(arithmetic, law.overlap) + std::pow(memory, law.overlap), 1 / law.overlap);
  return (law.start_us + both) * kMicrosecond;
}

std::optional<NarrowProductLaw> find_narrow_product_law(std::string_view framework, const Gpu& gpu) {
  for (const KernelFamily<NarrowProductLaw>& family : built_in_kernel_laws().narrow) {
    const bool alike = std::ranges::any_of(family.gpus, [&](const std::string& name) {
      return find_gpu(name).compute_capability / 10 == gpu.compute_capability / 10;
    });
    if (alike && family.framework == framework) return family.law;
  }
  return std::nullopt;
}

}  // namespace orrery
