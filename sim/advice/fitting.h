#pragma once

#include <string>
#include <vector>

#include "models/load/load_spec.h"
#include "sim/print/table.h"
#include "sim/print/text.h"

namespace orrery {

// A change of a spec with which its step fits in memory.
struct FittingChange {
  std::vector<std::string> set;  // the change, as values of --set
  double step_s = 0;             // step time in seconds after the change
  Bytes peak = 0;                // peak memory in bytes of the fullest GPU
};

// Finds at most three small changes with which a strategy that does not fit in memory does fit: first changes of one
// technique are tried, then of two, then more GPUs. Every change is simulated. text: the spec file, to which
// `overrides` and the changes are applied.
std::vector<FittingChange> fitting_changes(const SpecText& text, const std::vector<std::string>& overrides,
                                           const std::string& profile);

// A table of the changes with their step times, compared with the time of the step that does not fit (step_s, in
// seconds); as text "" if there are no changes.
Table fitting_table(const std::vector<FittingChange>& changes, double step_s);
std::string fitting_text(const std::vector<FittingChange>& changes, double step_s, const Style& style);

}  // namespace orrery
