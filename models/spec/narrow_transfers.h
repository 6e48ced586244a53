#pragma once

#include "models/base/narrow.h"
#include "models/spec/spec.h"

namespace orrery {

// Number of weights that share a scale when ZeRO++ gathers them. DeepSpeed takes groups of at most 8,000, and says that
// 4k are the best (deepspeed/runtime/zero/partition_parameters.py, CUDAQuantizer.target_group_size).
inline constexpr std::int64_t kWeightsOfAScale = 4096;

// Returns the format in which ZeRO++ gathers weights.
inline NarrowFormat gathered_format(const Spec&) { return {NarrowKind::int8, kWeightsOfAScale}; }

// Returns the format in which ZeRO++ sends gradients. DeepSpeed cuts the gradient of a matrix into as many groups as
// its longer side has elements (deepspeed/runtime/comm/coalesced_collectives.py, all_to_all_quant_reduce), so that a
// group is as long as the shorter side, which is the model's width for most matrices of a Transformer.
inline NarrowFormat reduced_format(const Spec& spec) {
  const bool half = spec.strategy.zero_quantize.gradient_bits == 4;
  return {half ? NarrowKind::int4 : NarrowKind::int8, spec.model.hidden};
}

}  // namespace orrery
