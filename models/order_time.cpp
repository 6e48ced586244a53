#include "models/order_time.h"

#include <algorithm>
#include <variant>

namespace orrery {

double order_time(const Op& op, Bytes width, const Gpu& gpu) {
  const bool known = !gpu.tflops.empty() && gpu.memory_GBps > 0;
  const auto* copy = std::get_if<PlaceCopy>(&op.work);
  if (copy != nullptr && copy->from != copy->to) return 0;
  const Cost cost = cost_of(op.work, width);
  const auto* c = std::get_if<Collective>(&op.work);
  if (known && c != nullptr) return static_cast<double>(c->bytes) / std::max(gpu.nvlink_GBps, gpu.pcie_GBps);
  if (!known) return cost.flops * 1e-3;
  return 1e9 * std::max(cost.flops / peak_flops(gpu, op.precision), cost.bytes / (gpu.memory_GBps * 1e9));
}

}  // namespace orrery
