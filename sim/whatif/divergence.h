#pragma once

#include <optional>
#include <string>

#include "sim/whatif/measured_run.h"

namespace orrery {

// The first operation of a run in which two of its ranks differ. Times are seconds from the begin of the step, on
// clocks that repair_clocks() has set.
struct Divergence {
  // How they differ: only one of them runs the operation; it begins later on one though what came before ended at the
  // same time on both; or it takes longer on one.
  enum class How : std::uint8_t { runs, begins, takes };
  How how = How::takes;
  std::string first, second;  // names of the two ranks
  std::string behind;         // name of the rank that is behind, or that alone runs the operation
  std::int64_t step = 0;
  std::int64_t number = 0;  // number of the operation among those of its rank in the step, counted from 1
  std::string op;           // name of the operation
  double begin_first = 0, begin_second = 0;
  double time_first = 0, time_second = 0;
  double later = 0;  // seconds by which it ends later on one rank than on the other
};

// Finds the first step and operation that ends on one rank by more than `tolerance` seconds later than on the other,
// or that only one of them runs. Operations that do equal work (MeasuredOp::pool) are compared. nullopt: the ranks stay
// together. Throws Error for ranks that the run does not have, and for ranks without a step in common.
std::optional<Divergence> first_divergence(const MeasuredRun& run, const std::string& first, const std::string& second,
                                           double tolerance);

}  // namespace orrery
