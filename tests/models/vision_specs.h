#pragma once

// A small vision-language model for tests: two images of 16 patches beside the small text model.
#include <string>

#include <fmt/format.h>

#include "models/load/load_spec.h"
#include "tests/models/plans.h"

namespace orrery::test {

// strategy, model, vision: further keys of these maps.
inline Spec seeing(const std::string& strategy, const std::string& model = "", const std::string& vision = "") {
  const std::string encoder =
      "layers: 2, hidden: 32, heads: 4, feed_forward: 48, patch: 2, merge: 2, positions: 8, rotary: true";
  const auto more = [](const std::string& keys) { return keys.empty() ? "" : ", " + keys; };
  return parse_spec(
      fmt::format("model: {{{}, vision: {{{}{}}}{}}}\nsequence: {{length: 32, images: {{count: 2, patches: 16}}}}\n"
                  "cluster: {{node: dgx-h100, nodes: 8}}\nsoftware: orrery\nstrategy: {{{}{}}}\n",
                  kSmall, encoder, more(vision), more(model),
                  strategy.find("data:") == std::string::npos ? "data: 1, " : "", strategy),
      "test");
}

}  // namespace orrery::test
