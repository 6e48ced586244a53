#include "sim/launch/graph_scope.h"

#include <fmt/format.h>

namespace orrery {

// Returns the scope (kGraphScopes) of graphs that hold the named parts of a layer; "" where none of the names is known.
static std::string scope_of(const std::string& names) {
  const auto has = [&](std::string_view name) { return names.find(name) != std::string::npos; };
  if (has("full_iteration")) return "step";
  if (names.empty() || names == "[]") return "layer";
  if (has("attn")) return has("moe_router") ? "attention_and_router" : "attention";
  return has("moe_router") ? "router" : "";
}

void resolve_graphs(SpecValues& v, std::vector<std::string>& remarks) {
  const SpecValue impl = v.take("launch.graph_impl"), scope = v.take("launch.graph_scope");
  if (impl.key.empty() && scope.key.empty()) return;
  const std::string& from = impl.key.empty() ? scope.from : impl.from;
  if (impl.value == "none") return v.set("software.cuda_graphs", "false", Said::stated, from);
  const std::string found = impl.value == "full_iteration" ? "step" : scope_of(scope.value);
  if (found.empty())
    return remarks.push_back(
        fmt::format("{}: graphs of '{}' are not modelled: taken as no graphs", scope.from, scope.value));
  v.set("software.cuda_graphs", "true", Said::stated, from);
  v.set("software.cuda_graph_scope", found, Said::stated, scope.key.empty() ? from : scope.from);
}

}  // namespace orrery
