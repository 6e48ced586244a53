// V-shaped schedules (two virtual stages per stage): closed forms of the paper, checked by an independent evaluator.
#include "models/schedule/v_schedules.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/models/play_orders.h"

namespace orrery {
namespace {

struct Form {
  std::string name;
  std::int64_t (*most)(std::int64_t p);    // micro-batches' activations
  std::int64_t (*bubble)(std::int64_t p);  // in passes of a virtual stage, where a micro-batch takes six
};

// arXiv:2405.15362, table 1, at T_F = T_I = T_W: activations p, (p + 2) / 2, (p + 4) / 3; bubble about 0, p / 2m, 2p /
// 3m of the work. The first pass reaches the last stage p - 1 passes after the first stage began; no order can spare
// that where steps do not overlap.
const Form kForms[] = {
    {"zb-v", [](std::int64_t p) { return p; }, [](std::int64_t p) { return p - 1; }},
    {"v-half", [](std::int64_t p) { return (p + 2) / 2; }, [](std::int64_t p) { return 3 * p; }},
    {"v-min", [](std::int64_t p) { return (p + 4) / 3; }, [](std::int64_t p) { return 4 * p; }},
};

std::int64_t end_of(const Schedule& schedule, const PhaseTimes& times) {
  std::int64_t end = 0;
  for (const auto& [first, last] : test::spans_of(schedule, times)) end = std::max(end, last);
  return end;
}

TEST(VSchedules, WaitAsLittleAsThePaperSays) {
  for (const Form& form : kForms) {
    for (std::int64_t p = 2; p <= 17; ++p) {
      for (const std::int64_t m : {p, 2 * p, 2 * p + 3, 5 * p}) {
        const std::int64_t bubble = end_of(make_schedule(form.name, {p, m, 2, {}}), {1, 1, 1}) - 6 * m;
        EXPECT_GE(bubble, p - 1) << form.name << " " << p << " " << m;
        EXPECT_LE(bubble, form.bubble(p)) << form.name << " " << p << " " << m;
      }
    }
  }
}

TEST(VSchedules, KeepAsLittleAsThePaperSays) {
  for (const Form& form : kForms) {
    for (std::int64_t p = 2; p <= 17; ++p) {
      for (const PhaseTimes& t : {PhaseTimes{1, 1, 1}, {7, 9, 6}, {10, 12, 3}, {10, 14, 12}}) {
        const ScheduleShape shape = {p, 4 * p, 2, std::vector<PhaseTimes>(2 * p, t)};
        for (const auto& order : make_schedule(form.name, shape).order) {
          std::int64_t halves = 0;
          for (const Action& a : order) {
            halves += a.phase == Phase::forward ? 1 : a.phase == Phase::weight_gradient ? -1 : 0;
            ASSERT_LE(halves, 2 * form.most(p)) << form.name << " " << p << " " << t.input;
          }
        }
      }
    }
  }
}

// ZB-V waits less than 1F1B, which keeps p micro-batches on its first stage too, whatever the phases take.
TEST(VSchedules, BeatOneForwardOneBackward) {
  for (const std::int64_t p : {2, 4, 8}) {
    for (const PhaseTimes& t : {PhaseTimes{1, 1, 1}, {7, 9, 6}, {10, 12, 3}, {10, 14, 10}}) {
      const ScheduleShape v = {p, 4 * p, 2, std::vector<PhaseTimes>(2 * p, t)};
      EXPECT_LT(end_of(make_schedule("zb-v", v), t), 2 * end_of(make_schedule("1f1b", {p, 4 * p, 1, {}}), t))
          << p << " " << t.input;
    }
  }
}

}  // namespace
}  // namespace orrery
