#pragma once

#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/page/spec_parts.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"

namespace orrery {

// Changes that would make the step faster or make it fit, one line for each change. strategy, machine: changes of the
// strategy, and of the machine; tried: number of changes that were simulated; fitting: table of the smallest changes
// that make the step fit, empty where it fits already; prices: lines on what the machine costs.
struct StepAdvice {
  std::vector<std::string> strategy, machine;
  std::size_t tried = 0;
  Table fitting;
  std::vector<std::string> prices;
};

// The page of `orrery simulate`: summary, attribution, timeline, memory, machine, defaults, spec.
std::string simulate_page(const Spec& spec, const Prediction& prediction, const StepAdvice& advice,
                          const SpecNotes& notes);

}  // namespace orrery
