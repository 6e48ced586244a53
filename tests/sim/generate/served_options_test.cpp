#include "sim/generate/served_options.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

ServedRow row_of(std::string framework, std::string model, std::string gpu, std::int64_t concurrency) {
  ServedRow row{.source = "a table (source_file=b.csv)", .framework = std::move(framework), .model = std::move(model)};
  row.gpu = std::move(gpu);
  row.concurrency = concurrency;
  row.input = row.output = 1024;
  return row;
}

TEST(ServedOptions, AreOfInferenceXAlone) {
  ServedRow row = row_of("sglang 0.5.9", "deepseek-r1", "b200", 4);
  EXPECT_EQ(served_options(row).shortest, 0.8);
  EXPECT_EQ(served_options(row).poll_passes, 10);
  row.source = "another";
  EXPECT_EQ(served_options(row).shortest, 1);
  EXPECT_EQ(served_options(row).poll_passes, 1);
}

TEST(ServedOptions, PollLessOftenForManyClients) {
  EXPECT_EQ(served_options(row_of("sglang 0.5.9", "deepseek-r1", "b300", 15)).poll_passes, 10);
  EXPECT_EQ(served_options(row_of("sglang 0.5.9", "deepseek-r1", "b300", 16)).poll_passes, 30);
  EXPECT_EQ(served_options(row_of("sglang 0.5.9", "deepseek-r1", "h200-sxm", 16)).poll_passes, 1);
  EXPECT_EQ(served_options(row_of("vllm 0.18.0", "deepseek-r1", "b300", 16)).poll_passes, 1);
}

TEST(ServedOptions, StreamPiecesWhereRowsShowThem) {
  ServedRow row = row_of("trtllm ", "llama-3.1-70b", "h200-sxm", 4);
  EXPECT_EQ(served_options(row).stream_passes, 20);
  row.output = 8192;
  EXPECT_EQ(served_options(row).stream_passes, 1);
}

TEST(ServedOptions, OverlapByStackAndRelease) {
  EXPECT_TRUE(served_options(row_of("vllm 0.14.0", "gpt-oss-120b", "b200", 4)).overlaps);
  EXPECT_FALSE(served_options(row_of("vllm 0.12.0", "gpt-oss-120b", "b200", 4)).overlaps);
  EXPECT_TRUE(served_options(row_of("sglang 0.5.1", "gpt-oss-120b", "b200", 4)).overlaps);
  EXPECT_FALSE(served_options(row_of("vLLM 0.9", "gpt-oss-120b", "b200", 4)).overlaps);
  EXPECT_FALSE(served_options(row_of("vllm ", "gpt-oss-120b", "b200", 4)).overlaps) << "an early one";
  EXPECT_FALSE(served_options(row_of("trtllm 1.0.0", "gpt-oss-120b", "b200", 4)).overlaps);
}

// A pass of TensorRT-LLM's configurations for DeepSeek-R1 takes the answers, one prompt and 64 tokens, in whole 64.
TEST(ServedOptions, FollowTheCollectionOfConfigurations) {
  ServedRow row = row_of("trtllm 1.2.0rc6.post2", "deepseek-r1", "b200", 128);
  row.attention_data = 1;
  EXPECT_EQ(served_options(row).pass_tokens, 1216);
  EXPECT_EQ(served_options(row).balance_passes, 0);
  EXPECT_FALSE(served_options(row).cuts_prompts);
  row.framework = "trtllm 1.2.0rc6.post3";
  row.concurrency = 16;
  EXPECT_EQ(served_options(row).pass_tokens, 1152);
  EXPECT_EQ(served_options(row).drafts, 3);
  row.concurrency = 256;
  row.attention_data = 4;
  EXPECT_EQ(served_options(row).pass_tokens, 1216);
  EXPECT_EQ(served_options(row).sequences, 64);
  EXPECT_EQ(served_options(row).balance_passes, 60);
  EXPECT_EQ(served_options(row).drafts, 1);
  EXPECT_EQ(served_options(row_of("trtllm 1.2.0rc2", "gpt-oss-120b", "b200", 64)).pass_tokens, 20'000);
  EXPECT_EQ(served_options(row_of("trtllm ", "llama-3.1-70b", "b200", 64)).pass_tokens, 8192);
  EXPECT_EQ(served_options(row_of("vllm 0.18.0", "deepseek-r1", "b200", 64)).drafts, 0);
}

// Rows of InferenceX are of one server that is sent text.
TEST(ServedOptions, TokenisePromptsWhereAServerDoes) {
  ServedRow row = row_of("vllm 0.18.0", "gpt-oss-120b", "b200", 4);
  EXPECT_GT(served_options(row).tokenise_s, 0);
  row.source = "another";
  EXPECT_EQ(served_options(row).tokenise_s, 0);
}

// trtllm-bench's estimates for 70B in fp8 on four H100 (tuning.py, finetune_setting), computed by hand.
TEST(ServedOptions, AreTunedAsByTrtllmBench) {
  ServedRow row = row_of("TensorRT-LLM 0.17", "llama-3.1-70b", "h100-sxm", 0);
  const auto tuned = [&](std::int64_t input, std::int64_t output, double requests) {
    row.input = input;
    row.output = output;
    ServedOptions options;
    tune(row, requests, options);
    return std::pair{options.sequences, options.pass_tokens};
  };
  EXPECT_EQ(tuned(128, 128, 5000), std::pair(std::int64_t{4096}, std::int64_t{8192}));
  EXPECT_EQ(tuned(2048, 128, 660), std::pair(std::int64_t{768}, std::int64_t{11264}));
  EXPECT_EQ(tuned(128, 2048, 610), std::pair(std::int64_t{640}, std::int64_t{2048}));
  EXPECT_EQ(tuned(20000, 2000, 20), std::pair(std::int64_t{64}, std::int64_t{2048}));
  EXPECT_FALSE(served_options(row).tunes) << "another server of this release";
  row.source = "perf-overview.md @258c7540 (v0.17)";
  EXPECT_TRUE(served_options(row).tunes);
}

TEST(ServedOptions, HaveTheTableOfTrtllmBenchUpTo014) {
  ServedRow row = row_of("TensorRT-LLM 0.14", "llama-3-70b", "h100-sxm", 0);
  row.source = "perf-overview.md (NVIDIA v0.14)";
  row.tensor = 8;
  EXPECT_EQ(served_options(row).sequences, 8192);
  EXPECT_EQ(served_options(row).pass_tokens, 16384);
  row.tensor = 4;
  EXPECT_EQ(served_options(row).sequences, 2048);
  EXPECT_EQ(served_options(row).pass_tokens, 1024);
  row.source = "Triton";
  EXPECT_EQ(served_options(row).pass_tokens, 8192);
}

}  // namespace
}  // namespace orrery
