// Pipeline orders: each action once, backward after forward, no more micro-batches in flight than the papers state; and
// the transfers that models/schedule/transfer_order.cpp puts between them.
#include "models/schedule/schedules.h"

#include <set>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/schedule/transfer_order.h"
#include "tests/models/play_orders.h"

namespace orrery {
namespace {

std::vector<ScheduleShape> shapes(std::int64_t chunks) {
  std::vector<ScheduleShape> all;
  for (const std::int64_t p : {1, 2, 3, 4, 8}) {
    for (const std::int64_t m : {1, 2, 3, 4, 8, 24}) {
      for (const std::int64_t v :
           chunks == 0 ? std::vector<std::int64_t>{1, 2, 3} : std::vector<std::int64_t>{chunks}) {
        if (chunks != 0 || m % p == 0) all.push_back({p, m, v});
      }
    }
  }
  return all;
}

template <typename F>
void for_all(const F& f) {
  for (const ScheduleRow& row : schedule_rows()) {
    for (const ScheduleShape& shape : shapes(row.chunks)) {
      if (row.name.starts_with("dualpipe") && shape.micro_batches < 2 * shape.stages) continue;
      if (row.placement == ChunkPlacement::both_ways &&
          (shape.stages % row.copies != 0 || shape.micro_batches % row.copies != 0))
        continue;
      f(row, shape, make_schedule(row.name, shape));
    }
  }
}

TEST(Schedules, RunEveryActionOnce) {
  for_all([](const ScheduleRow& row, const ScheduleShape& shape, const Schedule& schedule) {
    ASSERT_EQ(schedule.order.size(), static_cast<std::size_t>(shape.stages)) << row.name;
    for (const auto& order : schedule.order) {
      std::set<std::pair<int, int>> forward, input, weight;
      for (const Action& a : order) {
        const std::pair<int, int> key = {a.chunk, a.micro_batch};
        if (a.phase == Phase::forward) {
          EXPECT_TRUE(forward.insert(key).second) << row.name;
          continue;
        }
        EXPECT_EQ(forward.count(key), 1U) << row.name << ": backward before forward";
        if (a.phase != Phase::weight_gradient) {
          EXPECT_TRUE(input.insert(key).second) << row.name;
        }
        if (a.phase != Phase::input_gradient) {
          EXPECT_EQ(input.count(key), 1U) << row.name << ": weight gradient before the input's";
          EXPECT_TRUE(weight.insert(key).second) << row.name;
        }
      }
      // Copies share the micro-batches.
      const std::int64_t chunks = shape.chunks + (schedule.spreads_vocabulary() ? 2 : 0);
      EXPECT_EQ(forward.size(), static_cast<std::size_t>(shape.micro_batches * chunks)) << row.name;
      EXPECT_EQ(input.size(), forward.size()) << row.name;
      EXPECT_EQ(weight.size(), forward.size()) << row.name;
    }
  });
}

// GPipe keeps all m; 1F1B p - stage; interleaved, for v >= 2, L (1 + (p - 1) / (p v)) layers' worth on the first stage:
// p v + p - 1 chunks of L / (p v) layers.
TEST(Schedules, KeepAsManyAsThePapersSay) {
  for_all([](const ScheduleRow& row, const ScheduleShape& shape, const Schedule& schedule) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      const std::int64_t most = test::most_in_flight(schedule.order[stage]);
      const std::int64_t m = shape.micro_batches, p = shape.stages, v = shape.chunks;
      if (row.name == "naive") {
        EXPECT_EQ(most, 1);
      }
      if (row.name == "gpipe") {
        EXPECT_EQ(most, m);
      }
      if (row.name == "1f1b" || row.name == "dapple") {
        EXPECT_EQ(most, std::min(m, p - stage));
      }
      if (row.name == "zb-h1" || row.name == "zb-1p") {
        EXPECT_LE(most, std::min(m, p)) << row.name;
      }
      if (row.name == "zb-h2") {
        EXPECT_LE(most, std::min(m, 2 * p - 1));
      }
      if (row.name == "zb-2p") {
        EXPECT_LE(most, std::min(m, 2 * p));
      }
      if (row.name == "interleaved" && v > 1) {
        EXPECT_EQ(most, std::min(m * v, (v + 1) * p - 1 - 2 * stage));
      }
    }
  });
}

