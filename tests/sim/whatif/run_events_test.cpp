#include "sim/whatif/run_events.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/sim/summary/layouts.h"

namespace orrery {
namespace {

using layouts::TraceFile;

TEST(RunEvents, RowsHaveTheirRankAndStageInNames) {
  const TraceFile file(R"([
    {"ph": "X", "name": "forward-compute", "pid": 7, "tid": 10, "ts": 100, "dur": 50, "args": {"step": 3, "model_chunk": 0, "seq_id": 0}},
    {"ph": "X", "name": "forward-recv", "pid": 7, "tid": 11, "ts": 90, "dur": 10, "args": {"step": 3, "model_chunk": -1, "seq_id": 0}},
    {"ph": "X", "name": "forward-send", "pid": 7, "tid": 1, "ts": 90, "dur": 10, "args": {"step": 3, "model_chunk": -1, "seq_id": 0}},
    {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "DP rank [2]"}},
    {"ph": "M", "name": "thread_name", "pid": 7, "tid": 1, "args": {"name": "PP rank 0, TP rank 0, pp-comm"}},
    {"ph": "M", "name": "thread_name", "pid": 7, "tid": 10, "args": {"name": "PP rank 1, TP rank 0, compute"}},
    {"ph": "M", "name": "thread_name", "pid": 7, "tid": 11, "args": {"name": "PP rank 1, TP rank 0, pp-comm"}}])");
  const MeasuredRun run = read_measured_run({file.path()});
  ASSERT_EQ(run.operations.size(), 3U);
  EXPECT_EQ(run.workers, (std::vector<std::string>{"2"}));
  EXPECT_EQ(run.stages, 2);
  EXPECT_EQ(run.operations[0].stage, 1);
  EXPECT_EQ(run.operations[0].step, 3);
  EXPECT_EQ(run.operations[1].group, run.operations[2].group);
  EXPECT_EQ(run.operations[1].lane, run.operations[2].lane);  // lanes of one name; ranks tell them apart
}

std::string kernels_of(int rank, double late) {
  const auto event = [&](const char* category, const char* name, int stream, double begin, double time,
                         const std::string& args) {
    return fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}},)",
        category, name, stream, begin, time, args);
  };
  const std::string group =
      R"("Collective name": "allreduce", "Process Group Ranks": "[0, 1]", "Process Group Description": "data")";
  return fmt::format(R"({{"distributedInfo": {{"rank": {}}}, "traceEvents": [)", rank) +
         event("user_annotation", "ProfilerStep#4", 1, 0, 100, "") +
         event("kernel", "ampere_bf16_gemm", 7, 10, 20 + late, R"("External id": 1)") +
         event("kernel", "ncclDevKernel_AllReduce", 9, 30 + late, 35 - late, group) +
         event("kernel", "ampere_bf16_gemm", 7, 200, 5, R"("External id": 2)") + R"({"ph": "M"}]})";
}

// The kernel behind the profiler's step belongs to no step. The all-reduce begins when the later rank enters it.
TEST(RunEvents, KernelsOfAFileForEachRank) {
  const TraceFile first(kernels_of(0, 0), "first.json"), second(kernels_of(1, 15), "second.json");
  const MeasuredRun run = read_measured_run({first.path(), second.path()});
  ASSERT_EQ(run.operations.size(), 4U);
  EXPECT_EQ(run.workers, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(run.operations[0].step, 4);
  EXPECT_EQ(run.operations[0].pool, run.operations[2].pool);
  EXPECT_EQ(run.operations[1].group, run.operations[3].group);
  EXPECT_EQ(run.ops, (std::vector<std::string>{"gemm", "all_reduce data"}));
  EXPECT_TRUE(run.transfers[1]);
}

TEST(RunEvents, FilesThatHoldNoRunAreErrors) {
  const auto error_of = [](std::string_view text) -> std::string {
    const TraceFile file(text);
    try {
      read_measured_run({file.path()});
    } catch (const Error& error) {
      return std::string(error.what()).substr(file.path().size());
    }
    return "";
  };
  EXPECT_EQ(error_of("  \n"), ": is empty; give a trace or rows of a run");
  EXPECT_EQ(error_of("PAR1...").substr(0, 40), ": is a Parquet file, which is not read; ");
  EXPECT_EQ(error_of(R"({"traceEvents": []})"), ": holds no operation of a run; give a trace or rows of one");
}

}  // namespace
}  // namespace orrery
