#include "viz/window/canvas.h"

#include <gtest/gtest.h>

#include <QColor>

#include "tests/viz/events.h"
#include "tests/viz/window/golden.h"
#include "viz/window/palette.h"

using namespace orrery;

namespace {

const Scene& small() {
  static const Scene scene = [] {
    Document d;
    d.timeline = two_lanes();
    d.timeline.title = "two lanes";
    d.timeline.source = "made up";
    return Scene(std::move(d), 1);
  }();
  return scene;
}

const Scene& pipeline(Picoseconds factor = 1) {
  static const Scene scenes[] = {Scene({"", made_pipeline(1), nullptr, {}}, 1),
                                 Scene({"", made_pipeline(2), nullptr, {}}, 1)};
  return scenes[factor - 1];
}

View view_of(const Scene& scene, const LayoutOptions& options) {
  View v;
  v.scale = {0, scene.timeline().end, 1};
  v.layout = lay_out(scene.timeline(), options);
  return v;
}

LayoutOptions closed(const Scene& scene) {
  LayoutOptions o;
  for (std::uint32_t p = 0; p < scene.timeline().processes.size(); ++p) o.closed.insert(p);
  return o;
}

QImage painted(const Scene& scene, const View& view, QSize size = {900, 420}) {
  QImage image(size, QImage::Format_RGB32);
  Canvas().paint(image, scene, view);
  return image;
}

struct State {
  const char* name;
  QImage (*paint)();
};

View zoomed_in(const Scene& scene, const LayoutOptions& options, double from, double to) {
  View v = view_of(scene, options);
  const auto end = static_cast<double>(scene.timeline().end);
  v.scale.begin = static_cast<Picoseconds>(from * end);
  v.scale.end = static_cast<Picoseconds>(to * end);
  return v;
}

const State kStates[] = {
    {"empty",
     [] {
       return painted(small(), View{.scale = {0, 1000, 1}});
     }},
    {"small", [] { return painted(small(), view_of(small(), {})); }},
    {"small_closed", [] { return painted(small(), view_of(small(), closed(small()))); }},
    {"small_pinned",
     [] {
       LayoutOptions o;
       o.pinned.insert(1);
       return painted(small(), view_of(small(), o));
     }},
    {"small_selected",
     [] {
       View v = view_of(small(), {});
       v.selected = 2;
       v.hovered = 0;
       v.lit = {3, 4};
       v.marked = 35'000'000;
       return painted(small(), v);
     }},
    {"small_area",
     [] {
       View v = view_of(small(), {});
       v.area_from = 12'000'000;
       v.area_to = 33'000'000;
       return painted(small(), v);
     }},
    {"small_search",
     [] {
       View v = view_of(small(), {});
       v.found.assign(small().timeline().labels.size(), false);
       v.found[0] = true;
       return painted(small(), v);
     }},
    {"pipeline", [] { return painted(pipeline(), view_of(pipeline(), closed(pipeline()))); }},
    {"pipeline_lanes", [] { return painted(pipeline(), view_of(pipeline(), {})); }},
    {"pipeline_scrolled",
     [] {
       View v = view_of(pipeline(), {});
       v.scroll = 150;
       return painted(pipeline(), v);
     }},
    {"pipeline_zoomed", [] { return painted(pipeline(), zoomed_in(pipeline(), {}, 0.3, 0.4)); }},
    {"pipeline_grouped",
     [] {
       LayoutOptions o = closed(pipeline());
       o.group_by = 2;
       return painted(pipeline(), view_of(pipeline(), o));
     }},
    {"pipeline_critical",
     [] {
       View v = view_of(pipeline(), closed(pipeline()));
       for (EventId e = 0; e < pipeline().timeline().events(); e += 3) v.path.push_back(e);
       return painted(pipeline(), v);
     }},
    {"pipeline_slowest",
     [] {
       LayoutOptions o = closed(pipeline());
       o.slowest_first = {1, 2};
       return painted(pipeline(), view_of(pipeline(), o));
     }},
    {"pipeline_groups_closed",
     [] {
       LayoutOptions o = closed(pipeline());
       o.group_by = 2;
       o.closed_groups = {0, 1};
       return painted(pipeline(), view_of(pipeline(), o));
     }},
    {"pipeline_notes",
     [] {
       View v = view_of(pipeline(), {});
       v.notes = {{20'000'000, 60'000'000, -1, "warm-up"},
                  {30'000'000, 30'000'000, 1, "a note of stage 1 that is longer than its box can be, so it is cut"},
                  {32'000'000, 32'000'000, 1, "below it"},
                  {290'000'000, 290'000'000, 0, "at the end"}};
       return painted(pipeline(), v);
     }},
    {"pipeline_out_of_memory",
     [] {
       static const Scene scene = [] {
         Document d;
         d.timeline = made_pipeline();
         for (Process& p : d.timeline.processes) p.capacity = 48'000'000'000;
         return Scene(std::move(d), 1);
       }();
       return painted(scene, view_of(scene, {}));
     }},
    {"pipeline_compared",
     [] {
       static const Matching m = match(ComparedSide(pipeline().timeline()), ComparedSide(pipeline(2).timeline()));
       View v = view_of(pipeline(), {});
       v.other = &pipeline(2);
       v.matching = &m;
       return painted(pipeline(), v);
     }},
};

int pixels_of(const QImage& image, const QColor& colour) {
  int count = 0;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = CanvasFrame::kGutter; x < image.width(); ++x) count += image.pixel(x, y) == colour.rgb() ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST(Canvas, GoldenPictures) {
  for (const State& s : kStates) expect_golden(s.paint(), s.name);
}

// Lanes are drawn in pixels of the device: a bar that is half a pixel wide covers one of two.
TEST(Canvas, BarsAreDrawnInPixelsOfTheDevice) {
  for (const double ratio : {1.5, 2.0}) {
    const QSize frame(CanvasFrame::kGutter + 600, 300);
    QImage image(frame * ratio, QImage::Format_RGB32);
    image.setDevicePixelRatio(ratio);
    Canvas().paint(image, small(), view_of(small(), {}));
    image.setDevicePixelRatio(1);
    const auto at = [&](double us) {
      const int x = static_cast<int>((CanvasFrame::kGutter + us * 10) * ratio);
      return image.pixelColor(x, static_cast<int>((CanvasFrame::kRuler + kHeaderHeight + 4) * ratio));
    };
    EXPECT_EQ(at(29.9), colours::kRow) << ratio;
    EXPECT_NE(at(30.03), colours::kRow) << ratio;  // the edge of the backward
    EXPECT_EQ(at(30.17), colour_of(Kind::backward)) << ratio;
    EXPECT_EQ(at(49.97), colour_of(Kind::backward)) << ratio;
    EXPECT_EQ(at(50.1), colours::kRow) << ratio;
  }
}

TEST(Canvas, BarsAreAsLongAsTheirEvents) {
  const QImage image = painted(small(), view_of(small(), {}), {CanvasFrame::kGutter + 600, 300});
  const int row = CanvasFrame::kRuler + kHeaderHeight + 4;  // a line of pixels of the compute lane, above the names
  const auto at = [&](int us) { return image.pixelColor(CanvasFrame::kGutter + us * 10 + 4, row); };
  EXPECT_EQ(at(3), colour_of(Kind::forward));
  EXPECT_EQ(at(25), colours::kRow);
  EXPECT_EQ(at(45), colour_of(Kind::backward));
  EXPECT_EQ(at(55), colours::kRow);
}

TEST(Canvas, FindsTheEventUnderThePixel) {
  const View v = view_of(small(), {});
  const CanvasFrame frame{CanvasFrame::kGutter + 600, 300};
  const int y = CanvasFrame::kRuler + kHeaderHeight + 5;
  EXPECT_EQ(event_at_pixel(small(), v, frame, CanvasFrame::kGutter + 50, y), 0u);
  EXPECT_EQ(event_at_pixel(small(), v, frame, CanvasFrame::kGutter + 400, y), 2u);
  EXPECT_EQ(event_at_pixel(small(), v, frame, CanvasFrame::kGutter + 250, y), kNoEvent);
  EXPECT_EQ(event_at_pixel(small(), v, frame, 20, y), kNoEvent);
}

TEST(Canvas, MemoryShowsItsCategories) {
  const QImage image = painted(small(), view_of(small(), {}));
  EXPECT_GT(pixels_of(image, colour_of_series(0)), 5000);
  EXPECT_GT(pixels_of(image, colour_of_series(1)), 2000);
}

TEST(Canvas, TimesHaveTheDecimalsOfTheirStep) {
  EXPECT_EQ(time_label(1'500'000'000'000, 500'000'000'000), "1.5 s");
  EXPECT_EQ(time_label(20'000'000'000, 10'000'000'000), "0.02 s");
  EXPECT_EQ(time_label(20'500'000'000, 500'000'000), "20.5 ms");
  EXPECT_EQ(time_label(3'000, 1'000), "3 ns");
  EXPECT_EQ(time_label(4'000'000'000, 2'000'000'000), "4 ms");
}
