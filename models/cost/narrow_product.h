#pragma once

#include <optional>
#include <string_view>

#include "models/plan/op.h"
#include "models/spec/cluster.h"

namespace orrery {

struct KernelLaws;

// The law of matrix products in nvfp4 with few rows, forward, as one framework for inference runs them on GPUs of one
// generation. Its kernels do not cut a sum into parts, so that a long one takes long, however few bytes it reads.
struct NarrowProductLaw {
  double start_us = 0;  // beyond memory traffic and arithmetic
  double memory = 0;    // the fraction of the nominal bandwidth at which weights are read
  double depth_us = 0;  // time in which a tile adds 64 elements of the sum
  double overlap = 1;   // arithmetic c and memory traffic m take (c^overlap + m^overlap)^(1/overlap)
};

// Returns the time of a product of x (m, k) and weights (n, k), both in nvfp4. With k elements of the sum, w waves of
// tiles of 128 columns, at least one, and b bytes of weights it is
//   start_us + ((depth_us w k / 64)^overlap + (b / (memory * bandwidth))^overlap)^(1/overlap)
// The number of rows and the result do not enter: with fewer than kFewRows rows both are small.
Seconds narrow_product_time(const Gemm& g, const Gpu& gpu, const NarrowProductLaw& law);

// Returns the built-in law of a framework ("trtllm", "vllm", "sglang") on GPUs like this one; nullopt if none was
// measured (models/data/kernel_laws.json).
std::optional<NarrowProductLaw> find_narrow_product_law(std::string_view framework, const Gpu& gpu);

}  // namespace orrery
