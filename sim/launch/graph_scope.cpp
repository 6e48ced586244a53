#include "sim/launch/graph_scope.h"

#include <algorithm>

#include <fmt/format.h>

namespace orrery {
namespace {

// Splits a list, written with spaces, commas or brackets, into its words.
std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char c : list) {
    if (std::string_view(" ,[]'\"").find(c) == std::string_view::npos)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Returns the scope (kGraphScopes) of graphs that hold the named parts of a layer; "" where they hold nothing that is
// modelled. Words that say more are remarked on.
std::string scope_of(const SpecValue& names, std::vector<std::string>& remarks) {
  const std::vector<std::string> words = words_of(names.value);
  const auto has = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
  for (const std::string& word : words) {
    const auto known = {"full", "full_iteration", "full_iteration_inference", "attn", "moe_router", "moe_preprocess"};
    if (std::ranges::find(known, word) == std::end(known))
      remarks.push_back(fmt::format("{}: graphs of '{}' are not modelled: taken as none", names.from, word));
  }
  if (has("full_iteration")) return "step";
  if (words.empty() || has("full")) return "layer";
  if (has("attn")) return has("moe_router") ? "attention_and_router" : "attention";
  return has("moe_router") ? "router" : "";
}

}  // namespace

void resolve_graphs(SpecValues& v, std::vector<std::string>& remarks) {
  const SpecValue impl = v.take("launch.graph_impl"), scope = v.take("launch.graph_scope");
  if (impl.key.empty()) return;  // the default is none, whatever the scope
  const std::string found = impl.value == "none"             ? ""
                            : impl.value == "full_iteration" ? "step"
                                                             : scope_of(scope, remarks);
  v.set("software.cuda_graphs", found.empty() ? "false" : "true", Said::stated, impl.from);
  if (!found.empty())
    v.set("software.cuda_graph_scope", found, Said::stated, scope.key.empty() ? impl.from : scope.from);
}

}  // namespace orrery
