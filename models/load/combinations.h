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

// The part of the program that refuses: reading the spec, for values that mean nothing together; planning, for what is
// not built, or cannot be; execution by CPU and GPU ranks, or by GPU ranks alone; the search for strategies.
enum class Limit : std::uint8_t { spec, plan, ranks, gpu_ranks, search };
std::string_view name_of(Limit limit);

// A row of the table of limits: a feature does not go with another one, or, where `b` is null, not by itself. Never a
// range of one value, which is a rule of its own (check.cpp).
struct Pair {
  const Feature* a;
  const Feature* b;
  std::string_view why, advice;
  Limit which = Limit::plan;
};
std::span<const Pair> combinations();

// The first row that a spec breaks; null if none. Planning refuses rows of the spec too.
const Pair* first_limit(const Spec& spec, Limit which);
// The row in a line: "strategy.tensor_kind: a grid of tensor ranks (2d, 2.5d, 3d) with experts: not built yet; choose
// 1d". The key is the one that the spec gives; refused_key: the value's origin, "" if neither is given.
std::string refusal(const Spec& spec, const Pair& pair);
std::string refused_key(const Spec& spec, const Pair& pair);

// Throws Error with that line behind its place where a spec breaks a row.
void refuse_combinations(const Spec& spec, Limit which);

}  // namespace orrery
