#include "viz/window/overview_strip.h"

#include <gtest/gtest.h>

#include <QTest>

#include "tests/viz/events.h"
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

TEST(OverviewStrip, WithoutATraceItIsEmpty) {
  OverviewStrip strip;
  strip.resize(300, OverviewStrip::kHeight);
  QTest::mouseClick(&strip, Qt::LeftButton, {}, {250, 10});
  EXPECT_FALSE(strip.grab().isNull());
}
