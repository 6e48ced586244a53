#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/kernels/kernel_rows.h"
#include "sim/kernels/law_errors.h"
#include "sim/print/section.h"

namespace orrery {

// The errors of predicted kernels of one kind, precision and framework on one GPU. level: the median of predicted over
// measured time, that is, the factor by which all predictions are off together. Rows that differ only in the number of
// tokens form a group. Every fifth group is judged: its predictions are divided by the level of the other groups, so
// that only errors in the shape of the formula remain.
struct KernelErrors {
  std::string gpu, kind, precision, framework;
  std::int64_t rows = 0;
  double level = 1;
  double error = 0;             // median of |predicted / measured - 1|, with the built-in constants
  double small = 0, large = 0;  // median errors of the kernels with less work than the median, and of the others
  // Errors of every fifth group of shapes after division of the predictions by the level (median of predicted over
  // measured time) of the other groups on the same GPU; -1 if there is no fifth group, or no other.
  double swept = -1, swept_p90 = -1;  // median and 90th percentile of the errors of every fifth group of kernel shapes
  // median error of all kernels after division of the predictions by the level (median of predicted over measured time)
  // that the other GPUs have; -1 if there is no other GPU with such kernels
  double unseen = 0;
};

struct KernelReport {
  std::vector<KernelErrors> errors;
  std::vector<LawErrors> laws;
  std::map<std::string, std::int64_t> not_covered;
};

// Predicts all measured kernels with the built-in constants of their GPUs. Rows of unknown GPUs and kinds of kernels
// are counted in `not_covered`. progress: called from time to time with a line of text.
KernelReport predict_kernels(KernelRows rows, const std::function<void(std::string_view)>& progress);

// Returns the tables of errors, of laws, and of what is not covered.
std::vector<Section> kernel_sections(const KernelReport& report);
std::string kernels_text(const KernelReport& report, const Style& style);
std::string kernels_json(const KernelReport& report);

}  // namespace orrery
