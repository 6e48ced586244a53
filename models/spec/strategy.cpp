#include "models/spec/strategy.h"

#include <algorithm>
#include <numeric>

#include "models/base/names.h"

namespace orrery {
std::int64_t Strategy::first_position(std::int64_t stage) const {
  if (stage_replicas.empty()) return stage;
  const auto end = stage_replicas.begin() + std::min<std::int64_t>(stage, std::ssize(stage_replicas));
  return std::accumulate(stage_replicas.begin(), end, std::int64_t{0});
}

int Optimizer::moments() const {
  switch (kind) {
    case OptimizerKind::adamw:
    case OptimizerKind::adam:
      return 2;
    case OptimizerKind::lion:
    case OptimizerKind::muon:
      return 1;
    case OptimizerKind::sgd:
    case OptimizerKind::adafactor:
      break;
  }
  return 0;
}

std::int64_t grid_side(const Strategy& s) {
  const std::int64_t depth = s.tensor_kind == "2.5d" ? s.tensor_depth : 1;
  for (std::int64_t q = 2; q * q <= s.tensor; ++q) {
    if (q * q * (s.tensor_kind == "3d" ? q : depth) == s.tensor) return q;
  }
  return 0;
}

bool is_quantised(std::string_view parameter, std::int64_t in, QuantisedLayers layers) {
  const auto of = [&](std::string_view prefix) { return parameter.starts_with(prefix); };
  const bool attention = layers == QuantisedLayers::all, dense = layers != QuantisedLayers::experts;
  return in > 1 &&
         ((attention && of("attention.")) || (dense && (of("mlp.") || of("moe.shared."))) || of("moe.experts."));
}

}  // namespace orrery
