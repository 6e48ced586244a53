#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "models/spec/spec.h"

namespace orrery {

// A feature that a spec may ask for: the key that asks for it, its name within a sentence, and whether a spec does.
struct Feature {
  std::string_view key, text;
  bool (*asked)(const Spec& spec);
};

// The part of the program that rejects a combination: reading the spec, for values that mean nothing together;
// planning, for what is not implemented, or impossible; execution by CPU and GPU ranks, or by GPU ranks alone; the
// search for strategies.
enum class Limit : std::uint8_t { spec, plan, ranks, gpu_ranks, search };
std::string_view name_of(Limit limit);

// A row of the table of limits: a feature does not work with another one, or if `b` is null not at all. Ranges of
// single values are not here but in check.cpp.
struct Pair {
  const Feature* a;
  const Feature* b;
  std::string_view why, advice;
  Limit which = Limit::plan;
};
std::span<const Pair> combinations();

// The first row that a spec breaks; null if none. Planning also checks the rows of Limit::spec.
const Pair* first_limit(const Spec& spec, Limit which);
// The row as an error message: "strategy.tensor_kind: a grid of tensor ranks (2d, 2.5d, 3d) with experts: not built
// yet; choose 1d". The key is one that the spec gives; refused_key: the file and line of that key, "" if neither is
// given.
std::string refusal(const Spec& spec, const Pair& pair);
std::string refused_key(const Spec& spec, const Pair& pair);

// Throws Error with the file and line and that message if a spec breaks a row.
void refuse_combinations(const Spec& spec, Limit which);

}  // namespace orrery
