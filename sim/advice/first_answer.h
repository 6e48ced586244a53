#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "models/load/load_spec.h"

namespace orrery {

// A spec that is made from nothing but a model and a cluster, and the values that were chosen for it.
struct FirstAnswer {
  SpecText spec;                    // the complete spec, with the chosen strategy
  std::vector<std::string> chosen;  // values that were chosen, a line each with the reason: "sequence 8192: ..."
};

// Whether the argument SPEC of a command names a model instead of a spec: a built-in model, a Hugging Face config.json,
// or a folder with one.
bool names_a_model(const std::string& what);

// Makes a spec for training a model on machines ("2xdgx-h100"), or for generating text if `overrides` say so; then the
// layout and the batch are those of a search for the most tokens a second. The sequence length and the batch follow
// rules that `chosen` states, and the strategy is the first that a search finds to fit in memory. overrides: values
// that the user gave by --set, which replace chosen ones. Throws Error where the machines are unknown, or nothing fits.
FirstAnswer first_answer(const std::string& model, const std::string& machines,
                         const std::vector<std::string>& overrides, unsigned threads, const std::atomic<bool>* stop);

}  // namespace orrery
