#include "sim/generate/pass_remark.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"

namespace orrery {
namespace {

std::string remark(std::int64_t batch, std::int64_t chunk, const std::string& software = "vllm") {
  return pass_remark(parse_spec(fmt::format("{{model: llama-3.1-8b, generate: {{batch: {}, input: 2048, chunk: {}}}, "
                                            "cluster: {{node: dgx-h100, nodes: 1}}, gpus: 8, software: {}, strategy: "
                                            "{{tensor: 8}}}}",
                                            batch, chunk, software),
                                "t.yaml"));
}

TEST(PassRemark, NamesTheChunkThatKeepsToTheStacksLimit) {
  EXPECT_NE(remark(64, 0).find("131,072 tokens of 64 prompts, vllm at most 8,192"), std::string::npos) << remark(64, 0);
  EXPECT_NE(remark(64, 0).find("generate.chunk=128 keeps to it"), std::string::npos);
  EXPECT_NE(remark(64, 129, "sglang").find("generate.chunk=128"), std::string::npos);
  EXPECT_EQ(remark(64, 128), "");
  EXPECT_EQ(remark(4, 0), "");
  EXPECT_NE(remark(10'000, 1).find("set a smaller batch"), std::string::npos);
}

TEST(PassRemark, IsNotOfStacksThatServeNoRequests) {
  EXPECT_EQ(remark(64, 0, "tinychat"), "");
  EXPECT_EQ(remark(64, 0, "pytorch-fsdp"), "");
}

}  // namespace
}  // namespace orrery
