#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/cost/kernel_laws.h"
#include "sim/kernels/kernel_rows.h"
#include "sim/print/section.h"

namespace orrery {

// The errors of the laws of kernels (models/cost/kernel_laws.h) on the groups of shapes that nothing is fitted to.
struct LawErrors {
  std::string gpu, kind, precision, framework, kernel;
  bool fitted = false;  // whether the laws are fitted to rows like these
  std::int64_t rows = 0;
  double level = 1;             // predicted over measured, the median
  double error = 0, p90 = 0;    // |predicted / measured - 1|: median, and of nine rows of ten
  double small = 0, large = 0;  // the median of the half of rows with less work, and of that with more
  // The same where the GPU's rates come from other GPUs and its data sheet; below 0 if no other GPU tells of it.
  double unseen_level = 1, unseen = -1;
  bool shared_saw = false;  // whether the numbers that GPUs share were then still fitted to this GPU's rows
};

// The laws (formulas of a kernel's time) with a GPU's numbers from other GPUs, to see how well they predict a GPU that
// nobody has measured. told: whether other GPUs tell of it; saw: whether shared numbers are fitted to its rows too.
struct LawsWithoutGpu {
  struct Family {
    bool told = false, saw = true;
  };
  KernelLaws laws;
  Family products, attention;
};
using LawsWithout = std::map<std::string, LawsWithoutGpu>;  // by GPU

// refit: whether shared numbers are fitted again without each GPU, where it and others of its family have rows, which
// takes a minute; else its rates alone are left out.
LawsWithout laws_without_each(const KernelRows& rows, const KernelLaws& laws, bool refit,
                              const std::function<void(std::string_view)>& progress);

// Judges the laws by kind of kernel, precision, framework and GPU. Rows named "all products" and "attention" in `kind`
// hold all rows of a GPU that laws are fitted to.
std::vector<LawErrors> judge_laws(const KernelRows& rows, const KernelLaws& laws, const LawsWithout& without);

Section law_errors_section(const std::vector<LawErrors>& errors);
nlohmann::ordered_json law_errors_json(const std::vector<LawErrors>& errors);  // a list

}  // namespace orrery
