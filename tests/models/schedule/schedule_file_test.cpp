#include "models/schedule/schedule_file.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/schedule/transfer_order.h"

namespace orrery {
namespace {

const ScheduleShape kTwoByTwo = {2, 2, 1, {}};

std::string refusal_of(const std::string& text, const ScheduleShape& shape = kTwoByTwo) {
  try {
    order_transfers(parse_schedule(text, "order.txt", shape));
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(ScheduleFile, ReadsWhatPyTorchPrints) {
  const Schedule s = parse_schedule("# 1F1B\nF0 F1 B0 B1\n\n1F0,1I0,,1F1,1B1,1W0\n", "order.txt", kTwoByTwo);
  ASSERT_EQ(s.order.size(), 2U);
  EXPECT_EQ(s.order[0].size(), 4U);
  ASSERT_EQ(s.order[1].size(), 5U);
  EXPECT_EQ(s.order[1][1].phase, Phase::input_gradient);
  EXPECT_EQ(s.order[1][4].phase, Phase::weight_gradient);
  EXPECT_EQ(s.order[1][4].micro_batch, 0);
  EXPECT_TRUE(splits_backward(s));
}

TEST(ScheduleFile, NumbersTheChunksOfAStage) {
  const Schedule s = parse_schedule("0F0 2F0 2B0 0B0\n1F0 3F0 3B0 1B0\n", "order.txt", ScheduleShape{2, 1, 2, {}});
  EXPECT_EQ(s.stage_of, (std::vector<std::int32_t>{0, 1, 0, 1}));
  EXPECT_EQ(s.chunk_of, (std::vector<std::int32_t>{0, 0, 1, 1}));
  EXPECT_EQ(s.order[1][2].chunk, 1);
}

TEST(ScheduleFile, ReadsAV) {
  const Schedule s = parse_schedule("0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0\n", "order.txt", ScheduleShape{2, 1, 2, {}});
  EXPECT_EQ(s.stage_of, (std::vector<std::int32_t>{0, 1, 1, 0}));
  EXPECT_EQ(s.chunk_of, (std::vector<std::int32_t>{0, 0, 1, 1}));
}

TEST(ScheduleFile, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal_of("F0 F1 B0 B1\nF0 B0 F1 B1\n"), "");
  EXPECT_EQ(refusal_of("F0 F1 B0 B1\n"), "order.txt: has 1 lines of actions; pipeline: 2 needs one a stage");
  EXPECT_EQ(refusal_of("F0 F1 B0 B1\nF0 B0 F1 X1\n"),
            "order.txt:2: 'X1' is no action; write F0, B0, I0 or W0, or 1F0 for virtual stage 1");
  EXPECT_EQ(refusal_of("F0 F1 B0 B1\nF0 B0 F1 B\n"), "order.txt:2: 'B' is no action; write F0, B0, I0, W0");
  EXPECT_EQ(refusal_of("F0 F1 B0 B1\nF0 B0 F1 B2\n"), "order.txt:2: 'B2': the step has micro-batches 0 to 1");
  EXPECT_EQ(refusal_of("F0 F1 B0 B1\nF0 B0 F1 2B1\n"),
            "order.txt:2: '2B1': the model has virtual stages 0 to 1 (pipeline: 2, virtual_stages: 1)");
  EXPECT_EQ(refusal_of("F0 F1 B0 B1\nF0 B0 F1\n"),
            "order.txt:2: virtual stage 1, micro-batch 1: only 'F' is there; a micro-batch runs F, then B or I and W");
  EXPECT_EQ(refusal_of("F0 F1 B0 B1\nF0 B0 F1 W1\n"),
            "order.txt:2: virtual stage 1, micro-batch 1: W after 'F'; a micro-batch runs F, then B or I and W");
  EXPECT_EQ(refusal_of("F0 F1 B0 B1 1F0\nF0 B0 F1 B1\n"),
            "order.txt:2: virtual stage 1 runs in line 1 too; it has one place");
  EXPECT_EQ(refusal_of("F0 B0 F1 B1\nF1 B1 F0 B0\n"),
            "schedule: deadlock: stage 0 waits for ever before B0 of chunk 0");
}

}  // namespace
}  // namespace orrery
