#include "viz/draw/layout.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "viz/timeline/timeline_builder.h"

using namespace orrery;

namespace {

Timeline ranks(std::size_t count) {
  TimelineBuilder b;
  for (std::size_t i = 0; i < count; ++i) {
    Process p;
    p.name = "rank " + std::to_string(i);
    p.order = static_cast<std::int64_t>(i);
    p.coordinates[1] = static_cast<std::int64_t>(i % 2);
    const auto process = b.add_process(p);
    const auto compute = b.add_thread(process, "compute", 0), host = b.add_thread(process, "host", 1);
    b.add({0, 100'000'000, compute, b.label("a", Kind::forward), 0});
    b.add({0, 100'000'000, host, b.label("launch", Kind::host), 0});
  }
  return b.finish();
}

}  // namespace

// A sample of a lane of 100 events may hold more of them than that of a lane of 640.
TEST(Layout, TheComputeLaneIsTheOneWithMostComputeEvents) {
  TimelineBuilder b;
  b.add_process({});
  const auto cpu = b.add_thread(0, "cpu", 0), compute = b.add_thread(0, "compute", 1);
  const auto label = b.label("a", Kind::forward);
  for (Picoseconds i = 0; i < 640; ++i) b.add({i * 10, i * 10 + 5, i < 100 ? cpu : compute, label, 0});
  for (Picoseconds i = 0; i < 100; ++i) b.add({i * 10, i * 10 + 5, compute, label, 0});
  const Timeline t = b.finish(0);
  EXPECT_EQ(t.tracks[compute_track(t, 0)].name, "compute");
}

// A host without lanes to show has no row; a profile without a device is shown all the same.
TEST(Layout, AHostAloneIsShownWithItsLanesOrNotAtAll) {
  const auto made = [](bool device) {
    TimelineBuilder b;
    for (int p = 0; p < (device ? 2 : 1); ++p) {
      b.add_process({});
      const auto thread = b.add_thread(static_cast<std::uint32_t>(p), "thread", 0);
      b.add({0, 10, thread, b.label("a", p == 0 ? Kind::host : Kind::forward), 0});
    }
    return b.finish(0);
  };
  const auto rows = [](const Timeline& t, bool host) {
    LayoutOptions o = default_options(t);
    o.host = host;
    return lay_out(t, o).rows.size();
  };
  EXPECT_EQ(rows(made(true), false), 2U);
  EXPECT_EQ(rows(made(true), true), 4U);
  EXPECT_EQ(rows(made(false), false), 2U);
}

// The rows of links stand above those of ranks and below pinned lanes, and are of no rank.
TEST(Layout, LinksStandAboveTheRanks) {
  const Timeline t = ranks(2);
  LayoutOptions o = default_options(t);
  o.pinned = {2};
  const TimelineLayout l = lay_out(t, o, {"fullest NIC", "fullest NVLink"});
  ASSERT_GT(l.rows.size(), 3u);
  EXPECT_TRUE(l.rows[0].pinned);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const Row& row = l.rows[1 + i];
    EXPECT_EQ(row.kind, RowKind::link);
    EXPECT_EQ(row.process, kNone);
    EXPECT_EQ(row.counter, i);
    EXPECT_EQ(row.height, kLinkHeight);
  }
  EXPECT_EQ(l.rows[1].text, "fullest NIC");
  EXPECT_EQ(l.rows[3].kind, RowKind::process);
  EXPECT_EQ(l.pinned_height, l.rows[1].y);
}

TEST(Layout, RowsFollowEachOtherAndAreFoundAgain) {
  const Timeline t = ranks(3);
  LayoutOptions o = default_options(t);
  o.host = true;
  const TimelineLayout l = lay_out(t, o);
  ASSERT_EQ(l.rows.size(), 9u);
  int y = 0;
  for (std::size_t i = 0; i < l.rows.size(); ++i) {
    EXPECT_EQ(l.rows[i].y, y);
    EXPECT_EQ(row_at(l, y), static_cast<int>(i));
    y += l.rows[i].height;
    EXPECT_EQ(row_at(l, y - 1), static_cast<int>(i));
  }
  EXPECT_EQ(row_at(l, y), -1);
  EXPECT_EQ(row_at(l, -1), -1);
  EXPECT_EQ(l.height, y);
}

