#include "viz/draw/pyramid.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "viz/timeline/timeline_builder.h"

using namespace orrery;

namespace {

// One lane of so many events of 1 us each, alternating kinds, with pauses of 1 us.
Timeline dense(EventId events) {
  TimelineBuilder b;
  b.add_process({});
  const auto thread = b.add_thread(0, "", 0);
  const auto a = b.label("a", Kind::forward), c = b.label("c", Kind::tensor);
  for (EventId e = 0; e < events; ++e) {
    const Picoseconds begin = Picoseconds{e} * 2'000'000;
    b.add({begin, begin + 1'000'000, thread, e < events / 2 ? a : c, 0});
  }
  return b.finish();
}

}  // namespace

TEST(Pyramid, ShowsKindsAndSharesAtEveryZoom) {
  const Timeline t = dense(20'000);
  const Pyramid p(t, t.tracks[0]);
  for (const Picoseconds length : {t.end, t.end / 3, t.end / 17}) {
    std::vector<Cell> cells(500);
    for (const Picoseconds begin : {Picoseconds{0}, t.end - length}) {
      p.render({begin, begin + length, 500}, cells);
      for (std::size_t x = 20; x + 20 < cells.size(); ++x) {
        EXPECT_NEAR(cells[x].share, 128, 16);
        const Picoseconds at = begin + static_cast<Picoseconds>(x) * length / 500;
        if (at < t.end / 20 * 9) {
          EXPECT_EQ(cells[x].kind, static_cast<int>(Kind::forward));
        }
        if (at > t.end / 20 * 11) {
          EXPECT_EQ(cells[x].kind, static_cast<int>(Kind::tensor));
        }
      }
    }
  }
}

// Every kind has a place in a bin, also the last one.
TEST(Pyramid, ShowsEveryKind) {
  for (int kind = 0; kind < kKinds; ++kind) {
    TimelineBuilder b;
    b.add_process({});
    const auto thread = b.add_thread(0, "", 0);
    const auto label = b.label("a", static_cast<Kind>(kind));
    for (EventId e = 0; e < 5000; ++e)
      b.add({e * Picoseconds{1'000'000}, (e + 1) * Picoseconds{1'000'000}, thread, label, 0});
    const Timeline t = b.finish();
    std::vector<Cell> cells(100);
    Pyramid(t, t.tracks[0]).render({0, t.end, 100}, cells);
    for (const Cell& c : cells) {
      EXPECT_EQ(c.kind, kind);
      EXPECT_GT(c.share, 240) << name_of(static_cast<Kind>(kind));
    }
  }
}

// Beside a longer trace, or one that begins earlier, the axis is longer than the trace.
TEST(Pyramid, ShowsNothingBeyondTheTrace) {
  const Timeline t = dense(20'000);
  std::vector<Cell> cells(300);
  render_track(t, t.tracks[0], Pyramid(t, t.tracks[0]), {-t.end, 2 * t.end, 300}, cells);
  EXPECT_EQ(cells[50].share, 0);
  EXPECT_GT(cells[150].share, 0);
  EXPECT_EQ(cells[250].share, 0);
}

TEST(Pyramid, ALoneEventIsNeverLost) {
  TimelineBuilder b;
  b.add_process({});
  const auto thread = b.add_thread(0, "", 0);
  const auto label = b.label("a", Kind::data);
  for (EventId e = 0; e < Pyramid::kFewest; ++e) b.add({Picoseconds{e}, Picoseconds{e} + 1, thread, label, 0});
  b.add({900'000'000'000, 900'000'000'010, thread, label, 0});
  b.add({1'000'000'000'000, 1'000'000'000'001, thread, label, 0});
  const Timeline t = b.finish();
  std::vector<Cell> cells(1000);
  Pyramid(t, t.tracks[0]).render({0, t.end, 1000}, cells);
  EXPECT_GT(static_cast<int>(std::max({cells[898].share, cells[899].share, cells[900].share, cells[901].share})), 0);
}

TEST(Pyramid, FewEventsAreDrawnExactly) {
  const Timeline t = dense(10);
  std::vector<Cell> cells(40);
  render_track(t, t.tracks[0], {}, {0, 20'000'000, 40}, cells);  // half a microsecond a pixel
  for (std::size_t x = 0; x < cells.size(); ++x) EXPECT_EQ(cells[x].share, x % 4 < 2 ? 255 : 0) << x;
  render_track(t, t.tracks[0], {}, {0, 10'000'000, 40}, cells);
  EXPECT_TRUE(cells[8].edge);
  EXPECT_FALSE(cells[9].edge);
}

TEST(Pyramid, ThreadsBuildTheSame) {
  const Timeline t = dense(80'000);
  const auto one = build_pyramids(t, 1), two = build_pyramids(t, 2);
  std::vector<Cell> a(300), b(300);
  one[0].render({0, t.end, 300}, a);
  two[0].render({0, t.end, 300}, b);
  for (std::size_t x = 0; x < a.size(); ++x) EXPECT_EQ(a[x].share, b[x].share);
}