// Larger groups, as in Megatron-Core and PyTorch, and a forward more before the first backward cost memory, not time:
// (p - 1) / v of a stage's forward and backward are the bubble while the last group has p micro-batches at least.
TEST(Schedules, InterleavedVariantsTakeTheClosedForm) {
  int cases = 0;
  for (const std::int64_t p : {2, 3, 4, 8}) {
    for (const std::int64_t v : {2, 3}) {
      for (const std::int64_t group : {p, p + 1, p + 2, 2 * p, 2 * p + 1}) {
        for (const std::int64_t m : {group, 2 * group, group + p, 3 * group + p + 1}) {
          if (const std::int64_t rest = m % group; rest > 0 && rest < p) continue;
          for (const std::int64_t extra : {0, 1, 2}) {
            std::int64_t end = 0;
            const PhaseTimes t = {3, 2, 2};
            for (const auto& [first, last] :
                 test::spans_of(make_schedule("interleaved", {p, m, v, {}, false, group, extra}), t))
              end = std::max(end, last);
            EXPECT_EQ(end, (m * v + p - 1) * 7) << p << " " << v << " " << group << " " << m << " " << extra;
            ++cases;
          }
        }
      }
    }
  }
  EXPECT_GT(cases, 300);
}

// Virtual stages go round the stages: chunk c of stage s is virtual stage c p + s.
TEST(Schedules, PlaceChunksInTurn) {
  const Schedule s = make_schedule("interleaved", {4, 8, 3});
  for (std::int32_t k = 0; k < 12; ++k) {
    EXPECT_EQ(s.stage_of[k], k % 4);
    EXPECT_EQ(s.chunk_of[k], k / 4);
  }
}

// V-shaped placement: the first and the last virtual stage on stage 0, the two in the middle on the last stage.
TEST(Schedules, PlaceChunksInAV) {
  const Schedule s = make_schedule("zb-v", {4, 8, 2});
  EXPECT_EQ(s.stage_of, (std::vector<std::int32_t>{0, 1, 2, 3, 3, 2, 1, 0}));
  EXPECT_EQ(s.chunk_of, (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_TRUE(ends_meet(s));
  EXPECT_EQ(hop(s, 0), 1);
  EXPECT_EQ(hop(s, 3), 0);
  EXPECT_EQ(hop(s, 4), -1);
}

TEST(Schedules, ListKnownNames) {
  try {
    find_schedule("1f2b");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("gpipe"), std::string::npos);
  }
}

// Each forward of the middle is woven with the backward of another micro-batch, and all are played to their end in the
// time of the plain order.
TEST(Schedules, MayWeaveForwardsWithBackwards) {
  for (const std::int64_t p : {1, 2, 4}) {
    for (const std::int64_t v : {1, 3}) {
      if (p > 1 && v == 1) continue;
      const ScheduleShape plain = {p, 4 * p, v, {}}, shape = {p, 4 * p, v, {}, true};
      const Schedule woven = make_schedule("interleaved", shape);
      for (const auto& order : woven.order) {
        std::int64_t pairs = 0;
        for (std::size_t i = 0; i < order.size(); ++i) {
          if (!order[i].woven) continue;
          ++pairs;
          EXPECT_EQ(order[i].phase, Phase::forward);
          EXPECT_EQ(order[i + 1].phase, Phase::backward);
          EXPECT_FALSE(order[i].chunk == order[i + 1].chunk && order[i].micro_batch == order[i + 1].micro_batch);
        }
        EXPECT_GT(pairs, 0);
        EXPECT_EQ(order.size(), static_cast<std::size_t>(2 * v * 4 * p));
      }
      const auto last = [](const Schedule& schedule) {
        std::int64_t end = 0;
        for (const auto& span : test::spans_of(schedule, PhaseTimes{})) end = std::max(end, span.second);
        return end;
      };
      EXPECT_LE(last(woven), last(make_schedule("interleaved", plain)) + 3);
    }
  }
}

// Mirrored copies run alike on a stage and on its mirror image, with chunks exchanged; with one more action, or an
// action of another kind, they do not.
TEST(Schedules, AreMirroredWhereBothCopiesRunAlike) {
  for (const std::int64_t p : {2, 4, 8}) {
    Schedule dualpipe = make_schedule("dualpipe", {p, 2 * p, 1, {}});
    EXPECT_TRUE(is_mirrored(dualpipe)) << p;
    std::swap(dualpipe.order.front().front(), dualpipe.order.front().back());
    EXPECT_FALSE(is_mirrored(dualpipe)) << p;
    dualpipe.order.front().pop_back();
    EXPECT_FALSE(is_mirrored(dualpipe)) << p;
    EXPECT_TRUE(is_mirrored(make_schedule("chimera", {p, 2 * p, 1, {}}))) << p;
    EXPECT_FALSE(is_mirrored(make_schedule("zb-h1", {p, 2 * p, 1, {}}))) << p;
  }
  EXPECT_FALSE(is_mirrored(make_schedule("chimera-4", {4, 4, 1, {}})));
}

}  // namespace
}  // namespace orrery
