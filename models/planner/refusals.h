#pragma once

#include <string>
#include <string_view>

#include "models/base/error.h"
#include "models/layout/draft.h"

namespace orrery {

// Returns the file and line in which a key of the spec was given, "spec.yaml:12: "; "" for a key that was not given.
std::string source_of(const Spec& spec, std::string_view key);

// Calls a function that may throw an Error but does not know the spec, and returns the function's result. An Error
// gets, before its message, the file and line of a key of the spec.
template <class Function>
auto said_at(const Spec& spec, std::string_view key, Function function) {
  try {
    return function();
  } catch (const Error& e) {
    throw Error(source_of(spec, key) + e.what());
  }
}

// These functions reject values that do not fit the schedule; combinations of options that do not work are rejected by
// the table in models/load/combinations.h.

// Rejects numbers of virtual stages that the schedule does not support.
void refuse_virtual_stages(const Spec& spec);
// Rejects numbers of stages or micro-batches that cannot be divided equally among several copies of the model
// (bidirectional pipelines).
void refuse_odd_copies(const Draft& draft);
// Rejects steps with fewer micro-batches than stages, if the schedule keeps only two versions of the weights
// (PipeDream-2BW).
void refuse_short_steps(const Draft& draft);

}  // namespace orrery
