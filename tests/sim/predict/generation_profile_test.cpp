#include "sim/predict/generation_profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"

namespace orrery {
namespace {

Profile profile_of(const std::string& gpu, const std::string& software) {
  const Spec spec =
      parse_spec(fmt::format("{{model: qwen3-30b-a3b, workload: generate, generate: {{batch: 1, input: 8, "
                             "output: 8}}, cluster: {{gpu: {}, nodes: 1}}, gpus: 1, software: {}}}",
                             gpu, software),
                 "spec");
  return generation_profile(spec, find_profile(spec.cluster.gpu));
}

TEST(GenerationProfile, HasTheLawOfItsStacksExperts) {
  const Profile vllm = profile_of("h200-sxm", "vllm"), plain = profile_of("h200-sxm", "orrery");
  EXPECT_TRUE(vllm.generates);
  ASSERT_TRUE(vllm.experts);
  EXPECT_EQ(vllm.experts->bf16, find_expert_law("vllm", find_gpu("h100-sxm"))->bf16);
  EXPECT_FALSE(plain.experts);
  // A stack of one's own that is like another has its kernels.
  EXPECT_TRUE(profile_of("h200-sxm", "{profile: vllm, step_us: 500}").experts);
}

}  // namespace
}  // namespace orrery
