#include "sim/launch/model_values.h"

#include <fmt/format.h>

namespace orrery {

std::vector<SpecValue> model_values(const Model& m, const std::string& path) {
  std::vector<SpecValue> values = {{"model.base", path, Said::stated, path}};
  const auto add = [&](std::string_view key, std::int64_t value) {
    if (value > 0) values.push_back({"model." + std::string(key), fmt::format("{}", value), Said::stated, path});
  };
  const auto flag = [&](std::string_view key, bool value) {
    values.push_back({"model." + std::string(key), value ? "true" : "false", Said::stated, path});
  };
  add("layers", m.layers);
  add("hidden", m.hidden);
  add("heads", m.heads);
  add("kv_heads", m.kv_heads);
  add("head_dim", m.head_dim);
  add("feed_forward", m.feed_forward);
  add("vocab", m.vocab);
  flag("gated", m.gated);
  flag("tied_embeddings", m.tied_embeddings);
  if (!m.moe) return values;
  add("moe.experts", m.moe->experts);
  add("moe.top_k", m.moe->top_k);
  add("moe.feed_forward", m.moe->feed_forward);
  add("moe.shared_feed_forward", m.moe->shared_feed_forward);
  return values;
}

}  // namespace orrery
