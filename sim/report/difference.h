#pragma once

#include <string>
#include <vector>

#include "sim/report/report.h"

namespace orrery {

// The additional time of one kind in a step of a strategy, compared with the best strategy: "exposed tensor 0.91 s more
// (all_reduce over nvlink, 8.1 GB a step)".
struct Loss {
  TimeKind kind = TimeKind::compute;
  double seconds = 0;  // additional seconds of this kind of time in a step
  std::string transfer;
};
// The largest differences first; differences below a hundredth of the best step's time are left out.
std::vector<Loss> losses(const Report& best, const Report& other);
std::string text_of(const Loss& loss);

}  // namespace orrery
