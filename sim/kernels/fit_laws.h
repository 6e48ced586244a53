#pragma once

#include <functional>
#include <string_view>

#include "models/cost/kernel_laws.h"
#include "sim/kernels/kernel_rows.h"

namespace orrery {

// Fits the laws of products and of attention, and the rates of every kind of GPU that has rows, to the measured rows
// outside the groups of shapes that are judged. start: the families and their GPUs, and numbers to begin with. without:
// a kind of GPU whose rows are not used. progress: called from time to time with a line.
KernelLaws fit_kernel_laws(const KernelRows& rows, KernelLaws start, std::string_view without,
                           const std::function<void(std::string_view)>& progress);

}  // namespace orrery
