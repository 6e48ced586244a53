#include "sim/predict/generation_profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/cost/kernel_time.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

Spec generated_on(const std::string& gpu, const std::string& software) {
  return parse_spec(fmt::format("{{model: qwen3-30b-a3b, workload: generate, generate: {{batch: 1, input: 8, "
                                "output: 8}}, cluster: {{gpu: {}, nodes: 1}}, gpus: 1, software: {}}}",
                                gpu, software),
                    "spec");
}

Profile profile_of(const std::string& gpu, const std::string& software) {
  const Spec spec = generated_on(gpu, software);
  return generation_profile(spec, find_profile(spec.cluster.gpu));
}

TEST(GenerationProfile, HasTheLawOfItsStacksExperts) {
  const Profile vllm = profile_of("h200-sxm", "vllm"), plain = profile_of("h200-sxm", "orrery");
  EXPECT_TRUE(vllm.generates);
  ASSERT_FALSE(vllm.experts.empty());
  EXPECT_EQ(vllm.experts.size(), find_expert_laws("vllm", find_gpu("h100-sxm")).size());
  EXPECT_TRUE(plain.experts.empty());
  // A stack of one's own that is like another has its kernels.
  EXPECT_FALSE(profile_of("h200-sxm", "{profile: vllm, step_us: 500}").experts.empty());
}

// A format that was not measured, or a kind of GPU, has the products of the profile, and the report says so.
TEST(GenerationProfile, SaysWhereExpertsHaveNoLaw) {
  const Profile sglang = profile_of("h200-sxm", "sglang");
  Op op = {.precision = Precision::bf16};
  op.work = GroupedGemm{.groups = 8, .rows = 64, .out = 1024, .in = 2048, .result_bytes = 2, .even = true};
  Profile plain = sglang;
  plain.experts.clear();
  const Gpu gpu = find_gpu("h200-sxm");
  const auto time = [&](const Profile& p) { return kernel_time(op, 2, gpu, p, "flash"); };
  const ExpertLaw* law = law_of(sglang.experts, op.precision, {});
  ASSERT_NE(law, nullptr);
  EXPECT_EQ(time(sglang), experts_time(std::get<GroupedGemm>(op.work), op.precision, gpu, *law));
  EXPECT_NE(time(sglang), time(plain));
  Profile without = sglang;
  without.experts.erase(ExpertFormat::bf16);
  EXPECT_EQ(time(without), time(plain));
  EXPECT_EQ(experts_remark(generated_on("h200-sxm", "sglang"), sglang), "");
  EXPECT_EQ(experts_remark(generated_on("h200-sxm", "orrery"), plain), "");
  EXPECT_NE(experts_remark(generated_on("mi300x", "sglang"), profile_of("mi300x", "sglang")).find("no kernels"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
