#include "sim/kernels/law_errors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/kernels/law_rows.h"

namespace orrery {
namespace {

// Products of two GPUs, of which those of one take `slower` times what the laws say.
KernelRows made_rows(double slower) {
  KernelRows rows;
  for (std::uint64_t n = 1; n <= 40; ++n) {
    for (const char* gpu : {"h100-sxm", "b200"}) {
      KernelRow row{.gpu = gpu, .kind = "gemm", .framework = "trtllm", .precision = "bfloat16", .shapes = n};
      Op op;
      op.work = Gemm{.m = 4096, .n = static_cast<std::int64_t>(256 * n), .k = 4096, .result_bytes = 2};
      op.precision = Precision::bf16;
      row.ops = {op};
      row.measured = *time_by_laws(row, find_gpu(gpu), built_in_kernel_laws());
      if (row.gpu == "b200") row.measured *= slower;
      rows.rows.push_back(row);
    }
  }
  return rows;
}

TEST(LawErrors, GroupsThatNothingIsFittedToAreJudged) {
  const KernelRows rows = made_rows(1.25);
  const KernelLaws& laws = built_in_kernel_laws();
  const LawsWithout without = laws_without_each(rows, laws, false, {});
  EXPECT_EQ(without.size(), laws.rates.size());
  const std::vector<LawErrors> errors = judge_laws(rows, laws, without);
  ASSERT_EQ(errors.size(), 4U);  // two GPUs, by precision and together
  for (const LawErrors& e : errors) {
    EXPECT_EQ(e.rows, 8);
    EXPECT_TRUE(e.fitted);
    EXPECT_NEAR(e.level, e.gpu == "b200" ? 0.8 : 1, 1e-9);
    EXPECT_NEAR(e.error, e.gpu == "b200" ? 0.2 : 0, 1e-9);
    // Other GPUs' rates predict it too, if worse than its own; shared numbers are those that were fitted to it.
    EXPECT_GT(e.unseen, 0);
    EXPECT_LT(e.unseen, 0.5);
    EXPECT_NEAR(e.unseen_level, e.level, 0.3);
    EXPECT_TRUE(e.shared_saw);
  }
  EXPECT_NE(text_of(law_errors_section(errors), {}).find("trtllm *"), std::string::npos);
  EXPECT_EQ(law_errors_json(errors).size(), 4U);
  EXPECT_TRUE(law_errors_json(errors)[0]["unseen_shared_fitted_to_gpu"].get<bool>());
  EXPECT_TRUE(law_errors_section({}).is_empty());
}

// Laws that are fitted again without a GPU did not see it; where no other GPU has rows, nothing tells of it.
TEST(LawErrors, UnseenIsWhatOtherGpusTell) {
  KernelRows rows = made_rows(1);
  const LawsWithout both = laws_without_each(rows, built_in_kernel_laws(), true, {});
  for (const LawErrors& e : judge_laws(rows, built_in_kernel_laws(), both)) {
    EXPECT_GT(e.unseen, 0) << e.gpu;
    EXPECT_FALSE(e.shared_saw);
  }
  std::erase_if(rows.rows, [](const KernelRow& row) { return row.gpu == "b200"; });
  const LawsWithout one = laws_without_each(rows, built_in_kernel_laws(), true, {});
  for (const LawErrors& e : judge_laws(rows, built_in_kernel_laws(), one)) EXPECT_LT(e.unseen, 0) << e.gpu;
}

}  // namespace
}  // namespace orrery
