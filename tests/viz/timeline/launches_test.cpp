#include "viz/timeline/launches.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"
#include "tests/viz/traces.h"

using namespace orrery;

TEST(Launches, AreFoundInEveryLayout) {
  for (const traces::Layout& layout : traces::kLayouts) {
    const Timeline t = traces::read({traces::TorchTrace(layout, 0).text(2)});
    const Launches launches = launches_of(t);
    ASSERT_FALSE(launches.empty()) << layout.version;
    const auto op_of = [&](std::string_view kernel) {
      const EventId e = traces::event_named(t, kernel);
      return e == kNoEvent || launches.op[e] == kNoEvent ? std::string("none") : t.name(launches.op[e]);
    };
    EXPECT_EQ(op_of("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT"), "aten::mm") << layout.version;
    EXPECT_EQ(op_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"), "c10d::allreduce_") << layout.version;
    for (EventId e = 0; e < t.events(); ++e) {
      if (t.kind(e) == Kind::host) continue;
      ASSERT_NE(launches.call[e], kNoEvent) << layout.version << ": " << t.name(e);
      EXPECT_EQ(t.begins[launches.call[e]], t.begins[e] - 595'000'000) << layout.version << ": " << t.name(e);
    }
  }
}

// Ranks number their launches alike.
TEST(Launches, OfOneRankAreNotThoseOfAnother) {
  const traces::Layout& layout = traces::kLayouts[0];
  const Timeline t = traces::read({traces::TorchTrace(layout, 0).text(1), traces::TorchTrace(layout, 1, 2).text(1)});
  const Launches launches = launches_of(t);
  for (EventId e = 0; e < t.events(); ++e) {
    if (t.kind(e) == Kind::host) continue;
    const auto rank = [&](EventId of) { return t.processes[t.tracks[track_of(t, of)].process].rank; };
    EXPECT_EQ(rank(e), rank(launches.call[e]));
    EXPECT_EQ(rank(e), rank(launches.op[e]));
  }
}

// A trace of very many events has its launches found one by one.
TEST(Launches, OfOneEventIsThatOfAll) {
  for (const traces::Layout& layout : traces::kLayouts) {
    const Timeline t = traces::read({traces::TorchTrace(layout, 0).text(1), traces::TorchTrace(layout, 1, 2).text(1)});
    const Launches launches = launches_of(t);
    for (EventId e = 0; e < t.events(); ++e) {
      const KernelLaunch launch = launch_of(t, e);
      EXPECT_EQ(launch.call, launches.call[e]) << layout.version << ": " << t.name(e);
      EXPECT_EQ(launch.op, launches.op[e]) << layout.version << ": " << t.name(e);
      EXPECT_EQ(launch_of(t, e, 0).call, kNoEvent);  // none of no events is it
    }
  }
}

TEST(Launches, OfATraceWithoutCallsAreNone) { EXPECT_TRUE(launches_of(two_lanes()).empty()); }
