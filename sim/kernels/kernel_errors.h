#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/kernels/kernel_rows.h"
#include "sim/kernels/law_errors.h"
#include "sim/print/text.h"

namespace orrery {

// The errors of predicted kernels of one kind, precision and framework on one GPU. A level is the median of predicted
// over measured time: what a formula of the right shape is off by as a whole. Shapes are divided by the hash of what
// rows that differ in tokens have in common: every fifth group is judged, after the level of the other groups.
struct KernelErrors {
  std::string gpu, kind, precision, framework;
  std::int64_t rows = 0;
  double level = 1;
  double error = 0;             // median of |predicted / measured - 1|, with the built-in constants
  double small = 0, large = 0;  // the same of the half of rows with less work, and of that with more
  // -1 where there are no rows to judge, or no others
  double swept = -1, swept_p90 = -1;  // of the judged rows, after their GPU's own level: median, and nine rows of ten
  double unseen = 0;  // of all rows, after the median of the levels that other GPUs have there; -1 if there is none
};

struct KernelReport {
  std::vector<KernelErrors> errors;
  std::vector<LawErrors> laws;
  std::map<std::string, std::int64_t> not_covered;
};

// Predicts all rows with the built-in constants of their GPUs. GPUs and kinds of kernels that are not known are counted
// in `not_covered`. progress: called from time to time with a line.
KernelReport predict_kernels(KernelRows rows, const std::function<void(std::string_view)>& progress);

std::string kernels_text(const KernelReport& report, const Style& style);
std::string kernels_json(const KernelReport& report);

}  // namespace orrery
