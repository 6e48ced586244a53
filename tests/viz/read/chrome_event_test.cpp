#include "viz/read/chrome_event.h"

#include <gtest/gtest.h>

using namespace orrery;

TEST(ChromeEvent, ReadsMembersWhateverTheirOrder) {
  const std::string text = R"( {"args":{"phase":"forward","x":[{}],"micro-batch":3},"dur":2,"other":{"ts":9},"ts":1.5,
    "pid":"a","tid":7,"id":4,"cat":"kernel","name":"n \"quoted\"","ph":"X"}, )";
  JsonScan scan(text);
  scan.peek();
  RawEvent raw;
  ASSERT_TRUE(read_event(scan, text, raw));
  EXPECT_EQ(raw.phase, "X");
  EXPECT_EQ(raw.ts, "1.5");
  EXPECT_EQ(raw.duration, "2");
  EXPECT_EQ(raw.pid, "a");
  EXPECT_EQ(raw.id, "4");
  EXPECT_EQ(raw.category, "kernel");
  EXPECT_EQ(raw.name, R"(n \"quoted\")");
  EXPECT_EQ(raw.args.phase, "forward");
  EXPECT_EQ(raw.args.micro_batch, "3");
  EXPECT_EQ(raw.position, 1u);
  EXPECT_TRUE(scan.take(','));
}

TEST(ChromeEvent, RanksHaveAPlaceInTheirGroup) {
  EXPECT_EQ(place_in_ranks("[0, 8, 16]", 0), 0);
  EXPECT_EQ(place_in_ranks("[0, 8, 16]", 16), 2);
  EXPECT_EQ(place_in_ranks("[0, 8, 16]", 1), -1);
  EXPECT_EQ(place_in_ranks("[0, 1, ..., 63]", 63), -1);
  EXPECT_EQ(place_in_ranks("", 0), -1);
  EXPECT_EQ(place_in_ranks("[99999999999999999999999, 4", 4), 1);
}

TEST(ChromeEvent, BrokenOnesAreNone) {
  for (const std::string text :
       {"{", "{\"ph\"", "{\"ph\":\"X\"", "{\"ph\":\"X\",", "{\"args\":{\"a\":1", "{\"ph\" 3}", "{1}"}) {
    JsonScan scan(text);
    scan.peek();
    RawEvent raw;
    EXPECT_FALSE(read_event(scan, text, raw)) << text;
  }
}

TEST(ChromeEvent, ProcessNamesTellRanksAndCoordinates) {
  Process p;
  p.name = "stage 2 (ranks 32, 33, ... x16)";
  read_process_name(p);
  EXPECT_EQ(p.rank, 32);
  EXPECT_EQ(p.ranks, 16);
  EXPECT_EQ(p.name, "stage 2 (rank 32, x16)");
  EXPECT_EQ(p.coordinates[2], 2);
  p.name = "rank 5 [TP01-DP03-PP00-EP02]";
  read_process_name(p);
  EXPECT_EQ(p.coordinates, (std::array<std::int64_t, 5>{3, 1, 0, -1, 2}));
  Process alone;
  alone.name = "rank 3 (rank 3)";
  read_process_name(alone);
  EXPECT_EQ(alone.name, "rank 3");
}
