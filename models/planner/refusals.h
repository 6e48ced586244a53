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

// Refuses what only later versions will plan or price. Better a clear line than a prediction that silently leaves a
// feature out.
void refuse_what_is_not_built(const Spec& spec);
// Refuses what gathering and reducing unit by unit cannot do yet where a stage has both ends of the model.
void refuse_units(const Draft& draft);
// Refuses what is impossible, or not built yet, with several copies of a model.
void refuse_both_ways(const Draft& draft);
// Refuses what is not built yet for stages that share the vocabulary.
void refuse_shared_vocabulary(const Draft& draft);
// Refuses what replicas of stages cannot do, or not yet.
void refuse_replicas(const Draft& draft);
// Refuses what is impossible, or not built yet, where weights change while micro-batches are on their way.
void refuse_asynchronous(const Draft& draft);
// Refuses strategies whose activations another stage could not know the sizes of, or find again.
void refuse_moves(const Draft& draft);

}  // namespace orrery
