// Whether the order of moments that one replay noted holds for the times of another class of ranks.
#include "sim/memory/replay_moments.h"

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

// Tasks of one class, of whose spans only the time of issue and the end matter here.
struct Times {
  Plan plan = make_plan(test::spec_of(test::kSmall, ""));
  MemoryOptions options;
  Trace trace;

  Times() {
    trace.spans.resize(plan.task_count());
    trace.host.resize(plan.classes.size());
  }
  void at(TaskId t, Picoseconds issued, Picoseconds ended) {
    trace.spans[t].issued = issued;
    trace.spans[t].ended = ended;
  }
  bool hold(const ReplayMoments& moments) const {
    return moments.same_for(HostTimes(plan, trace, options, 0), trace, 0);
  }
};

// A block that waits for an event is free before the first request after the event, whatever the times between are.
TEST(ReplayMoments, HoldWhereEventsEndBetweenTheSameRequests) {
  Times times;
  times.at(0, 10, 25), times.at(1, 20, 30), times.at(2, 30, 40);
  ReplayMoments moments;
  moments.request(0, kNone, false, 0, 10);
  moments.wait(0, 0, kNone, 0);
  moments.request(1, kNone, false, 0, 20);
  moments.request(2, kNone, false, 0, 30);
  ASSERT_TRUE(moments.close(times.trace, 0));
  const auto same = [&](Picoseconds ended) {
    times.at(0, 10, ended);
    return times.hold(moments);
  };
  EXPECT_TRUE(same(21));
  EXPECT_TRUE(same(30));
  EXPECT_FALSE(same(20)) << "free one request earlier";
  EXPECT_FALSE(same(31)) << "free after the last request";
  EXPECT_FALSE(same(0));
  times.at(0, 40, 25), times.at(1, 20, 30);
  EXPECT_TRUE(times.hold(moments)) << "a late request before the free";
}

// The second request is retried: the host waits from 20 to 25, the end of task 0, and makes the third request by 5
// later, at 35, after the end of task 3.
TEST(ReplayMoments, HostsFallBehindAtRetries) {
  Times times;
  times.at(0, 10, 25), times.at(1, 20, 30), times.at(2, 30, 40), times.at(3, 40, 33);
  ReplayMoments moments;
  moments.request(0, kNone, false, 0, 10);
  moments.wait(0, 0, kNone, 0);
  moments.request(1, kNone, false, 0, 20);
  moments.retry();
  moments.wait(3, 0, kNone, 0);
  moments.request(2, kNone, false, 0, 35);
  ASSERT_TRUE(moments.close(times.trace, 0));
  EXPECT_TRUE(times.hold(moments));
  const auto same = [&](Picoseconds ended) {
    times.at(0, 10, ended);
    return times.hold(moments);
  };
  EXPECT_TRUE(same(23)) << "late by 3";
  EXPECT_FALSE(same(22)) << "late by 2, the third request comes before the end of task 3";
  EXPECT_FALSE(same(20)) << "nothing is left to wait for at the retry";
  EXPECT_TRUE(same(1000)) << "a retry waits as long as it takes";
  times.trace.host[0] = {{2, 0, 0}};
  EXPECT_FALSE(same(25)) << "the host waits before the third request anyway, and is not late";
}

// Memory that a task of the second step frees waits for that task's end in the second step.
TEST(ReplayMoments, HostsAreNotLateInTheNextStep) {
  Times times;
  times.trace.step_time = 100;
  times.at(0, 10, 25), times.at(1, 20, 30), times.at(2, 30, 33);
  ReplayMoments moments;
  moments.request(0, kNone, false, 0, 10);
  moments.wait(0, 0, kNone, 0);
  moments.request(1, kNone, false, 0, 20);
  moments.retry();
  moments.request(0, kNone, false, 1, 110);
  moments.wait(2, 1, kNone, 0);
  moments.request(2, kNone, false, 1, 130);
  ASSERT_TRUE(moments.close(times.trace, 0));
  EXPECT_TRUE(times.hold(moments));
  times.at(0, 10, 90);
  EXPECT_TRUE(times.hold(moments)) << "70 late, but only in the first step";
  times.at(2, 33, 33);
  EXPECT_FALSE(times.hold(moments)) << "the request comes at the end of task 2, not before";
}

}  // namespace
}  // namespace orrery
