#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/whatif/run_rows.h"

namespace orrery {
namespace {

std::string error_of(const std::string& text) {
  RunRows rows;
  try {
    read_run_csv("log.csv", text, rows);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RunCsv, ReadsColumnsOfAnyOrderAndUnit) {
  RunRows rows;
  read_run_csv("log.csv",
               "op,stage,rank,step,duration_ms,start_us,mood\r\nforward-compute,1,0,5,2,100,good\n\n"
               "forward-send,1,0,5,1,2100,bad\nforward-recv,2,0,5,1,2100,\n",
               rows);
  const MeasuredRun run = rows.take();
  ASSERT_EQ(run.operations.size(), 3U);
  EXPECT_EQ(run.stages, 3);
  EXPECT_DOUBLE_EQ(run.operations[0].begin, 1e-4);
  EXPECT_DOUBLE_EQ(run.operations[0].end, 2.1e-3);
  EXPECT_EQ(run.operations[0].group, -1);
  EXPECT_EQ(run.operations[1].group, run.operations[2].group);
  EXPECT_EQ(run.ops[run.operations[2].op], "forward-pp-comm");
  EXPECT_NE(run.operations[0].lane, run.operations[1].lane);
}

// With several chunks on a rank the last stage sends to the first one.
TEST(RunCsv, ChunksGoRoundTheStages) {
  RunRows rows;
  read_run_csv("log.csv",
               "op,stage,rank,step,seq_id,duration_s,start_s\nforward-send,0,0,0,0,1,1\nforward-recv,1,0,0,0,1,1\n"
               "forward-send,1,0,0,0,1,4\nforward-recv,0,0,0,0,1,4\n",
               rows);
  const MeasuredRun run = rows.take();
  EXPECT_EQ(run.operations[0].group, run.operations[1].group);
  EXPECT_EQ(run.operations[2].group, run.operations[3].group);
  EXPECT_NE(run.operations[0].group, run.operations[2].group);
}

TEST(RunCsv, ErrorsSayWhereAndWhat) {
  const std::string header = "rank,step,op,start_us,duration_us\n";
  EXPECT_EQ(error_of("rank,step,op,start_us\n"),
            "log.csv:1: has no column duration_us; a header names rank, stage, step, op, start_us and duration_us");
  EXPECT_EQ(error_of(header + "0,0,gemm,1\n"), "log.csv:2: has 4 cells under 5 columns");
  EXPECT_EQ(error_of(header + "0,0,gemm,1,x\n"), "log.csv:2: duration_us: 'x' is no number of a run");
  EXPECT_EQ(error_of(header + "0,0,gemm,1,-2\n"), "log.csv:2: gemm takes -2e-06 s");
  EXPECT_EQ(error_of(header + "-1,0,gemm,1,2\n"), "log.csv:2: rank -1 of stage 0 is none of a run");
  EXPECT_EQ(error_of(header + "0,0,gemm,nan,2\n"), "log.csv:2: start_us: 'nan' is no number of a run");
}

}  // namespace
}  // namespace orrery
