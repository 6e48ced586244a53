#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "models/load/load_spec.h"

namespace orrery {

// A spec that is made from nothing but a model and a cluster, and the values that were chosen for it.
struct FirstAnswer {
  SpecText spec;                    // the complete spec, with the chosen strategy
  std::vector<std::string> chosen;  // values that were chosen, with the reason, one line each: "sequence 8192: ..."
};

// Whether the argument SPEC of a command names a model instead of a spec: a built-in model, a Hugging Face config.json,
// or a folder with one.
bool names_a_model(const std::string& what);

// Makes a spec for a model on machines ("2xdgx-h100"): sequence and batch follow the rules that `chosen` states, and
// the strategy is the first one that a search finds to fit. overrides: values of --set, which are used and not chosen.
// Throws Error where the machines are unknown, or nothing fits.
FirstAnswer first_answer(const std::string& model, const std::string& machines,
                         const std::vector<std::string>& overrides, unsigned threads, const std::atomic<bool>* stop);

}  // namespace orrery
