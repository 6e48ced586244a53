#include <cmath>

#include <gtest/gtest.h>

#include "models/cost/kernel_laws.h"

namespace orrery {
namespace {

double watts_per_flops(const std::string& name) {
  const Gpu gpu = find_gpu(name);
  return gpu.tdp_W / peak_flops(gpu, Precision::bf16);
}

// Rates that grow with a power of the watts for each FLOP/s are found for a GPU that is left out.
TEST(KernelLawsOthers, ClocksFollowPower) {
  KernelLaws laws = built_in_kernel_laws();
  const double power = 0.4;
  for (const std::string& gpu : laws.products.front().gpus) {
    KernelRates& r = laws.rates.at(gpu);
    r.bf16 = 0.5 * std::pow(watts_per_flops(gpu) / watts_per_flops("b200"), power);
    r.memory = 0.8;
  }
  for (auto& [gpu, r] : laws.rates) {
    if (r.fp8 > 0) r.fp8 = 0.9 * r.bf16;
  }
  laws.rates.at("h100-sxm") = {};
  const KernelRates told = rates_from_others(laws, "h100-sxm");
  const double expected = 0.5 * std::pow(watts_per_flops("h100-sxm") / watts_per_flops("b200"), power);
  EXPECT_NEAR(told.bf16, expected, 1e-9);
  EXPECT_NEAR(told.fp8, 0.9 * expected, 1e-9);
  EXPECT_DOUBLE_EQ(told.memory, 0.8);
  EXPECT_GT(told.attention, 0.5);
}

TEST(KernelLawsOthers, AttentionIsThatOfTheSameComputeCapability) {
  const KernelLaws& laws = built_in_kernel_laws();
  EXPECT_EQ(rates_from_others(laws, "b300").attention, laws.rates.at("gb300").attention);
  EXPECT_EQ(rates_from_others(laws, "gb200").attention_tail, laws.rates.at("b200").attention_tail);
}

TEST(KernelLawsOthers, AGpuWithoutEightBitProductsHasNoRateOfThem) {
  EXPECT_EQ(rates_from_others(built_in_kernel_laws(), "a100-sxm-80gb").fp8, 0);
}

// A line through steep rates would pass the peak.
TEST(KernelLawsOthers, NoFractionExceedsThePeak) {
  KernelLaws laws = built_in_kernel_laws();
  for (const std::string& gpu : laws.products.front().gpus) {
    laws.rates.at(gpu).bf16 = 0.95 * std::pow(watts_per_flops(gpu) / watts_per_flops("b200"), 1.5);
    laws.rates.at(gpu).fp8 = 1.5 * laws.rates.at(gpu).bf16;
  }
  const KernelRates told = rates_from_others(laws, "h100-sxm");
  EXPECT_LE(told.bf16, 1);
  EXPECT_LE(told.fp8, 1);
}

}  // namespace
}  // namespace orrery
