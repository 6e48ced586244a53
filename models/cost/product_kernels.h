#pragma once

#include <optional>

#include "models/cost/kernel_laws.h"

namespace orrery {

// The law of matrix products that run one after another as in a burst, and the numbers of a kind of GPU.
struct ProductKernels {
  KernelRates rates;
  ProductLaw law;
};

// Returns those of a GPU: its own, or those of a measured GPU of its compute capability and about its rate; nullopt if
// there is neither.
std::optional<ProductKernels> find_product_kernels(const Gpu& gpu, const KernelLaws& laws = built_in_kernel_laws());

// Returns whether the law is for this product where a text is generated: of a linear layer with few rows, forward,
// whose inputs and weights have 16 bits, or both fp8.
bool has_product_law(const Gemm& g, Precision precision);

// The same of the law of products in nvfp4.
bool has_narrow_product_law(const Gemm& g, Precision precision);

}  // namespace orrery