TEST(Layout, HostLanesAreShownOnRequest) {
  const Timeline t = ranks(1);
  EXPECT_EQ(lay_out(t, {}).rows.size(), 2u);
}

TEST(Layout, ClosedProcessesShowWhatTheyCompute) {
  const Timeline t = ranks(9);
  const TimelineLayout l = lay_out(t, default_options(t));
  ASSERT_EQ(l.rows.size(), 9u);
  EXPECT_FALSE(l.rows[0].open);
  EXPECT_EQ(t.tracks[l.rows[4].track].name, "compute");
  EXPECT_EQ(l.row_of_track[l.rows[4].track], 4);
}

TEST(Layout, GroupsByCoordinate) {
  const Timeline t = ranks(6);
  LayoutOptions o = default_options(t);
  o.group_by = 1;
  TimelineLayout l = lay_out(t, o);
  ASSERT_EQ(l.rows.size(), 8u);
  EXPECT_EQ(l.rows[0].text, "tensor 0 (3)");
  EXPECT_EQ(l.rows[1].text, "rank 0");
  EXPECT_EQ(l.rows[2].text, "rank 2");
  o.closed_groups.insert(0);
  l = lay_out(t, o);
  EXPECT_EQ(l.rows.size(), 5u);
  EXPECT_EQ(l.rows[0].track, 0u);  // a closed group shows its first process
  EXPECT_EQ(l.row_of_track[0], 0);
  EXPECT_EQ(l.row_of_track[4], -1);
}

TEST(Layout, LanesAreFoundByPattern) {
  const Timeline t = ranks(12);
  EXPECT_EQ(lanes_matching(t, "rank [01]: COMPUTE"), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(lanes_matching(t, "rank 1.: host$").size(), 2u);
  EXPECT_TRUE(lanes_matching(t, "^compute").empty());
  EXPECT_EQ(lanes_matching(t, "").size(), t.tracks.size());
  EXPECT_THROW(lanes_matching(t, "rank ["), Error);
}

TEST(Layout, LanesAreNamedByTheirRank) {
  Timeline t = ranks(2);
  EXPECT_EQ(lane_name(t, 2), "rank 1: compute");
  t.processes[1].name = "stage 1 (rank 8, x8)";
  t.processes[1].rank = 8;
  t.tracks[2].level = 1;
  EXPECT_EQ(lane_name(t, 2), "rank 8: compute +1");
}

TEST(Layout, PinnedTracksComeFirst) {
  const Timeline t = ranks(2);
  LayoutOptions o;
  o.pinned.insert(2);
  const TimelineLayout l = lay_out(t, o);
  EXPECT_TRUE(l.rows[0].pinned);
  EXPECT_EQ(l.rows[0].text, "rank 1: compute");
  EXPECT_EQ(l.pinned_height, kLaneHeight);
  EXPECT_EQ(l.row_of_track[2], 0);
}

TEST(Layout, TheSlowestComeFirstWithinTheirGroup) {
  TimelineBuilder b;
  for (std::int64_t p = 0; p < 4; ++p) {
    Process process;
    process.order = p;
    process.coordinates[2] = p % 2;
    b.add_process(process);
  }
  const Timeline t = b.finish();
  const auto order = [&](const LayoutOptions& options) {
    std::vector<std::uint32_t> processes;
    for (const Row& row : lay_out(t, options).rows) {
      if (row.kind == RowKind::process) processes.push_back(row.process);
    }
    return processes;
  };
  LayoutOptions options;
  options.slowest_first = {5, 9, 7, 9};
  EXPECT_EQ(order(options), (std::vector<std::uint32_t>{1, 3, 2, 0}));
  options.group_by = 2;
  EXPECT_EQ(order(options), (std::vector<std::uint32_t>{2, 0, 1, 3}));
}
