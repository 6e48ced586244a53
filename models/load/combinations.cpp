#include "models/load/combinations.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/combination_table.h"
#include "models/load/features.h"
#include "models/load/open_spec.h"

namespace orrery {
namespace {

// Returns the origin (file and line) of a key that the spec gives, or of a key inside that key's map, such as
// "strategy.offload.optimizer.device" for "strategy.offload"; null if the spec gives neither.
const Origin* given(const Spec& spec, std::string_view key) {
  for (const Origin& o : spec.origins) {
    const bool inside = o.key.starts_with(key) && (o.key.size() == key.size() || o.key[key.size()] == '.');
    if (inside && is_given(o)) return &o;
  }
  return nullptr;
}

// Returns the name of the spec's file, taken from the origins of its values; "" if all values are given by --set.
std::string file_of(const Spec& spec) {
  const auto in_file = [](const Origin& o) { return is_given(o) && o.from != "--set"; };
  const auto found = std::ranges::find_if(spec.origins, in_file);
  return found == spec.origins.end() ? "" : found->from.substr(0, found->from.rfind(':'));
}

bool asks(const Spec& spec, const Pair& pair) {
  return pair.a->asked(spec) && (pair.b == nullptr || pair.b->asked(spec));
}

// Returns the section of a spec that describes the model that breaks a row of the table: the one that trains, whose
// section a reference shares, or its teacher.
std::string section_of_model(const Spec& spec, const Pair& pair) {
  const bool of_teacher = !asks(spec, pair) && spec.second->role == SecondModel::Role::teacher;
  return of_teacher ? "teacher" : "model";
}

// The option of a rejected pair that the error message names first, and the origin of its key: the option whose key the
// spec gives. If the spec gives neither key, the option that is a property of the model, because a spec that names a
// model thereby asks for the model's properties.
struct Blame {
  std::string key;
  const Origin* at = nullptr;
};
Blame blame(const Spec& spec, const Pair& pair) {
  constexpr std::string_view kModel = "model";
  const std::string section = section_of_model(spec, pair);
  const auto key_of = [&](const Feature& f) {
    return f.key.starts_with(kModel) ? section + std::string(f.key.substr(kModel.size())) : std::string(f.key);
  };
  for (const Feature* f : {pair.a, pair.b}) {
    if (f == nullptr) continue;
    if (const Origin* at = given(spec, key_of(*f)); at != nullptr) return {key_of(*f), at};
  }
  for (const Feature* f : {pair.a, pair.b}) {
    if (f != nullptr && f->key.starts_with(kModel)) return {key_of(*f), given(spec, section)};
  }
  return {std::string(pair.a->key), nullptr};
}

bool holds_for(Limit row, Limit asked) {
  const bool planned = row == Limit::spec && asked == Limit::plan;
  return row == asked || planned || (row == Limit::ranks && asked == Limit::gpu_ranks);
}

// A frozen model beside the one that trains is refused where it would be refused if it trained, except for keys that
// mean nothing without experts, say, which may be meant for the other model.
bool holds_for_second(Limit row, Limit asked) { return row != Limit::spec && holds_for(row, asked); }

// Returns the spec of a second model as if it trained alone.
Spec alone(const Spec& spec) {
  Spec own = second_spec(spec);
  own.second.reset();
  own.model.frozen.clear();
  return own;
}

}  // namespace

std::string_view name_of(Limit limit) {
  constexpr std::string_view kNames[] = {"the spec", "the plan", "CPU and GPU ranks", "GPU ranks", "search"};
  return kNames[static_cast<std::size_t>(limit)];
}

std::span<const Pair> combinations() { return feature::kPairs; }

const Pair* first_limit(const Spec& spec, Limit which) {
  const auto found =
      std::ranges::find_if(combinations(), [&](const Pair& p) { return holds_for(p.which, which) && asks(spec, p); });
  if (found != combinations().end()) return &*found;
  if (!spec.second) return nullptr;
  const Spec second = alone(spec);
  const auto other = std::ranges::find_if(
      combinations(), [&](const Pair& p) { return holds_for_second(p.which, which) && asks(second, p); });
  return other == combinations().end() ? nullptr : &*other;
}

std::string refused_key(const Spec& spec, const Pair& pair) {
  const Origin* at = blame(spec, pair).at;
  return at == nullptr ? "" : at->key;
}

std::string refusal(const Spec& spec, const Pair& pair) {
  const std::string with = pair.b == nullptr ? "" : fmt::format(" with {}", pair.b->text);
  const std::string key = blame(spec, pair).key;
  std::string whose = asks(spec, pair) ? "" : fmt::format("{}: ", name_of(spec.second->role));
  if (key.starts_with("teacher")) whose.clear();
  return fmt::format("{}{}: {}{}: {}; {}", whose, key, pair.a->text, with, pair.why, pair.advice);
}

void refuse_combinations(const Spec& spec, Limit which) {
  const Pair* pair = first_limit(spec, which);
  if (pair == nullptr) return;
  const Origin* at = blame(spec, *pair).at;
  const std::string place = at == nullptr ? file_of(spec) : at->from;
  throw Error(place + (place.empty() ? "" : ": ") + refusal(spec, *pair));
}

}  // namespace orrery
