#pragma once

#include "models/cost/kernel_laws.h"
#include "sim/kernels/kernel_rows.h"

namespace orrery {

// Rows of a kind of GPU and format that the fit uses, of those with fewer than 64 tokens and of the others each.
inline constexpr std::size_t kFitRowsOfExperts = 150;

// Whether a family's law is fitted to rows like this one: experts of its framework's kernels, on its GPUs, that no
// judging uses.
bool is_used_to_fit(const KernelRow& row, const KernelFamily<ExpertLaws>& family);
bool is_used_to_fit_experts(const KernelRow& row, const KernelLaws& laws);

// Whether a row is of a kernel of experts that its framework has beside those that it chooses on this GPU.
bool is_passed_over(const KernelRow& row, const KernelLaws& laws);

// Returns the seconds of a row of experts by a law: the two products by it, and the kernels between by the formulas of
// a model that generates text. The law's fraction is of the GPU's peak.
Seconds time_of_experts(const KernelRow& row, const Gpu& gpu, const ExpertLaw& law);

// Fits the laws of a family, one for each format that rows have, with the rates of products that `laws` have; those of
// other formats stay.
void fit_experts(const KernelRows& rows, const KernelLaws& laws, KernelFamily<ExpertLaws>& family);

}  // namespace orrery
