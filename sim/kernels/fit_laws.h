#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/cost/kernel_laws.h"
#include "sim/kernels/kernel_rows.h"

namespace orrery {

// The numbers of measured rows, by GPU, that laws of products and of attention are fitted to.
struct RowsToFit {
  std::map<std::string, std::int64_t> products, attention;
};
RowsToFit rows_to_fit_of(const KernelRows& rows, const KernelLaws& laws);

// Whether a law shared by `gpus` comes out otherwise without the rows of one of them: it has rows, and others have too.
bool is_refitted(const std::map<std::string, std::int64_t>& rows, const std::vector<std::string>& gpus,
                 std::string_view without);

// Fits the laws of products and of attention, and the rates of every kind of GPU that has rows, to the measured rows
// outside the groups of shapes that are judged. start: the families and their GPUs, and numbers to begin with. without:
// a kind of GPU whose rows are not used; "" uses all, states the tables in `source` and throws Error if no row is of a
// family. Numbers are rounded as in a file. progress: called from time to time with a line.
KernelLaws fit_kernel_laws(const KernelRows& rows, KernelLaws start, std::string_view without,
                           const std::function<void(std::string_view)>& progress);

}  // namespace orrery
