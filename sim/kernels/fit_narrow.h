#pragma once

#include <optional>

#include "models/cost/kernel_laws.h"
#include "sim/kernels/kernel_rows.h"

namespace orrery {

// Rows of a kind of GPU that the fit of a family uses.
inline constexpr std::size_t kFitNarrowRows = 300;

// Whether the law of a family is for rows like this one: products in nvfp4 with few rows, of its framework, on its
// GPUs.
bool is_of(const KernelRow& row, const KernelFamily<NarrowProductLaw>& family);
bool is_used_to_fit_narrow(const KernelRow& row, const KernelLaws& laws);

// Returns the seconds of such a row: the kernel that casts its input, by the formulas of a model that generates text,
// and the product by the law.
Seconds time_of_narrow(const KernelRow& row, const Gpu& gpu, const NarrowProductLaw& law);

// The same by the law of the row's family; nothing if it is of none.
std::optional<Seconds> time_of_narrow(const KernelRow& row, const Gpu& gpu, const KernelLaws& laws);

// Fits the law of a family to its rows that no judging uses; without rows it stays.
void fit_narrow(const KernelRows& rows, KernelFamily<NarrowProductLaw>& family);

}  // namespace orrery
