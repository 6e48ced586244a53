#pragma once

#include <string>
#include <string_view>

#include "models/base/error.h"
#include "models/layout/draft.h"

namespace orrery {

// The place where a key was given: "spec.yaml:12: ", or "" when it was not.
std::string place_of(const Spec& spec, std::string_view key);

// Runs a function that knows no spec; an Error that it throws gets the place of the key that it refuses.
template <class Function>
auto said_at(const Spec& spec, std::string_view key, Function function) {
  try {
    return function();
  } catch (const Error& e) {
    throw Error(place_of(spec, key) + e.what());
  }
}

// The planner refuses values here that fit no schedule; what does not go together is refused by the table of
// combinations (models/load/combinations.h).

// Refuses numbers of virtual stages that the schedule does not have.
void refuse_virtual_stages(const Spec& spec);
// Refuses numbers of stages and micro-batches that copies of a model cannot share.
void refuse_odd_copies(const Draft& draft);
// Refuses steps of fewer micro-batches than stages where two versions of the weights are to be enough.
void refuse_short_steps(const Draft& draft);

}  // namespace orrery
