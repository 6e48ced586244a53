// This file finds which layers of a model attend only within a sliding window.
#include <algorithm>

#include <fmt/format.h>

#include "models/families/family.h"

namespace orrery {
namespace {

using nlohmann::json;

constexpr Keys kPattern = {"sliding_window_pattern", "_sliding_window_pattern"};

// Returns the layers that attend to all positions, from a list that has a type for each layer.
std::vector<std::int64_t> full_of_kinds(const Config& config, const json& kinds, std::int64_t layers) {
  if (!kinds.is_array() || static_cast<std::int64_t>(kinds.size()) != layers)
    config.fail("layer_types", fmt::format("a list of {} kinds is needed, one for each layer", layers));
  std::vector<std::int64_t> full;
  for (std::int64_t i = 0; i < layers; ++i) {
    const json& kind = kinds[static_cast<std::size_t>(i)];
    if (kind == "sliding_attention") continue;
    // Layers with Llama 4's "chunked_attention" count as layers with full attention here; read_llama4_keys()
    // (expert_families.cpp) notes that they attend only within chunks.
    if (kind != "full_attention" && kind != "chunked_attention" && kind != "attention")
      config.fail("layer_types", fmt::format("layer {}: {}: layers that are neither full_attention nor "
                                             "sliding_attention are not built; choose another model",
                                             i, kind.dump().substr(0, 40)));
    full.push_back(i);
  }
  return full;
}

// Returns the layers that attend to all positions, from EXAONE's pattern of letters: "LLLG" means three layers with a
// window (local), then one without (global).
std::vector<std::int64_t> full_of_letters(const Config& config, const std::string& letters, std::int64_t layers) {
  if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos)
    config.fail("sliding_window_pattern", "letters L (within the window) and G (all) are needed, or a number");
  std::vector<std::int64_t> full;
  for (std::int64_t i = 0; i < layers; ++i) {
    if (letters[static_cast<std::size_t>(i) % letters.size()] == 'G') full.push_back(i);
  }
  return full;
}

std::vector<std::int64_t> full_layers(const Config& config, const Family& family, std::int64_t layers) {
  if (const json* kinds = config.find({"layer_types"})) return full_of_kinds(config, *kinds, layers);
  std::vector<std::int64_t> full;
  if (family.has(habit::kNoWindow)) {  // Qwen: the layers before max_window_layers attend to all positions
    const std::int64_t whole = std::min(layers, config.count({"max_window_layers"}, 0));
    for (std::int64_t i = 0; i < whole; ++i) full.push_back(i);
    return full;
  }
  const json* pattern = config.find(kPattern);
  if (pattern != nullptr && pattern->is_string()) return full_of_letters(config, config.text(kPattern), layers);
  const std::int64_t every = config.count(kPattern, 1);
  for (std::int64_t i = 0; every > 1 && i < layers; ++i) {
    if ((i + 1) % every == 0) full.push_back(i);
  }
  return full;
}

}  // namespace

std::optional<SlidingWindow> read_window(const Config& config, const Family& family, std::int64_t layers) {
  if (!config.flag({"use_sliding_window"}, !family.has(habit::kNoWindow))) return std::nullopt;
  SlidingWindow window = {.window = config.count({"sliding_window"}, 0)};
  if (window.window == 0) return std::nullopt;
  const std::vector<std::int64_t> full = full_layers(config, family, layers);
  if (static_cast<std::int64_t>(full.size()) == layers) return std::nullopt;
  if (full.empty()) return window;
  window.every = std::max<std::int64_t>(2, full.front() + 1);
  Model rule = {.layers = layers, .sliding_window = window};
  for (std::int64_t i = 0; i < layers; ++i) {
    if (has_window(rule, i) == std::ranges::binary_search(full, i)) window.full_layers = full;
  }
  if (!window.full_layers.empty()) window.every = 1;
  return window;
}

}  // namespace orrery
