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

std::string kernel(const char* name, double begin, const std::string& args, int pid = 0) {
  return fmt::format(
      R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": {}, "tid": 7, "ts": {}, "dur": 5, "args": {{{}}}}},)", name,
      pid, begin, args);
}

std::string step_mark(int step, double begin, double time, int pid = 0) {
  return fmt::format(
      R"({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": {}, "tid": 1, "ts": {}, "dur": {}}},)",
      step, pid, begin, time);
}

std::string trace_of(int rank, const std::string& events) {
  return fmt::format(R"({{"distributedInfo": {{"rank": {}}}, "traceEvents": [{}{{"ph": "M"}}]}})", rank, events);
}

constexpr const char* kReduce = R"("Collective name": "allreduce", "Process Group Ranks": "[0, 1]")";

// Rank 0 was also profiled in step 3. Rank 1's file lists kernels out of order.
TEST(RunEvents, TransfersAreCountedWithinAStepInOrderOfTime) {
  const std::string steps = step_mark(3, 0, 100) + step_mark(4, 100, 100);
  const TraceFile first(
      trace_of(0, steps + kernel("nccl", 10, kReduce) + kernel("nccl", 110, kReduce) + kernel("nccl", 150, kReduce)),
      "first.json");
  const TraceFile second(trace_of(1, steps + kernel("nccl", 151, kReduce) + kernel("nccl", 111, kReduce)),
                         "second.json");
  const MeasuredRun run = read_measured_run({first.path(), second.path()});
  ASSERT_EQ(run.operations.size(), 5U);
  EXPECT_EQ(run.operations[1].group, run.operations[4].group);
  EXPECT_EQ(run.operations[2].group, run.operations[3].group);
  EXPECT_EQ(run.operations[2].pool, run.operations[3].pool);
  EXPECT_NE(run.operations[0].group, run.operations[1].group);
  EXPECT_NE(run.operations[1].group, run.operations[2].group);
  EXPECT_TRUE(run.remarks.empty());
}

TEST(RunEvents, TransfersOfRanksThatCountDifferentlyStandAlone) {
  const TraceFile first(trace_of(0, kernel("nccl", 10, kReduce) + kernel("nccl", 20, kReduce)), "first.json");
  const TraceFile second(trace_of(1, kernel("nccl", 20, kReduce)), "second.json");
  const MeasuredRun run = read_measured_run({first.path(), second.path()});
  for (const MeasuredOp& o : run.operations) EXPECT_EQ(o.group, -1);
  EXPECT_EQ(run.remarks, (std::vector<std::string>{
                             "3 transfers are not matched between ranks, whose numbers of them differ: in step 0 "
                             "rank 0 has 2 and rank 1 has 1"}));
}

TEST(RunEvents, CollectivesWithoutAGroupAreCounted) {
  const TraceFile first(trace_of(0, kernel("nccl", 10, R"("Collective name": "allreduce", "Process Group Name": "")") +
                                        kernel("gemm", 20, "")),
                        "first.json");
  const TraceFile second(trace_of(1, kernel("gemm", 20, "")), "second.json");
  const MeasuredRun run = read_measured_run({first.path(), second.path()});
  ASSERT_EQ(run.remarks.size(), 1U);
  EXPECT_TRUE(run.remarks[0].starts_with("1 collective names no process group")) << run.remarks[0];
}

// The profiler marks step 3 twice, the second time a little shorter. A kernel in the rest of the longer one is in it.
TEST(RunEvents, AStepThatIsMarkedTwiceIsOne) {
  std::string events = step_mark(4, 100, 100) + step_mark(3, 0, 100) + step_mark(3, 1, 90);
  for (const double begin : {0.0, 50.0, 95.0, 100.0, 199.0, 200.0}) events += kernel("gemm", begin, "");
  const TraceFile file(trace_of(0, events));
  std::vector<std::int64_t> steps;
  for (const MeasuredOp& o : read_measured_run({file.path()}).operations) steps.push_back(o.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{3, 3, 3, 4, 4}));  // the last kernel is in none
}

// Ranks of one file use the same correlation ids, each in its own process.
TEST(RunEvents, LaunchesAreOfTheKernelsProcess) {
  const auto launch = [](int pid, double begin) {
    return fmt::format(
        R"({{"ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": {}, "tid": 1, "ts": {}, "dur": 1, )"
        R"("args": {{"correlation": 5}}}},)",
        pid, begin);
  };
  std::string events;
  for (const int pid : {1, 2}) {
    events += step_mark(3, 0, 100, pid) + step_mark(4, 100, 100, pid) + launch(pid, pid == 1 ? 50 : 150);
    events +=
        fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {}, "args": {{"name": "rank {}"}}}},)", pid, pid);
    events += kernel("gemm", 190, R"("correlation": 5)", pid);
  }
  const TraceFile file(trace_of(0, events));
  const MeasuredRun run = read_measured_run({file.path()});
  ASSERT_EQ(run.operations.size(), 2U);
  EXPECT_EQ(run.operations[0].step, 3);
  EXPECT_EQ(run.operations[1].step, 4);
}

TEST(RunEvents, NumbersFollowTheirWords) {
  const auto error_of = [](const std::string& process, const std::string& name) -> std::string {
    const TraceFile file(fmt::format(
        R"([{{"ph": "X", "name": "{}", "pid": 7, "tid": 1, "ts": 0, "dur": 5, "args": {{"step": 3, "seq_id": 0}}}},
            {{"ph": "M", "name": "process_name", "pid": 7, "args": {{"name": "{}"}}}}])",
        name, process));
    try {
      read_measured_run({file.path()});
    } catch (const Error& error) {
      return std::string(error.what()).substr(file.path().size());
    }
    return "";
  };
  EXPECT_EQ(error_of("DP rank: [2]", "gemm"), "");
  EXPECT_EQ(error_of("DP rank of node 7", "gemm"), ": no number follows 'rank' in 'rank of node 7'");
  EXPECT_EQ(error_of("node 7", "gemm"), ": no process is named after its rank; name it \"DP rank 0\"");
  EXPECT_EQ(error_of("DP rank 0", "gemm\\\xff"), ": the name of an op is no printable text in UTF-8");
}

TEST(RunEvents, AFileThatNamesNoRankHasAPrintableName) {
  const std::string events = R"({"traceEvents": [)" + kernel("gemm", 0, "") + R"({"ph": "M"}]})";
  const TraceFile good(events, "good.json"), bad(events, "bad\xff.json");
  EXPECT_EQ(read_measured_run({good.path()}).workers.size(), 1U);
  EXPECT_THROW(read_measured_run({bad.path()}), Error);
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
