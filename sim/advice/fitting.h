#pragma once

#include <string>
#include <vector>

#include "models/load/load_spec.h"
#include "sim/print/text.h"

namespace orrery {

// A change of a spec with which its step fits in memory.
struct FittingChange {
  std::vector<std::string> set;  // values of --set
  double step_s = 0;             // the step's time with it
  Bytes peak = 0;                // bytes on the fullest GPU
};

// The smallest changes of a strategy that does not fit with which it does, three at most: changes
// of one thing, then of two, then more GPUs. Every one is simulated. spec: the text that was read, with overrides for
// it.
std::vector<FittingChange> fitting_changes(const SpecText& text, const std::vector<std::string>& overrides,
                                           const std::string& profile);

// A table of the changes beside the step that does not fit; "" where there are none.
std::string fitting_text(const std::vector<FittingChange>& changes, double step_s, const Style& style);

}  // namespace orrery
