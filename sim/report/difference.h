#pragma once

#include <string>
#include <vector>

#include "sim/report/report.h"

namespace orrery {

// A kind of time of which a strategy's step has more than the best strategy's, as in "exposed tensor 0.91 s more
// (all_reduce over nvlink, 8.1 GB a step)".
struct Loss {
  TimeKind kind = TimeKind::compute;
  double seconds = 0;  // additional seconds of this kind of time in a step
  std::string transfer;
};
// Returns the kinds of time of which `other` has more than `best`, the largest difference first; differences below a
// hundredth of the best step's time are left out.
std::vector<Loss> losses(const Report& best, const Report& other);
std::string text_of(const Loss& loss);

}  // namespace orrery
