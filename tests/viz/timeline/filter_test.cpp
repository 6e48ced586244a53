#include "viz/timeline/filter.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"

using namespace orrery;

namespace {

constexpr Picoseconds kFilterMicro = 1'000'000;

}  // namespace

TEST(Filter, KeepsWhatAllRestrictionsLetPass) {
  const Timeline whole = made_pipeline();
  const Filter op{.by = Filter::By::op, .keeps = true, .name = "mlp up"};
  const Filter rank{.by = Filter::By::rank, .keeps = false, .name = "stage 1"};
  const FilteredTimeline some = filtered(whole, {op, rank});
  ASSERT_EQ(some.timeline.events(), 32u);  // 8 micro-batches of 4 events, on stage 0
  for (EventId e = 0; e < some.timeline.events(); ++e) {
    EXPECT_EQ(some.timeline.name(e), "mlp up");
    EXPECT_EQ(some.timeline.tracks[track_of(some.timeline, e)].process, 0u);
  }
  EventId kept = 0;
  for (EventId e = 0; e < whole.events(); ++e) {
    if (some.there[e] == kNoEvent) continue;
    ++kept;
    EXPECT_EQ(some.timeline.begins[some.there[e]], whole.begins[e]);
    EXPECT_EQ(some.timeline.place(some.there[e]).micro_batch, whole.place(e).micro_batch);
  }
  EXPECT_EQ(kept, 32u);
  EXPECT_EQ(some.timeline.processes.size(), whole.processes.size());
  EXPECT_EQ(filtered(whole, {}).timeline.events(), whole.events());
}

TEST(Filter, PhasesAreKeptOrLeftOut) {
  const Timeline whole = made_generation();
  for (const bool keeps : {true, false}) {
    const Filter phase{.by = Filter::By::phase, .keeps = keeps, .name = "decode"};
    const Timeline some = filtered(whole, {phase}).timeline;
    ASSERT_EQ(some.events(), keeps ? 48u : 6u);  // eight passes or one, of three events, on two stages
    for (EventId e = 0; e < some.events(); ++e) EXPECT_EQ(some.labels[some.label[e]].phase, keeps ? 1 : 0);
  }
  EXPECT_EQ(text_of({.by = Filter::By::phase, .keeps = true, .name = "decode"}), "only phase decode");
}

TEST(Filter, TimesAreKeptOrLeftOut) {
  const Timeline whole = two_lanes();
  Filter time{.by = Filter::By::time, .keeps = true, .from = 16 * kFilterMicro, .to = 22 * kFilterMicro};
  EXPECT_EQ(filtered(whole, {time}).timeline.events(), 2u);
  time.keeps = false;
  EXPECT_EQ(filtered(whole, {time}).timeline.events(), 3u);
}

// A transfer and the kernel after it, between events that stay: an arrow goes with either of its ends.
TEST(Filter, AnArrowGoesWithTheEventAtEitherEnd) {
  constexpr Picoseconds us = kFilterMicro;
  TimelineBuilder b;
  b.add_process({});
  const auto sends = b.add_thread(0, "send", 0), receives = b.add_thread(0, "receive", 1);
  const auto before = b.label("before", Kind::forward), send = b.label("send", Kind::pipeline);
  const auto receive = b.label("receive", Kind::pipeline), after = b.label("after", Kind::forward);
  b.add({0, 10 * us, sends, before, 0});
  b.add({10 * us, 20 * us, sends, send, 0});
  b.add({20 * us, 30 * us, sends, after, 0});
  b.add({0, 10 * us, receives, before, 0});
  b.add({10 * us, 20 * us, receives, receive, 0});
  b.add({20 * us, 30 * us, receives, after, 0});
  b.add_arrow({sends, receives, 10 * us, 20 * us});
  const Timeline whole = b.finish();
  ASSERT_EQ(whole.arrows.size(), 1u);
  const auto arrows = [&](const char* without) {
    return filtered(whole, {{.by = Filter::By::op, .keeps = false, .name = without}}).timeline.arrows.size();
  };
  EXPECT_EQ(arrows("send"), 0u);
  EXPECT_EQ(arrows("receive"), 0u);
  EXPECT_EQ(arrows("before"), 1u);
  EXPECT_EQ(arrows("after"), 1u);
}

TEST(Filter, RestrictionsAreUndoneAndDoneAgain) {
  FilterHistory history;
  EXPECT_FALSE(history.undo());
  const Filter a{.name = "a"}, b{.keeps = false, .name = "b"};
  history.add(a);
  history.add(b);
  EXPECT_TRUE(history.undo());
  EXPECT_EQ(history.now(), std::vector<Filter>{a});
  EXPECT_TRUE(history.redo());
  EXPECT_FALSE(history.redo());
  EXPECT_EQ(history.now(), (std::vector<Filter>{a, b}));
  history.undo();
  history.add(a);  // what was taken back is forgotten
  EXPECT_FALSE(history.can_redo());
  EXPECT_EQ(history.now(), (std::vector<Filter>{a, a}));
  history.clear();
  EXPECT_FALSE(history.can_undo());
}

TEST(Filter, SaysWhatItDoes) {
  EXPECT_EQ(text_of({.name = "mlp up"}), "only op mlp up");
  EXPECT_EQ(text_of({.by = Filter::By::rank, .keeps = false, .name = "stage 1"}), "without rank stage 1");
  EXPECT_EQ(text_of({.by = Filter::By::time, .from = 0, .to = 2 * kFilterMicro}), "only 0.00 us to 2.00 us");
}
