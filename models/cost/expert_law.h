#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "models/base/names.h"
#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/plan/op.h"
#include "models/spec/cluster.h"

namespace orrery {

struct KernelLaws;

// The formats that experts' products read, as each has kernels of its own: inputs and weights in 16 bits; in 8 bits
// with a scale for a tensor, or for each block of weights; in nvfp4; inputs in 16 bits and weights in int4, or in 4-bit
// floats, which are widened as they are read; inputs in mxfp8 and weights in mxfp4.
enum class ExpertFormat : std::uint8_t { bf16, fp8, fp8_blocks, nvfp4, int4, fp4, fp4_fp8 };
inline constexpr Named<ExpertFormat> kExpertFormats[] = {
    {"bf16", ExpertFormat::bf16},      {"fp8", ExpertFormat::fp8},   {"fp8_blocks", ExpertFormat::fp8_blocks},
    {"nvfp4", ExpertFormat::nvfp4},    {"int4", ExpertFormat::int4}, {"fp4", ExpertFormat::fp4},
    {"fp4_fp8", ExpertFormat::fp4_fp8}};

// Returns what products in a precision with weights in a format read; nullopt for what no framework was measured with.
std::optional<ExpertFormat> expert_format(Precision precision, const WeightFormat& weights);

// The law of the products of experts, forward, in one format, as one framework for inference runs them on GPUs of one
// generation. The rows of an expert are cut into tiles of 8 to 256 rows and 128 columns; the fastest number of rows is
// taken.
struct ExpertLaw {
  // of the rate of long products on the same GPU (KernelRates); of the peak in nvfp4 and mxfp4 with mxfp8, in which
  // long products have no rate
  double fraction = 0;
  double start_us = 0;     // what a product of all experts takes beyond its arithmetic and memory traffic
  double half_rows = 0;    // a tile of r rows runs at r / (r + half_rows) of the rate
  double prologue_us = 0;  // time in which a tile's first operands come
  double depth_us = 0;     // the least time in which a tile adds 64 elements of the sum
  double passed_ns = 0;    // for each row of a token whose expert another rank has (GroupedGemm::passed)
};

// The laws of one framework on GPUs of one generation, by format.
using ExpertLaws = std::map<ExpertFormat, ExpertLaw>;

// Returns the law of products in a precision with weights in a format; nullptr if there is none.
const ExpertLaw* law_of(const ExpertLaws& laws, Precision precision, const WeightFormat& weights);

// Returns the share of a GPU's peak that ExpertLaw::fraction is of.
double peak_share(ExpertFormat format, const Gpu& gpu, const KernelLaws& laws);

// Returns the time of one product of all experts of a rank: x (rows, in) times the experts' (groups, out, in), the rows
// spread evenly, or exponentially if they are uneven. The law's fraction is of the GPU's peak.
Seconds experts_time(const GroupedGemm& g, Precision precision, const Gpu& gpu, const ExpertLaw& law);

// Returns the built-in laws of a framework ("trtllm", "vllm", "sglang") on this GPU, with fractions of its peak: those
// of GPUs of its compute capability; none if no such GPU was measured (models/data/kernel_laws.json).
ExpertLaws find_expert_laws(std::string_view framework, const Gpu& gpu);

}  // namespace orrery
