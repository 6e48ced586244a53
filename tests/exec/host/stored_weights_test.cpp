#include "exec/host/stored_weights.h"

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

// Plan and kernels count the same bytes.
TEST(StoredWeights, TakeTheBytesOfThePlan) {
  for (const WeightCode code :
       {WeightCode::fp8, WeightCode::int8, WeightCode::int4, WeightCode::nvfp4, WeightCode::mxfp8}) {
    for (const std::int64_t group : {kTensorGroup, kChannelGroup, std::int64_t{16}, std::int64_t{32}}) {
      for (const bool zeros : {false, true}) {
        for (const std::int64_t experts : {0, 4}) {
          const bool whole = code == WeightCode::int8 || code == WeightCode::int4;
          if (zeros && !whole) continue;
          LocalParameter p;
          p.out = 52;
          p.in = 96;
          p.experts = experts;
          p.format = {.code = code, .group = group, .zeros = zeros};
          EXPECT_EQ(coded_matrix(p).bytes(), weight_bytes(p.format, p.out, p.in, std::max<std::int64_t>(1, experts)))
              << name_of(code) << group << zeros << experts;
        }
      }
    }
  }
  EXPECT_THROW(codes_of(WeightCode::int3), Error);
}

TEST(StoredWeights, AreWidened) {
  LocalParameter p;
  p.out = 3;
  p.in = 8;
  p.format = {.code = WeightCode::int8, .group = kChannelGroup};
  const std::vector<float> weights = {1, -2, 3, 0, 0, 0, 0, 127, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 6, -8, 10, 0, 0, -254};
  std::vector<std::byte> stored(static_cast<std::size_t>(coded_matrix(p).bytes()));
  kernels::quantize_matrix(coded_matrix(p), weights.data(), kernels::ranges_of(coded_matrix(p), weights.data()),
                           stored.data());
  EXPECT_EQ(widened_weight(p, stored.data()), weights);
}

}  // namespace
}  // namespace orrery
