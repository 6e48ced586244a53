#pragma once

#include <string_view>
#include <vector>

#include "models/base/units.h"

namespace orrery {

// The number format in which matrix products run and in which all-gathers transfer values.
// int8 is the format of products of quantised models that generate text, and of cached keys and values; int4 of the
// latter alone.
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4, int8, int4 };

Precision find_precision(std::string_view name);  // throws Error listing the known names
std::string_view name_of(Precision p);
std::vector<std::string_view> precision_names();  // the names of precisions in which a model trains

// Returns whether the format has eight bits or fewer, so that matrix products cast their operands to it first.
bool is_eight_bit(Precision p);
// Returns the bytes of one element of stored parameters and activations: 4 for fp32 and tf32, else 2 (training in fp8
// or fp4 keeps 16-bit parameters and activations, whose casts are part of matrix products).
Bytes storage_bytes(Precision p);

}  // namespace orrery
