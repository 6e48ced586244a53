#include "viz/window/exports.h"

#include <gtest/gtest.h>

#include <QImage>
#include <QPainter>
#include <QSvgRenderer>
#include <algorithm>
#include <fstream>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "tests/temporary_folder.h"
#include "tests/viz/events.h"
#include "viz/window/palette.h"

using namespace orrery;

namespace {

constexpr QSize kSize(800, 300);

class Exports : public testing::Test {
 protected:
  Exports() {
    view_.scale = {0, scene_.timeline().end, 1};
    view_.layout = lay_out(scene_.timeline(), {});
  }
  std::string exported(const std::string& name) {
    const std::string path = folder_.path(name);
    export_scene(QString::fromStdString(path), scene_, view_, kSize);
    return path;
  }

  test::TemporaryFolder folder_;
  Scene scene_{{"", made_pipeline(), nullptr, {}, ""}, 1};
  View view_;
};

}  // namespace

TEST_F(Exports, PngIsThePictureAsItIsShown) {
  QImage shown(kSize, QImage::Format_RGB32);
  Canvas().paint(shown, scene_, view_);
  EXPECT_EQ(QImage(QString::fromStdString(exported("a.png"))).convertToFormat(QImage::Format_RGB32), shown);
}

TEST_F(Exports, SvgIsMadeOfShapesAndText) {
  const std::string text = read_input(exported("a.svg"), kMostMeasurements);
  EXPECT_EQ(text.find("<image"), std::string::npos);
  EXPECT_TRUE(text.find("<rect") != std::string::npos || text.find("<path") != std::string::npos);
  EXPECT_NE(text.find("stage 0</text>"), std::string::npos);
  EXPECT_NE(text.find("DejaVu Sans"), std::string::npos);
}

TEST_F(Exports, SvgLooksLikeThePicture) {
  QImage shown(kSize, QImage::Format_RGB32), drawn(kSize, QImage::Format_RGB32);
  view_.scale.begin = scene_.timeline().end / 3;
  Canvas().paint(shown, scene_, view_);
  drawn.fill(Qt::white);
  QPainter painter(&drawn);
  QSvgRenderer(QString::fromStdString(exported("a.svg"))).render(&painter);
  painter.end();
  int bars = 0, same = 0;
  for (int y = CanvasFrame::kRuler; y < kSize.height() - CanvasFrame::kLegend; ++y) {
    for (int x = CanvasFrame::kGutter; x < kSize.width(); ++x) {
      const QRgb p = shown.pixel(x, y);
      if (p != colour_of(Kind::backward).rgb() && p != colour_of(Kind::forward).rgb()) continue;
      ++bars;
      same += drawn.pixel(x, y) == p ? 1 : 0;
    }
  }
  ASSERT_GT(bars, 1000);
  EXPECT_GT(same, bars * 9 / 10);
}

TEST_F(Exports, CsvHoldsTheEventsInView) {
  const auto lines = [&](const std::string& name) {
    const std::string text = read_input(exported(name), kMostMeasurements);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines("all.csv"), static_cast<std::ptrdiff_t>(scene_.timeline().events()) + 1);
  view_.scale.end = view_.scale.begin + 1'000'000;
  EXPECT_LT(lines("few.csv"), 20);
}

TEST_F(Exports, ChromeJsonComesBack) {
  for (const char* name : {"a.json", "a.json.gz"}) {
    const Timeline t = open_trace({exported(name)}).timeline;
    EXPECT_EQ(t.events(), scene_.timeline().events());
    EXPECT_EQ(t.end, scene_.timeline().end);
    EXPECT_EQ(t.processes[1].name, "stage 1");
  }
}

TEST_F(Exports, ChromeJsonIsTheSameTimeline) {
  const Timeline& was = scene_.timeline();
  const Timeline t = open_trace({exported("a.json")}).timeline;
  EXPECT_TRUE(t.remarks.empty());
  EXPECT_EQ(t.source, was.source);
  ASSERT_EQ(t.events(), was.events());
  ASSERT_EQ(t.tracks.size(), was.tracks.size());
  for (EventId e = 0; e < t.events(); ++e) {
    EXPECT_EQ(t.begins[e], was.begins[e]);
    EXPECT_EQ(t.ends[e], was.ends[e]);
    EXPECT_EQ(t.kind(e), was.kind(e)) << was.name(e);
    EXPECT_EQ(t.name(e), was.name(e));
    EXPECT_EQ(t.place(e).micro_batch, was.place(e).micro_batch);
    EXPECT_EQ(t.place(e).layer, was.place(e).layer);
  }
  EXPECT_EQ(t.arrows.size(), was.arrows.size());
  EXPECT_EQ(t.processes[1].counters[0].times, was.processes[1].counters[0].times);
  EXPECT_EQ(t.processes[1].counters[0].values, was.processes[1].counters[0].values);
}

TEST_F(Exports, ChromeJsonKeepsWhatTheFileSaid) {
  const std::string path = folder_.path("kineto.json");
  std::ofstream(path) << R"([{"ph":"X","cat":"kernel","name":"gemm \"big\"","pid":1,"tid":"s","ts":1.5,"dur":2.25,
    "args":{"Input dims":"[[8, 4]]","stream":7,"level":"07"}}])";
  write_chrome_json(folder_.path("again.json"), open_trace({path}));
  const Timeline t = open_trace({folder_.path("again.json")}).timeline;
  const Details d = details_of(t, 0);
  EXPECT_EQ(detail_named(d, "name"), "gemm \"big\"");
  EXPECT_EQ(detail_named(d, "Input dims"), "[[8, 4]]");
  EXPECT_EQ(detail_named(d, "stream"), "7");
  EXPECT_EQ(detail_named(d, "level"), "07");
  EXPECT_EQ(t.ends[0] - t.begins[0], 2'250'000);
}

TEST_F(Exports, SaysWhatItCannotWrite) {
  EXPECT_THROW(exported("a.doc"), Error);
  for (const char* name : {"/nowhere/a.png", "/nowhere/a.svg", "/nowhere/a.csv", "/nowhere/a.json"})
    EXPECT_THROW(export_scene(name, scene_, view_, kSize), Error) << name;
  EXPECT_EQ(folder_.files(), 0);
}
