#pragma once

#include <string>
#include <vector>

#include "models/load/load_spec.h"
#include "sim/print/table.h"
#include "sim/print/text.h"

namespace orrery {

// A change of a spec after which its step fits in memory.
struct FittingChange {
  std::vector<std::string> set;  // the change, as values of --set
  double step_s = 0;             // step time in seconds after the change
  Bytes peak = 0;                // peak memory in bytes of the fullest GPU
};

// Finds up to three small changes of a spec whose step does not fit in memory, each of which makes it fit. Changes of
// one technique are tried first, then of two, then more GPUs; every change is simulated. text: the spec file, to which
// `overrides` and the changes are applied.
std::vector<FittingChange> fitting_changes(const SpecText& text, const std::vector<std::string>& overrides,
                                           const std::string& profile);

// A table of the changes with the step time after each, compared with step_s, the seconds of the step that does not
// fit. The text version is "" if there are no changes.
Table fitting_table(const std::vector<FittingChange>& changes, double step_s);
std::string fitting_text(const std::vector<FittingChange>& changes, double step_s, const Style& style);

}  // namespace orrery
