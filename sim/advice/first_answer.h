#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "models/load/load_spec.h"

namespace orrery {

// A spec that is made from nothing but a model and a cluster.
struct FirstAnswer {
  SpecText spec;                    // the complete spec, with the chosen strategy
  std::vector<std::string> chosen;  // values that were chosen, with the reason, one line each: "sequence 8192: ..."
};

// Whether the argument SPEC of a command names a model instead of a spec: a built-in model, a Hugging Face config.json,
// or a folder with one.
bool names_a_model(const std::string& what);

// The spec for a model on machines ("2xdgx-h100"): the sequence and the batch follow the rules that `chosen` states,
// and the strategy is the first one that fits in a search. overrides: values of --set, which are not chosen. Throws
// Error where the machines are unknown, or nothing fits.
FirstAnswer first_answer(const std::string& model, const std::string& machines,
                         const std::vector<std::string>& overrides, unsigned threads, const std::atomic<bool>* stop);

}  // namespace orrery
