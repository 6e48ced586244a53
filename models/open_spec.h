#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/spec.h"

namespace orrery {

// The values among which a search chooses a key of the strategy: search: {tensor: [1, 2, 4]}.
struct SearchRange {
  std::string key;
  std::vector<std::string> values;
  std::string from;  // "spec.yaml:12"
};

// A spec that a search fills in: values are read and absent ones have their defaults, but the rules of check() need not
// hold yet.
struct OpenSpec {
  Spec spec;
  std::vector<SearchRange> search;
};
OpenSpec load_open_spec(const std::string& path, const std::vector<std::string>& overrides = {});
OpenSpec parse_open_spec(const std::string& text, const std::string& path,
                         const std::vector<std::string>& overrides = {});

// Adds a part of a layer ("full", "selective", "mlp", ...; "none" adds nothing) to what is recomputed, as the stack
// does it. Throws Error listing the known parts.
void add_recompute(Recompute& recompute, std::string_view part, const Software& software);

}  // namespace orrery
