#include "sim/generate/served.h"

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

class ServedFile : public testing::Test {
 protected:
  std::vector<ServedRow> read(const std::string& text) {
    std::ofstream(folder_.path("rows.json")) << text;
    return read_served(folder_.path("rows.json"));
  }

 private:
  test::TemporaryFolder folder_;
};

constexpr const char* kRows = R"([
  {"id": "static", "mode": "static batch", "framework": "TensorRT-LLM 0.9", "model": "llama-2-70b", "gpu": "h100-sxm",
   "gpus": 4, "tensor": 4, "pipeline": 1, "precision": "fp8", "batch": 64, "isl": 128, "osl": 128,
   "metric": "output tokens/s per GPU", "value": 1000},
  {"id": "prompt", "mode": "prefill alone, batch 1", "framework": "TensorRT-LLM 0.9", "model": "llama-2-70b",
   "gpu": "h100-sxm", "gpus": 8, "tensor": 8, "precision": "fp8", "batch": 1, "isl": 2048, "osl": 1,
   "metric": "first token latency, ms", "value": 85.1},
  {"id": "online", "mode": "online, fixed concurrency, one pool", "framework": "vllm 0.11", "model": "qwen3-32b",
   "gpu": "h100-sxm", "gpus": 2, "tensor": 2, "precision": "bf16", "isl": 1024, "osl": 1024, "concurrency": 16,
   "metric": "mean TTFT ms, mean TPOT ms", "value": [300, 20]},
  {"id": "offline", "mode": "offline max throughput, in-flight batching", "framework": "TensorRT-LLM 1.0",
   "model": "llama-3.1-8b", "gpu": "h200-sxm", "gpus": 1, "precision": "fp8", "isl": 128, "osl": 128,
   "requests": 30000, "metric": "output tokens/s, all GPUs", "value": 30000},
  {"id": "rate", "mode": "online serving, 500 requests", "framework": "TensorRT-LLM 0.14", "model": "llama-3.1-70b",
   "gpu": "h100-sxm", "gpus": 4, "tensor": 4, "pipeline": 1, "precision": "bf16", "isl": 512, "osl": 256,
   "requests": 100, "qps": 4, "ttft_mean_ms": 70, "itl_mean_ms": 25, "metric": "output tokens/s, all GPUs",
   "value": 900},
  {"id": "unknown", "mode": "static batch", "framework": "other 1", "model": "llama-2-7b", "gpu": "h100-sxm",
   "precision": "fp8", "batch": 8, "isl": 128, "osl": 128, "metric": "output tokens/s per GPU", "value": 1}])";

TEST_F(ServedFile, EveryKindOfRowIsPredicted) {
  const std::vector<ServedRow> rows = read(kRows);
  ASSERT_EQ(rows.size(), 6U);
  std::vector<ServedCase> cases;
  for (const ServedRow& row : rows) cases.push_back(predict_served(row));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(cases[i].refused, "") << rows[i].id;
    ASSERT_EQ(cases[i].figures.size(), rows[i].id == "rate" ? 3U : rows[i].id == "online" ? 2U : 1U) << rows[i].id;
    // The right order of magnitude; how near predictions come, `orrery validate --served` says.
    EXPECT_GT(cases[i].figures[0].ratio(), 0.5) << rows[i].id;
    EXPECT_LT(cases[i].figures[0].ratio(), 2) << rows[i].id;
  }
  EXPECT_EQ(cases[5].refused, "stack other is not built in");
}

// The figures of a batch whose sequences begin and end together are all of one prediction.
TEST_F(ServedFile, FiguresOfABatchAgree) {
  const auto figure = [&](const std::string& metric, int output) {
    const std::vector<ServedRow> rows = read(fmt::format(
        R"([{{"id": "a", "mode": "a grid", "framework": "LMDeploy", "model": "llama-2-7b", "gpu": "a100-sxm-80gb",
            "gpus": 2, "tensor": 2, "precision": "fp16", "batch": 8, "isl": 256, "osl": {}, "metric": "{}",
            "value": 1}}])",
        output, metric));
    const ServedCase c = predict_served(rows[0]);
    EXPECT_EQ(c.refused, "") << metric;
    return c.figures.empty() ? 0 : c.figures[0].predicted;
  };
  const double all_s = figure("latency, s", 64), first_s = figure("first token latency, s", 1);
  EXPECT_NEAR(figure("mean latency, ms", 64), 1e3 * all_s, 1e-6 * all_s);
  EXPECT_NEAR(figure("time per output token, ms", 64), 1e3 * (all_s - first_s) / 63, 1e-6 * all_s);
  EXPECT_NEAR(figure("output tokens/s", 64), 8 * 64 / all_s, 1e-6 / all_s);
  EXPECT_NEAR(figure("output tokens/s per GPU", 64), 8 * 64 / all_s / 2, 1e-6 / all_s);
  EXPECT_NEAR(figure("tokens/s per GPU", 1), 8 * 256 / first_s / 2, 1e-6 / first_s);
}

TEST_F(ServedFile, MetricsAndLoadsThatAreNotKnownAreRefused) {
  const auto refusal = [&](const std::string& keys) {
    return predict_served(read(R"([{"id": "a", "framework": "vLLM", "model": "llama-3.2-1b", "gpu": "h100-sxm",
        "precision": "bf16", "isl": 256, "osl": 64, "value": 1, )" +
                               keys + "}]")[0])
        .refused;
  };
  EXPECT_EQ(refusal(R"("batch": 8, "metric": "inter-token latency, ms")"),
            "metric 'inter-token latency, ms' of a batch is not built in");
  EXPECT_EQ(refusal(R"("batch": 8, "metric": "latency, minutes")"),
            "metric 'latency, minutes' ends in neither ', ms' nor ', s'");
  const std::string clients = R"("concurrency": 4, "metric": "output tokens/s", "mode": )";
  EXPECT_EQ(refusal(clients + R"("prefill and decode apart")"), "mode 'prefill and decode apart' is not built in");
  EXPECT_EQ(refusal(clients + R"("150 requests")"), "");
}

TEST_F(ServedFile, LengthsNotSaidAreThoseOfTheStacksBenchmark) {
  const auto token_ms = [&](const std::string& stack) {
    return predict_served(read(R"([{"id": "a", "mode": "decode, batch 1", "framework": ")" + stack + R"(",
        "model": "llama-2-7b", "gpu": "jetson-orin", "precision": "fp16", "batch": 1,
        "metric": "time per output token, ms", "value": 84}])")[0]);
  };
  const ServedCase known = token_ms("TinyChat");
  ASSERT_EQ(known.figures.size(), 1U) << known.refused;
  EXPECT_NEAR(known.figures[0].ratio(), 1, 0.2);
  EXPECT_EQ(token_ms("vLLM").refused, "a batch needs isl and osl, the lengths of prompts and answers");
}

TEST_F(ServedFile, SaysWhatIsWrongAndWhere) {
  const auto refusal = [&](const std::string& text) {
    try {
      read(text);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("{").find("rows.json"), std::string::npos);
  EXPECT_NE(refusal(R"([{"id": "a", "metric": "x"}])").find("value"), std::string::npos);
  EXPECT_NE(refusal(R"([{"id": "a", "metric": "x", "value": "y"}])").find("value"), std::string::npos);
}

}  // namespace
}  // namespace orrery
