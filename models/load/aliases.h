#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/load/tree.h"

namespace orrery {

// An alternative name that other software uses for a key or a value of a spec, the program's input file
// (models/data/aliases.json).
struct AliasRow {
  // The key to whose values the alias applies, such as "strategy.sharding". "strategy" means that the alias is for the
  // name of a key of the section strategy.
  std::string at;
  std::string given;  // the alternative name that a user may give, in lower case, with - instead of _
  std::string name;   // the name that specs use for the key or value instead
};
const std::vector<AliasRow>& alias_rows();

// canonical_key and canonical_value return the spec's own name for a key of the strategy, or for a value of the key
// `at`; a word that is no alias is returned unchanged. Upper and lower case, and - and _, count as equal.
std::string canonical_key(std::string_view given);
std::string canonical_value(std::string_view at, std::string_view given);

// Returns the built-in model that a name on the Hugging Face Hub means ("meta-llama/Llama-3.1-8B-Instruct":
// llama-3.1-8b), or the name itself if there is none. Case, the owner, and words for a variant of the same shape
// (-instruct) are ignored.
std::string canonical_model(std::string_view given);

}  // namespace orrery
