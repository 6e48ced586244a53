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
  std::string from;  // file and line of the key in the spec: "spec.yaml:12"
};

// A spec that a search completes: given values are read and absent ones have their defaults, but the values need not
// obey the rules of check() yet.
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

// Returns whether the user gave the value of a spec's key, in the file or by --set, so that it is no default.
bool is_given(const Origin& origin);

// Returns whether a spec states strategy.micro_batch.
bool states_micro_batch(const Spec& spec);
// Gives a spec that generates text another batch (a multiple of strategy.data), and the micro-batch that follows from
// it unless the spec states one.
void set_batch(Spec& spec, std::int64_t batch);

// Returns the error message for the first rule of check() that a spec breaks, with the line of the key that the rule is
// about; "" if the spec breaks no rule.
std::string rule_broken_by(const Spec& spec, const std::string& path);

// Returns the MiB of gradients in a bucket (0 = one bucket for all) that the stack uses by default for the strategy's
// number of ranks, sharding, gradient data type and overlap.
double bucket_habit(const Software& software, const Strategy& strategy);

// Returns whether a software stack, by default and with this sharding, overlaps the reduction of gradients with
// backward.
bool reduces_beside(const Software& software, Sharding sharding);

// Adds one name from the spec ("full", "selective", "mlp", ...) to the parts of a layer that are recomputed; "none"
// adds nothing. The software stack decides what "selective" means. Throws Error listing the known names.
void add_recompute(Recompute& recompute, std::string_view part, const Software& software);
std::vector<std::string_view> recompute_parts();

}  // namespace orrery
