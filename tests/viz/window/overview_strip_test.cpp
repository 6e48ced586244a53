#include "viz/window/overview_strip.h"

#include <gtest/gtest.h>

#include <QTest>

#include "tests/viz/events.h"
#include "viz/timeline/timeline_builder.h"
#include "viz/window/canvas.h"
#include "viz/window/palette.h"

using namespace orrery;

TEST(OverviewStrip, AClickMovesTheView) {
  const Scene scene({"", made_pipeline(1), nullptr, {}}, 1);
  OverviewStrip strip;
  strip.resize(CanvasFrame::kGutter + 400, OverviewStrip::kHeight);
  strip.show_axis(&scene, 0, scene.timeline().end);
  strip.show_view(0, scene.timeline().end / 10);
  Picoseconds begin = -1, end = -1;
  QObject::connect(&strip, &OverviewStrip::moved, [&](Picoseconds b, Picoseconds e) {
    begin = b;
    end = e;
  });
  QTest::mouseClick(&strip, Qt::LeftButton, {}, {CanvasFrame::kGutter + 200, 10});
  EXPECT_EQ(end - begin, scene.timeline().end / 10);
  EXPECT_NEAR(static_cast<double>(begin + end) / 2, static_cast<double>(scene.timeline().end) / 2, 1e6);
  const QImage image = strip.grab().toImage();
  int forward = 0;
  for (int x = 0; x < image.width(); ++x) forward += image.pixelColor(x, 6) == colour_of(Kind::forward) ? 1 : 0;
  EXPECT_GT(forward, 0);
}

TEST(OverviewStrip, ShowsALaneThatBeginsWithAWait) {
  TimelineBuilder b;
  b.add_process({});
  const auto lane = b.add_thread(0, "compute", 0);
  b.add({0, 10, lane, b.label("wait", Kind::wait), 0});
  b.add({10, 100, lane, b.label("a", Kind::forward), 0});
  const Scene scene({"", b.finish(0), nullptr, {}}, 1);
  OverviewStrip strip;
  strip.resize(CanvasFrame::kGutter + 114, OverviewStrip::kHeight);
  strip.set_margin(14);  // 100 pixels for 100 picoseconds, and room beside them for the timeline's scroll bar
  strip.show_axis(&scene, 0, 100);
  strip.show_view(0, 100);
  const QImage image = strip.grab().toImage();
  EXPECT_EQ(image.pixelColor(CanvasFrame::kGutter + 50, 10), colour_of(Kind::forward));
  EXPECT_EQ(image.pixelColor(CanvasFrame::kGutter + 98, 10), colour_of(Kind::forward));
  EXPECT_EQ(image.pixelColor(CanvasFrame::kGutter + 104, 10), colours::kPaper);
}

TEST(OverviewStrip, WithoutATraceItIsEmpty) {
  OverviewStrip strip;
  strip.resize(300, OverviewStrip::kHeight);
  QTest::mouseClick(&strip, Qt::LeftButton, {}, {250, 10});
  EXPECT_FALSE(strip.grab().isNull());
}
