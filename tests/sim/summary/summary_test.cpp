// Summaries of traces in the layouts of PyTorch of several ages, of ROCm, and of our own.
#include "sim/summary/summary.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/export/chrome_trace.h"
#include "sim/memory/live_memory.h"
#include "sim/predict/predict.h"
#include "tests/sim/summary/layouts.h"

namespace orrery {
namespace {

using layouts::TraceFile;

TraceSummary summary_of(std::string_view text) {
  const TraceFile file(text);
  return summarize_traces({file.path()});
}

std::int64_t tied_by(const TraceSummary& s, Tie tie) { return s.ties[static_cast<std::size_t>(tie)]; }
std::int64_t time_of(const TraceSummary& s, KernelClass c) { return s.classes[static_cast<std::size_t>(c)].time; }

TEST(TraceSummary, OfPyTorch113) {
  const TraceSummary s = summary_of(layouts::kTorch113);
  EXPECT_EQ(s.events, 19);
  EXPECT_EQ(s.kernels, 3);
  ASSERT_EQ(s.ranks.size(), 1U);  // processes without kernels are left out
  const RankTotal& r = s.ranks[0];
  EXPECT_EQ(r.name, "rank 3");
  EXPECT_EQ(r.device, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(r.steps.count, 1);
  EXPECT_EQ(r.steps.sum, 400'000);
  EXPECT_EQ(r.times.window, 400'000);
  EXPECT_EQ(r.times.compute, 100'000);
  EXPECT_EQ(r.times.communication, 150'000);
  EXPECT_EQ(r.times.exposed_communication, 100'000);
  EXPECT_EQ(r.times.exposed_copy, 50'000);
  EXPECT_EQ(r.times.idle_host, 100'000);  // before the first kernel, and before the copy
  EXPECT_EQ(r.times.idle_other, 50'000);  // after the last kernel
  EXPECT_EQ(tied_by(s, Tie::launch), 1);
  EXPECT_EQ(tied_by(s, Tie::annotation), 1);
  EXPECT_EQ(tied_by(s, Tie::none), 1);
  EXPECT_EQ(s.by_kernel[0].name, "ncclKernel_AllReduce_RING_LL_Sum_float");
  EXPECT_EQ(s.by_kernel[0].launched_by, "nccl:all_reduce");
  EXPECT_EQ(s.by_kernel[1].launched_by, "aten::addmm");
}

// Two steps of each of four programs, which benchmarks/pytorch_traces.py recorded on an H200.
TEST(TraceSummary, OfPyTorch211AsItWasRecorded) {
  const std::string folder = ORRERY_SOURCE_DIR "/benchmarks/measured/gpu_h200_2026-11-27/traces/";
  for (const char* name : {"eager", "compile", "fsdp", "moe"}) {
    SCOPED_TRACE(name);
    const TraceSummary s = summarize_traces({folder + name + ".json.gz"});
    ASSERT_EQ(s.ranks.size(), 1U);
    EXPECT_EQ(s.ranks[0].device, "NVIDIA H200");
    EXPECT_EQ(s.ranks[0].steps.count, 2);
    EXPECT_EQ(s.tied(), s.kernels);
    EXPECT_GE(s.classified(), 0.995);
    EXPECT_GT(time_of(s, KernelClass::gemm), s.time / 3);
  }
}

TEST(TraceSummary, OfPyTorch21WithMemory) {
  const TraceSummary s = summary_of(layouts::kTorch21);
  ASSERT_EQ(s.ranks.size(), 1U);
  EXPECT_EQ(s.ranks[0].name, "device 1");
  EXPECT_EQ(s.ranks[0].allocated, 1024);
  EXPECT_EQ(s.ranks[0].reserved, 4096);
  EXPECT_EQ(tied_by(s, Tie::id), 1);
  EXPECT_EQ(s.by_operator.at(0).name, "aten::add");
  EXPECT_EQ(time_of(s, KernelClass::elementwise), 6000);
}

TEST(TraceSummary, OfPyTorch210) {
  const TraceSummary s = summary_of(layouts::kTorch210);
  ASSERT_EQ(s.ranks.size(), 1U);
  EXPECT_EQ(s.ranks[0].name, "rank 11");
  EXPECT_EQ(s.ranks[0].steps.count, 0);  // the step is marked on the device alone
  EXPECT_EQ(tied_by(s, Tie::id), 2);
  EXPECT_EQ(time_of(s, KernelClass::triton), 4999);
  EXPECT_EQ(time_of(s, KernelClass::gemm), 10'000);
  EXPECT_EQ(s.ranks[0].times.window, 15'999);
  EXPECT_EQ(s.ranks[0].times.idle_kernel, 1000);
}

TEST(TraceSummary, OfRocm) {
  const TraceSummary s = summary_of(layouts::kRocm);
  ASSERT_EQ(s.ranks.size(), 1U);
  EXPECT_EQ(s.ranks[0].name, "GPU 2");
  EXPECT_EQ(tied_by(s, Tie::id), 2);
  EXPECT_EQ(time_of(s, KernelClass::gemm), 22'441);
  EXPECT_EQ(time_of(s, KernelClass::copy), 5000);
  EXPECT_DOUBLE_EQ(s.classified(), 1);
}

TEST(TraceSummary, OfSeveralFilesAddsUp) {
  const TraceFile one(layouts::kTorch113, "one.json"), two(layouts::kTorch210, "two.json"),
      three(layouts::kTorch113, "three.json");
  const TraceSummary s = summarize_traces({one.path(), two.path(), three.path()});
  EXPECT_EQ(s.kernels, 8);
  ASSERT_EQ(s.ranks.size(), 3U);
  EXPECT_EQ(s.ranks[1].name, "rank 11");
  EXPECT_NE(s.ranks[0].name, s.ranks[2].name);
  std::int64_t time = 0;
  for (const ClassTotal& c : s.classes) time += c.time;
  EXPECT_EQ(time, s.time);
}

// A step whose host is ahead of the device, so that the report explains no gap by launches.
TEST(TraceSummary, OfOurOwnTraceIsTheReport) {
  const Spec spec = parse_spec(
      "model: {layers: 4, hidden: 4096, heads: 32, feed_forward: 11008, vocab: 32000}\nsequence: 4096\n"
      "cluster: {node: dgx-h100, nodes: 1}\ngpus: 8\n"
      "strategy: {tensor: 8, micro_batch: 4, global_batch: 8}\n",
      "spec.yaml");
  const Prediction p = predict(spec);
  const TraceFile file("", "own.json.gz");
  write_chrome_trace(file.path(), p.plan, p.trace, live_memory(p.plan, p.trace), {.device = "a device"});
  const TraceSummary s = summarize_traces({file.path()});
  ASSERT_EQ(s.ranks.size(), 1U);
  const auto& time = p.report.time_s;
  const auto of = [&](TimeKind kind) { return time[static_cast<std::size_t>(kind)]; };
  const double busy = of(TimeKind::compute) + of(TimeKind::recompute) + of(TimeKind::optimizer);
  const double exposed = of(TimeKind::exposed_tensor) + of(TimeKind::exposed_data);
  EXPECT_NEAR(seconds_of(s.ranks[0].times.compute), busy, 0.01 * busy);
  EXPECT_NEAR(seconds_of(s.ranks[0].times.exposed_communication), exposed, 0.01 * exposed);
  EXPECT_NEAR(seconds_of(s.ranks[0].times.window), p.report.step_time_s, 1e-6);
  EXPECT_EQ(tied_by(s, Tie::own), s.kernels);
  EXPECT_GT(s.ranks[0].allocated, 0);
  EXPECT_GT(s.classified(), 0.99);
}

TEST(TraceSummary, FilesWithoutKernelsAreRefused) {
  const auto refusal = [](std::string_view text) -> std::string {
    try {
      summary_of(text);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refusal("{\"traceEvents\": []}").find("holds no events"), std::string::npos);
  EXPECT_NE(refusal(R"([{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}])")
                .find("none of its 1 events is a kernel of a device; profile with ProfilerActivity.CUDA (ops"),
            std::string::npos);
  const std::string_view untimed =
      R"([{"ph":"X","cat":"kernel","name":"a","pid":1,"tid":1,"ts":1,"dur":1},
          {"ph":"X","cat":"kernel","name":"b","pid":1,"tid":1,"ts":1,"dur":-4},{"ph":"X","cat":"kernel","name":"c"}])";
  EXPECT_EQ(summary_of(untimed).untimed, 2);
}

TEST(TraceSummary, ProcessesThatNameTheirRankTwiceAreCalledByIt) {
  const TraceSummary s = summary_of(
      R"x([{"ph":"M","name":"process_name","pid":1,"args":{"name":"rank 3 (rank 3)"}},
          {"ph":"M","name":"process_name","pid":2,"args":{"name":"rank 4 (ranks 4, 5 x2)"}},
          {"ph":"X","cat":"kernel","name":"a","pid":1,"tid":1,"ts":1,"dur":1},
          {"ph":"X","cat":"kernel","name":"a","pid":2,"tid":1,"ts":1,"dur":1}])x");
  ASSERT_EQ(s.ranks.size(), 2U);
  EXPECT_EQ(s.ranks[0].name, "rank 3");
  EXPECT_EQ(s.ranks[1].name, "rank 4 (ranks 4, 5 x2)");
}

// A file of several MiB, whose parts are read by several threads.
TEST(TraceSummary, OfALargeFileIsTheSumOfItsEvents) {
  const auto line = [](int i) {
    return fmt::format(R"({{"ph":"X","cat":"kernel","name":"gemm {}","pid":{},"tid":7,"ts":{},"dur":2,)"
                       R"("args":{{"External id":{},"correlation":{},"note":"}},{{"}}}},)"
                       "\n",
                       i % 3, i % 2, 10 * i, i / 2 + 1, i + 1'000'000);
  };
  const auto operation = [](int i) {
    return fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"op {}","pid":9,"tid":9,"ts":{},"dur":2,)"
                       R"("args":{{"External id":{}}}}},)"
                       "\n",
                       i % 5, 20 * i, i + 1);
  };
  std::string text = "[\n";
  for (int i = 0; i < 20'000; ++i) text += operation(i);
  for (int i = 0; i < 40'000; ++i) text += line(i);
  const TraceSummary s = summary_of(text + R"({"ph":"M","name":"process_labels","pid":1,"args":{"labels":"GPU 1"}}])");
  EXPECT_EQ(s.events, 60'001);
  EXPECT_EQ(s.kernels, 40'000);
  EXPECT_EQ(s.time, 80'000'000);
  EXPECT_EQ(tied_by(s, Tie::id), 40'000);
  ASSERT_EQ(s.ranks.size(), 2U);
  EXPECT_EQ(s.ranks[0].name, "device 0");
  EXPECT_EQ(s.ranks[1].name, "GPU 1");
  EXPECT_EQ(s.ranks[0].times.window, 39'998 * 10'000 + 2000);
  EXPECT_EQ(s.by_operator.size(), 5U);
  EXPECT_EQ(s.by_kernel.size(), 3U);
  try {
    summary_of(text + "17]");
    ADD_FAILURE() << "damage was not seen";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(":60002: what stands here is neither a value nor an event"), std::string::npos)
        << e.what();
  }
}

TEST(TraceSummary, WhatIsLeftOutIsCountedByCategory) {
  const TraceSummary s = summary_of(
      R"([{"ph":"X","cat":"kernel","name":"a","pid":1,"tid":1,"ts":1,"dur":1},
          {"ph":"s","cat":"ac2g"},{"ph":"f","cat":"ac2g"},{"ph":"X","cat":"cuda_sync","ts":1,"dur":1},{"ph":"f","cat":"ac2g"},
          {"ph":"X","cat":"cpu_op","name":"b","ts":1e15,"dur":2e12},{"ph":"X","cat":"cuda_runtime","ts":1,"dur":1},
          {"ph":"i","name":"Record Window End"},{"ph":"C","name":"other"},{"ph":"E"}])");
  const std::map<std::string, std::int64_t> expected = {{"ac2g", 3},
                                                        {"counter", 1},
                                                        {"cpu_op without a time", 1},
                                                        {"cuda_runtime without an id", 1},
                                                        {"cuda_sync", 1},
                                                        {"instant", 1},
                                                        {"no category", 1}};
  EXPECT_EQ(s.left_out, expected);
}

// Times that a damaged file can hold: their differences and sums must fit in 64 bits.
TEST(TraceSummary, TimesBeyondReasonAreLeftOut) {
  const TraceSummary s = summary_of(
      R"([{"ph":"X","cat":"kernel","name":"a","pid":1,"tid":1,"ts":-8.9e15,"dur":1},
          {"ph":"X","cat":"kernel","name":"a","pid":1,"tid":1,"ts":-3.9e15,"dur":1},
          {"ph":"X","cat":"kernel","name":"a","pid":1,"tid":1,"ts":3.9e15,"dur":1e12},
          {"ph":"X","cat":"kernel","name":"a","pid":1,"tid":1,"ts":3.9e15,"dur":1.1e12}])");
  EXPECT_EQ(s.untimed, 2);
  EXPECT_EQ(s.ranks[0].times.window, 7'801'000'000'000'000'000);
  std::string many = "[";
  for (int i = 0; i < 9300; ++i) many += R"({"ph":"X","cat":"kernel","name":"a","pid":1,"tid":1,"ts":0,"dur":1e12},)";
  EXPECT_THROW(summary_of(many + "]"), Error);
}

}  // namespace
}  // namespace orrery
