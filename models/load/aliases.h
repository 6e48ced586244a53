#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/load/tree.h"

namespace orrery {

// Another name that the field uses for a key or a value of a spec (models/data/aliases.json).
struct AliasRow {
  std::string at;     // key whose value is meant: "strategy.sharding"; "strategy": the name of one of its keys
  std::string given;  // in lower case, with - for _
  std::string name;
};
const std::vector<AliasRow>& alias_rows();

// The spec's own name of a key of the strategy, or of a value at a key; what has no alias comes back unchanged. Case
// and the choice of - or _ do not matter to aliases.
std::string canonical_key(std::string_view given);
std::string canonical_value(std::string_view at, std::string_view given);

// The built-in model that a name of the Hub means ("meta-llama/Llama-3.1-8B-Instruct": llama-3.1-8b), or the name
// itself: letters' case, the owner, and words for a variant of equal shape are left out.
std::string canonical_model(std::string_view given);

}  // namespace orrery
