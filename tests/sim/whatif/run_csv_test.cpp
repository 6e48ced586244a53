#include <set>

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
               "op,stage,rank,step,duration_ms,start_us,mood\r\nforward-compute,0,0,5,2,100,good\n\n"
               "forward-send,0,0,5,1,2100,bad\nforward-recv,1,0,5,1,2100,\n",
               rows);
  const MeasuredRun run = rows.take();
  ASSERT_EQ(run.operations.size(), 3U);
  EXPECT_EQ(run.stages, 2);
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

// Numbers of the transfers of each row; -1: none.
std::vector<std::int64_t> groups_of(const std::string& text) {
  RunRows rows;
  read_run_csv("log.csv", text, rows);
  std::vector<std::int64_t> groups;
  for (const MeasuredOp& o : rows.take().operations) groups.push_back(o.group);
  return groups;
}

// The last stage sends chunk 0 to the first stage, which receives it as its chunk 1. Rows need not be in order of time.
TEST(RunCsv, TransfersOfSeveralChunksAreCountedInOrderOfTime) {
  const auto groups = groups_of(
      "op,stage,chunk,rank,step,start_s,duration_s\n"
      "forward-send,0,1,0,0,9,1\nforward-send,0,0,0,0,1,1\n"
      "forward-recv,1,0,0,0,1,1\nforward-recv,1,1,0,0,9,1\n"
      "forward-send,1,0,0,0,5,1\nforward-recv,0,1,0,0,5,1\n");
  EXPECT_NE(groups[0], groups[1]);
  EXPECT_EQ(groups[0], groups[3]);
  EXPECT_EQ(groups[1], groups[2]);
  EXPECT_EQ(groups[4], groups[5]);
  EXPECT_EQ((std::set<std::int64_t>(groups.begin(), groups.end())).size(), 3U);
}

// A stage may receive micro-batches in another order than that in which the rows of the other stage say they were sent.
TEST(RunCsv, TransfersOfOneMicroBatchBelongTogether) {
  const auto groups = groups_of(
      "op,stage,rank,step,mb_id,start_s,duration_s\nforward-send,0,0,0,0,1,1\nforward-send,0,0,0,1,1,1\n"
      "forward-recv,1,0,0,1,1,1\nforward-recv,1,0,0,0,1,1\ngc,1,0,0,,2,1\n");
  EXPECT_NE(groups[0], groups[1]);
  EXPECT_EQ(groups[0], groups[3]);
  EXPECT_EQ(groups[1], groups[2]);
  EXPECT_EQ(groups[4], -1);
}

TEST(RunCsv, RowsOfAllRanksMustBeThere) {
  const auto error = [](const std::string& text) -> std::string {
    try {
      groups_of(text);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const std::string header = "op,stage,rank,step,start_s,duration_s\n";
  EXPECT_EQ(error(header + "gemm,0,0,0,0,1\ngemm,1048576,0,0,0,1\n"),
            "stage 1 has no rows, but stage 1048576 has; give the rows of all stages");
  EXPECT_EQ(error(header + "gemm,0,0,0,0,1\ngemm,1,1,0,0,1\n"),
            "2 data ranks of 2 stages have only 2 rows; give the rows of every stage of every rank");
}

TEST(RunCsv, NamesAreWhole) {
  RunRows rows;
  const std::string name = std::string(39, 'a') + "\xe2\x82\xac,b";
  read_run_csv("log.csv",
               "\xef\xbb\xbfrank,step,op,start_us,duration_us\n0,0,\"" + name + "\",0,1\n0,0,\"gemm<128,64>\",1,1\n",
               rows);
  EXPECT_EQ(rows.take().ops, (std::vector<std::string>{name, "gemm<128,64>"}));
}

TEST(RunCsv, ErrorsSayWhereAndWhat) {
  const std::string header = "rank,step,op,start_us,duration_us\n";
  EXPECT_EQ(error_of("rank,step,op,start_us\n"),
            "log.csv:1: has no column duration_us; a header names rank, stage, step, op, start_us and duration_us");
  EXPECT_EQ(error_of(header + "0,0,gemm,1\n"), "log.csv:2: has 4 cells under 5 columns");
  EXPECT_EQ(error_of(header + "0,0,gemm,1,x\n"), "log.csv:2: duration_us: 'x' is no number");
  EXPECT_EQ(error_of(header + "0,0,gemm,1,-2\n"), "log.csv:2: gemm takes -2e-06 s");
  EXPECT_EQ(error_of(header + "0,0," + std::string(3000, 'x') + ",1,-2\n"),
            "log.csv:2: " + std::string(40, 'x') + " takes -2e-06 s");
  EXPECT_EQ(error_of(header + "-1,0,gemm,1,2\n"), "log.csv:2: rank -1 of stage 0 is none of a run");
  EXPECT_EQ(error_of(header + "0,0,gemm,nan,2\n"), "log.csv:2: start_us: 'nan' is no number");
  EXPECT_EQ(error_of(header + "0,0,gemm\xff,1,2\n"), "log.csv:2: cell 3 is no printable text in UTF-8");
  EXPECT_EQ(error_of(header + "0.5,0,gemm,1,2\n"), "log.csv:2: rank: '0.5' is no whole number");
  EXPECT_EQ(error_of("rank,dp_rank,step,op,start_us,duration_us\n"),
            "log.csv:1: columns rank and dp_rank give the same; leave out one of them");
}

}  // namespace
}  // namespace orrery
