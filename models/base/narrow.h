#pragma once

#include <cstdint>
#include <string_view>

#include "models/base/units.h"

namespace orrery {

// The kind of code by which a format of few bits stands for a number. int8, int4: signed whole numbers. nf4: the number
// of one of sixteen levels, the quantiles of a normal distribution (QLoRA, Dettmers et al. 2023, 2305.14314, appendix
// E). nvfp4: a number in E2M1 (NVIDIA, "Pretraining Large Language Models with NVFP4", 2509.25149).
enum class NarrowKind : std::uint8_t { int8, int4, nf4, nvfp4 };

// A format of few bits in which numbers are stored or sent: a code for each number, and a scale for each block of
// `block` numbers, by which the largest magnitude of the block has the largest code. The scales of int8 and int4 are
// fp32 numbers. The scales of nf4 are themselves quantised to 8 bits, with one fp32 number for each 256 of them (QLoRA,
// section 3: double quantization). The scales of nvfp4 are in E4M3.
struct NarrowFormat {
  NarrowKind kind = NarrowKind::int8;
  std::int64_t block = 64;
};

// The format NF4 with QLoRA's blocks of 64 weights (section 3).
inline constexpr NarrowFormat kNf4Format = {NarrowKind::nf4, 64};
// The block of NVFP4: 16 numbers share a scale.
inline constexpr std::int64_t kNvfp4Block = 16;
// Number of scales of NF4 that share one fp32 number (QLoRA, section 3).
inline constexpr std::int64_t kNf4Scales = 256;

std::string_view name_of(NarrowKind kind);

// Returns the bytes of `elements` numbers in a format: their codes, then their scales.
Bytes narrow_bytes(const NarrowFormat& format, std::int64_t elements);

}  // namespace orrery
