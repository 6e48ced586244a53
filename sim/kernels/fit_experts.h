#pragma once

#include "models/cost/kernel_laws.h"
#include "sim/kernels/kernel_rows.h"

namespace orrery {

inline constexpr std::size_t kFitRowsOfExperts = 250;  // rows of a kind of GPU and format that the fit uses

// Whether a family's law is fitted to rows like this one: experts of its framework's kernels, on its GPUs, that no
// judging uses.
bool is_used_to_fit(const KernelRow& row, const KernelFamily<ExpertLaw>& family);
bool is_used_to_fit_experts(const KernelRow& row, const KernelLaws& laws);

// Whether a row is of a kernel of experts that its framework has beside those that it chooses on this GPU.
bool is_passed_over(const KernelRow& row, const KernelLaws& laws);

// Returns the seconds of a row of experts by a law: the two products by it, and the kernels between by the formulas of
// a model that generates text. The law has a rate for the row's format.
Seconds time_of_experts(const KernelRow& row, const Gpu& gpu, const ExpertLaw& law);

// Fits the law of a family: its shape, and the rate of each format that rows have. Without rows it stays.
void fit_experts(const KernelRows& rows, KernelFamily<ExpertLaw>& family);

}  // namespace orrery
