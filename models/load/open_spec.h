#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/load/reference.h"
#include "models/spec/spec.h"

namespace orrery {

// The values from which a search chooses for one key of the strategy, as in search: {tensor: [1, 2, 4]}.
struct SearchRange {
  std::string key;
  std::vector<std::string> values;
  std::string from;  // file and line of the range: "spec.yaml:12"
};

// A spec for a search to complete: given values are read and absent ones have their defaults, but the rules of check()
// need not hold yet.
struct OpenSpec {
  Spec spec;
  std::vector<SearchRange> search;
  std::string path;
  std::vector<std::string> overrides;  // overrides (--set KEY=VALUE) that were applied
};
OpenSpec load_open_spec(const std::string& path, const std::vector<std::string>& overrides = {});
// Reads a spec from text. book: if not null, records the maps of the spec and their keys as they are read.
OpenSpec parse_open_spec(const std::string& text, const std::string& path,
                         const std::vector<std::string>& overrides = {}, SpecKeyBook* book = nullptr);

// Returns whether the user gave the value, in the file or by --set.
bool is_given(const Origin& origin);

// Returns a message about the first rule of check() that a spec breaks, with the line of the key concerned; "" if it
// breaks none.
std::string rule_broken_by(const Spec& spec, const std::string& path);

// Returns the MiB of gradients in a bucket (0 = one bucket for all) that the stack uses by default for the strategy's
// number of ranks, sharding, gradient data type and overlap.
double bucket_habit(const Software& software, const Strategy& strategy);

// Returns whether the stack, by default and with this sharding, reduces gradients during backward.
bool reduces_beside(const Software& software, Sharding sharding);

// Adds a part of a layer ("full", "selective", "mlp", ...; "none" adds nothing) to the parts that are recomputed.
// "selective" means what it means in the software stack. Throws Error listing the known parts.
void add_recompute(Recompute& recompute, std::string_view part, const Software& software);
std::vector<std::string_view> recompute_parts();

}  // namespace orrery
