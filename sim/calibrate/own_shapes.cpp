#include "sim/calibrate/own_shapes.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

// number of steps to run; those after the warm-up are measured, and the middle half of them counts
constexpr std::int64_t kSteps = 14;

using ProductShapes = std::set<std::pair<std::string, std::vector<double>>>;

// The shapes of a plan's matrix products and attention ops, which take nearly all of a step's time. They depend on the
// model's dimensions.
ProductShapes product_shapes(const Plan& plan) {
  ProductShapes shapes;
  for (const Op& op : plan.ops) {
    if (!std::holds_alternative<Gemm>(op.work) && !std::holds_alternative<GroupedGemm>(op.work) &&
        !std::holds_alternative<FlashAttention>(op.work))
      continue;
    WorkShape shape = shape_of(op.work, plan.element_bytes);
    shapes.emplace(std::move(shape.kind), std::move(shape.sizes));
  }
  return shapes;
}

// Whether the spec with these overrides is valid and its plan has every shape of `all` (matrix products and attention).
bool holds(const std::string& path, const std::vector<std::string>& overrides, const ProductShapes& all) {
  try {
    const ProductShapes some = product_shapes(make_plan(load_spec(path, overrides)));
    return std::includes(some.begin(), some.end(), all.begin(), all.end());
  } catch (const Error&) {  // no such step is possible: the schedule needs more layers or micro-batches
    return false;
  }
}

}  // namespace

CalibrationSpec own_shapes(const std::string& path, const std::string& device) {
  const Spec spec = load_spec(path);
  const Strategy& s = spec.strategy;
  const ProductShapes all = product_shapes(make_plan(spec));
  const std::int64_t stages = s.pipeline * std::max<std::int64_t>(1, s.virtual_stages), replicas = s.data;
  const std::int64_t most = s.global_batch / std::max<std::int64_t>(1, s.micro_batch * replicas);
  CalibrationSpec result{.name = std::filesystem::path(path).stem().string(), .path = path, .steps = kSteps};
  result.composed = device == "cuda" && spec.gpus > 1;
  for (std::int64_t layers = std::min(stages, spec.model.layers); layers < spec.model.layers; layers += stages) {
    for (const std::int64_t micro_batches : {std::min<std::int64_t>(most, 2), std::min(most, 2 * s.pipeline)}) {
      const std::vector<std::string> overrides = {
          fmt::format("model.layers={}", layers),
          fmt::format("strategy.global_batch={}", s.micro_batch * replicas * micro_batches)};
      if (!holds(path, overrides, all)) continue;
      result.overrides = overrides;
      return result;
    }
  }
  return result;  // no shorter step has all matrix products, so the whole step is measured
}

}  // namespace orrery
