// This file says which weights do not train: those of frozen parts of the model and, with adapters (LoRA), all but the
// adapters.
#include <algorithm>

#include "models/base/narrow.h"
#include "models/spec/vision.h"

namespace orrery {
namespace {

bool trains(const Model& m, const std::vector<Parameter>& list) {
  return std::ranges::any_of(list, [&](const Parameter& p) { return !is_frozen(m, p.name); });
}

// Returns the part of the model (one of kFrozenParts, such as "attention" or "mlp") that a weight belongs to, by the
// weight's name.
std::string_view part_of(std::string_view parameter) {
  if (parameter.find("norm") != std::string_view::npos) return "norm";
  for (const std::string_view part : kFrozenParts) {
    if (parameter.starts_with(part)) return part;
  }
  return "head";
}

}  // namespace

bool is_frozen(const Model& m, std::string_view parameter) {
  if (parameter.find(".lora_") != std::string_view::npos) return false;
  return m.lora || std::ranges::find(m.frozen, part_of(parameter)) != m.frozen.end();
}

bool is_nf4(const Model& m, std::string_view parameter, std::int64_t in) {
  const std::string_view part = part_of(parameter);
  return m.lora && m.lora->nf4 && in > 1 && is_frozen(m, parameter) && (part == "attention" || part == "mlp");
}

bool trains_below(const Model& m, std::int64_t layer) {
  if (!has_frozen(m) || trains(m, embedding_parameters(m, 1))) return true;
  if (vision_trains(m) && !m.bidirectional) return true;
  for (std::int64_t l = 0; l < layer; ++l) {
    if (trains(m, layer_parameters(m, l))) return true;
  }
  return false;
}

std::int64_t nf4_bytes(std::int64_t elements) { return narrow_bytes(kNf4Format, elements); }

}  // namespace orrery
