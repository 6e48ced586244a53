#include "exec/host/stored_weights.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {

kernels::WeightCodes codes_of(WeightCode code) {
  switch (code) {
    case WeightCode::fp8:
      return kernels::WeightCodes::fp8;
    case WeightCode::int8:
      return kernels::WeightCodes::int8;
    case WeightCode::int4:
      return kernels::WeightCodes::int4;
    case WeightCode::nvfp4:
      return kernels::WeightCodes::nvfp4;
    case WeightCode::mxfp8:
      return kernels::WeightCodes::mxfp8;
    case WeightCode::mxfp4:
      return kernels::WeightCodes::mxfp4;
    default:
      throw Error(fmt::format("no ranks store weights in {}", name_of(code)), 1);
  }
}

kernels::CodedMatrix coded_matrix(const LocalParameter& p) {
  return {.codes = codes_of(p.format.code),
          .group = p.format.group,
          .zeros = p.format.zeros,
          .out = p.out,
          .in = p.in,
          .matrices = std::max<std::int64_t>(1, p.experts)};
}

std::vector<float> widened_weight(const LocalParameter& p, const std::byte* stored) {
  std::vector<float> wide(static_cast<std::size_t>(p.out * p.in));
  kernels::widen_matrix(coded_matrix(p), stored, wide.data());
  return wide;
}

}  // namespace orrery
