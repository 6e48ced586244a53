#include "exec/host/stored_weights.h"

#include <cmath>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exec/host/initial.h"
#include "kernels/reference/weight_codes.h"
#include "models/base/error.h"
#include "models/generation/generation_plan.h"
#include "models/layers/blocks.h"
#include "models/layout/uncut_place.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

// Plan and kernels count the same bytes.
TEST(StoredWeights, TakeTheBytesOfThePlan) {
  for (const WeightCode code :
       {WeightCode::fp8, WeightCode::int8, WeightCode::int4, WeightCode::nvfp4, WeightCode::mxfp8, WeightCode::mxfp4}) {
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

using Matrices = std::map<std::string, std::vector<float>>;

// The layers' matrices as a job's ranks have stored them, each in its place in the uncut weight.
Matrices stored_matrices(const std::string& quantise, const std::string& strategy) {
  const Spec spec = parse_spec(
      fmt::format("{{model: {{name: tiny, layers: 2, hidden: 64, heads: 4, kv_heads: 2, feed_forward: 64, vocab: 64}}, "
                  "workload: generate, generate: {{batch: 4, input: 8, output: 2}}, cluster: {{node: dgx-h100, nodes: "
                  "1}}, software: vllm, strategy: {{precision: fp32, quantise: {}, {}}}}}",
                  quantise, strategy),
      "t.yaml");
  const Plan plan = make_executed_plan(spec);
  Matrices all;
  for (std::int64_t number = 0; number < plan.ranks; ++number) {
    const Rank rank(spec, plan, number);
    CachingMemory memory(host_segments());
    const Buffers buffers(rank, memory);
    set_initial_weights(rank, 3, buffers);
    for (const std::uint32_t state : rank.states) {
      for (const PlacedParameter& p : rank.frozen.at(state)) {
        if (!is_quantised(p.local.name, p.local.in, QuantisedLayers::all)) continue;
        const std::byte* at = buffers.state(state, kFrozen) + p.first * rank.plan.frozen_width;
        std::vector<float> part(static_cast<std::size_t>(p.local.out * p.local.in));
        if (p.local.format.narrow())
          part = widened_weight(p.local, at);
        else
          std::memcpy(part.data(), at, part.size() * sizeof(float));
        const UncutPlace place = uncut_place(spec.model, p.local, [&](Dimension d) { return rank.position_in(d); });
        std::vector<float>& whole = all[p.name];
        whole.resize(static_cast<std::size_t>(place.whole.out * place.whole.in), NAN);
        for (const UncutRows& run : place.rows) {
          for (std::int64_t r = 0; r < run.rows; ++r)
            std::copy_n(part.begin() + (run.local + r) * p.local.in, p.local.in,
                        whole.begin() + (run.uncut + r) * place.whole.in + place.column);
        }
      }
    }
  }
  return all;
}

TEST(StoredWeights, AreTheSameInAnyLayout) {
  for (const char* quantise : {"{weights: fp8}", "{weights: int8}", "{weights: nvfp4}",
                               "{weights: int4, group: 8, zero_points: true}", "{weights: int4, group: channel}"}) {
    const Matrices one = stored_matrices(quantise, "tensor: 1, data: 1");
    EXPECT_EQ(one.size(), 8U);
    for (const char* strategy : {"tensor: 2, data: 1", "tensor: 4, data: 1", "tensor: 2, pipeline: 2, data: 2"})
      EXPECT_EQ(stored_matrices(quantise, strategy), one) << quantise << " " << strategy;
  }
  const std::string clipped = "{weights: int8, group: tensor, calibration: kl}";
  EXPECT_EQ(stored_matrices(clipped, "tensor: 2, data: 1"), stored_matrices(clipped, "tensor: 1, data: 1"));
}

// Round to nearest, of the values that the model has without it.
TEST(StoredWeights, AreRoundedToTheNearestCode) {
  const Matrices wide = stored_matrices("{}", "tensor: 1, data: 1"),
                 narrow = stored_matrices("{weights: int8}", "tensor: 2, data: 1");
  ASSERT_EQ(wide.size(), narrow.size());
  constexpr std::size_t in = 64;
  for (const auto& [name, values] : wide) {
    for (std::size_t row = 0; row < values.size() / in; ++row) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * in);
      const std::vector<double> wanted =
          kernels::reference::rounded({begin, begin + static_cast<std::ptrdiff_t>(in)}, 8, false, false);
      for (std::size_t c = 0; c < in; ++c) EXPECT_NEAR(narrow.at(name)[row * in + c], wanted[c], 1e-8) << name;
    }
  }
}

}  // namespace
}  // namespace orrery
