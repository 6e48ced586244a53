#pragma once

#include <string_view>

#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/plan/op.h"
#include "models/spec/cluster.h"

namespace orrery {

// The law of the products of experts, forward, as one framework for inference runs them on GPUs of one generation. The
// rows of an expert are cut into tiles of 8 to 256 rows and 128 columns; the fastest number of rows is taken.
struct ExpertLaw {
  double half_rows = 0;    // a tile of r rows runs at r / (r + half_rows) of the rate
  double prologue_us = 0;  // time in which a tile's first operands come
  double overlap = 2;      // arithmetic c and memory traffic m take (c^overlap + m^overlap)^(1/overlap)
  double memory = 1;       // the fraction of the nominal memory bandwidth
  double traffic = 1;      // the memory traffic of activations, as a multiple of their bytes
  // The fraction of the peak that products of a format reach, 0 if it was not measured, and what a product of all
  // experts takes beyond its arithmetic and memory traffic, as each format has kernels of its own: products in 16 bits;
  // in 8 bits with a scale for a tensor, and with a scale for each block of weights; in nvfp4; and products in 16 bits
  // whose weights are int4 codes, or 4-bit floats, widened as they are read.
  double bf16 = 0, fp8 = 0, fp8_blocks = 0, nvfp4 = 0, int4 = 0, fp4 = 0;
  double bf16_start_us = 0, fp8_start_us = 0, fp8_blocks_start_us = 0, nvfp4_start_us = 0, int4_start_us = 0,
         fp4_start_us = 0;
};

// The two numbers of a format in a law; fraction 0 if the law has none.
struct ExpertRate {
  double fraction = 0, start_us = 0;
};
ExpertRate rate_of(const ExpertLaw& law, Precision precision, const WeightFormat& weights);

// Returns the time of one product of all experts of a rank: x (rows, in) times the experts' (groups, out, in), the rows
// spread evenly. The law has a rate for its precision and format.
Seconds experts_time(const GroupedGemm& g, Precision precision, const Gpu& gpu, const ExpertLaw& law);

// Returns the built-in law of a framework ("trtllm", "vllm", "sglang") for GPUs of this one's compute capability, or
// nullptr (models/data/kernel_laws.json).
const ExpertLaw* find_expert_law(std::string_view framework, const Gpu& gpu);

}  // namespace orrery
