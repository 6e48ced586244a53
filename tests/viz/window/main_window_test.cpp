#include "viz/window/main_window.h"

#include <gtest/gtest.h>

#include <QComboBox>
#include <QTableWidget>
#include <QTest>

#include "tests/viz/events.h"

using namespace orrery;

namespace {

const std::string kSpec = std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml";

std::vector<Document> made(int count) {
  std::vector<Document> documents(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) documents[static_cast<std::size_t>(i)].timeline = made_pipeline(i + 1);
  return documents;
}

}  // namespace

TEST(MainWindow, SearchGoesFromHitToHit) {
  MainWindow w;
  w.show_documents(made(1));
  w.find("reduce");
  w.find_next(true);
  const EventId hit = w.first()->view().selected;
  ASSERT_NE(hit, kNoEvent);
  EXPECT_EQ(w.first()->scene()->timeline().name(hit), "reduce gradients");
  w.find_next(false);
  EXPECT_EQ(w.first()->view().selected, hit);
  w.find("");
  EXPECT_TRUE(w.first()->view().found.empty());
}

TEST(MainWindow, ComparedTimelinesMoveTogether) {
  MainWindow w;
  w.show_documents(made(2));
  w.show();
  w.compare(true);
  EXPECT_TRUE(w.second()->isVisible());
  EXPECT_EQ(w.first()->view().scale.end, w.second()->view().scale.end);
  QTest::keyClick(w.first(), Qt::Key_W);
  EXPECT_EQ(w.first()->view().scale.begin, w.second()->view().scale.begin);
  EXPECT_NE(w.second()->view().other, nullptr);
  w.compare(false);
  EXPECT_FALSE(w.second()->isVisible());
}

TEST(MainWindow, AKnobRedrawsTheStep) {
  MainWindow w;
  w.open({kSpec});
  const Scene* before = w.first()->scene();
  const Picoseconds end = before->timeline().end;
  QComboBox* box = w.what_if()->box("network");
  ASSERT_NE(box, nullptr);
  box->setCurrentText("0.25");
  ASSERT_NE(w.first()->scene(), before);
  EXPECT_GT(w.first()->scene()->timeline().end, end);
}

TEST(MainWindow, StrategiesOpenTheirTimelines) {
  MainWindow w;
  w.open({kSpec});
  w.what_if()->try_all_now(3);
  ASSERT_EQ(w.what_if()->tried().size(), 3u);
  EXPECT_EQ(w.what_if()->table()->rowCount(), 3);
  const Scene* before = w.first()->scene();
  Q_EMIT w.what_if()->table()->cellClicked(1, 0);
  EXPECT_NE(w.first()->scene(), before);
}

TEST(MainWindow, LoadsInAThread) {
  MainWindow w;
  w.open_later({kSpec});
  ASSERT_TRUE(QTest::qWaitFor([&] { return w.first()->scene() != nullptr; }, 20'000));
  EXPECT_EQ(w.documents(), 1u);
  w.show_critical_path(true);
  EXPECT_FALSE(w.first()->view().path.empty());
}
