#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "models/spec/spec.h"

namespace orrery {

// An option that a spec may use (a property of its model, strategy, software or cluster): the key that sets it, its
// name within a sentence, and a function that tells whether a spec uses it.
struct Feature {
  std::string_view key, text;
  bool (*asked)(const Spec& spec);
};

// Limit says which part of the program rejects a combination. spec: reading the spec, for values that mean nothing
// together; plan: planning, for what is not implemented or impossible; ranks: execution by CPU and GPU ranks;
// gpu_ranks: execution by GPU ranks; search: the search for strategies.
enum class Limit : std::uint8_t { spec, plan, ranks, gpu_ranks, search };
std::string_view name_of(Limit limit);

// One row of the table of rejected combinations: option `a` does not work with option `b`, or does not work at all if
// `b` is null. Allowed ranges of single values are not here but in check.cpp.
struct Pair {
  const Feature* a;
  const Feature* b;
  std::string_view why, advice;
  Limit which = Limit::plan;
};
std::span<const Pair> combinations();

// Returns the first row of the table of rejected combinations that a spec breaks, among the rows for the part `which`
// of the program; null if it breaks none. Planning also checks the rows of Limit::spec.
const Pair* first_limit(const Spec& spec, Limit which);
// refusal() returns the error message for a row of the table that a spec breaks, such as "strategy.tensor_kind: a grid
// of tensor ranks (2d, 2.5d, 3d) with experts: not built yet; choose 1d"; the message begins with a key that the spec
// gives. refused_key() returns the file and line of that key; "" if the spec gives neither option's key.
std::string refusal(const Spec& spec, const Pair& pair);
std::string refused_key(const Spec& spec, const Pair& pair);

// Throws Error with the file and line and the message of refusal() if a spec uses a combination of options that is
// rejected.
void refuse_combinations(const Spec& spec, Limit which);

}  // namespace orrery
