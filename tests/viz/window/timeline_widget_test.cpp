#include "viz/window/timeline_widget.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QScrollBar>
#include <QTest>
#include <QWheelEvent>

#include "tests/viz/events.h"

using namespace orrery;

namespace {

constexpr Picoseconds us = 1'000'000;

// A widget of 1190 x 400 with two_lanes(), of 60 us: the plot is 1000 pixels wide.
class TimelineWidgetTest : public testing::Test {
 protected:
  TimelineWidgetTest() {
    Document d;
    d.timeline = two_lanes();
    widget_.resize(CanvasFrame::kGutter + 1000, 400);
    widget_.show_scene(std::make_shared<const Scene>(std::move(d), 1U));
    widget_.show();
    (void)QTest::qWaitForWindowExposed(&widget_);
  }

  const TimeScale& scale() const { return widget_.view().scale; }
  int x_of(Picoseconds t) const { return CanvasFrame::kGutter + static_cast<int>(scale().x_of(t)); }
  int y_of(std::size_t row) const {
    const Row& r = widget_.view().layout.rows[row];
    return top_of(widget_.view(), r) + r.height / 2;
  }
  void wheel(int x, int notches, Qt::KeyboardModifiers keys) {
    const QPointF at(x, 100);
    QWheelEvent event(at, widget_.mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, keys, Qt::NoScrollPhase,
                      false);
    QApplication::sendEvent(&widget_, &event);
  }
  void drag(QPoint from, QPoint to, Qt::KeyboardModifiers keys) {
    QTest::mousePress(&widget_, Qt::LeftButton, keys, from);
    for (const QPoint& at : {(from + to) / 2, to}) {
      QMouseEvent move(QEvent::MouseMove, at, widget_.mapToGlobal(at), Qt::NoButton, Qt::LeftButton, keys);
      QApplication::sendEvent(&widget_, &move);
    }
    QTest::mouseRelease(&widget_, Qt::LeftButton, keys, to);
  }

  TimelineWidget widget_;
};

}  // namespace

TEST_F(TimelineWidgetTest, ShowsEverythingAtFirst) {
  EXPECT_EQ(scale().begin, 0);
  EXPECT_EQ(scale().end, 60 * us);
  EXPECT_EQ(scale().width, 1000);
}

TEST_F(TimelineWidgetTest, KeysZoomPanAndFit) {
  QTest::keyClick(&widget_, Qt::Key_W);
  EXPECT_EQ(scale().end - scale().begin, 48 * us);
  const Picoseconds begin = scale().begin;
  QTest::keyClick(&widget_, Qt::Key_D);
  EXPECT_GT(scale().begin, begin);
  QTest::keyClick(&widget_, Qt::Key_A);
  EXPECT_EQ(scale().begin, begin);
  QTest::keyClick(&widget_, Qt::Key_Left);
  EXPECT_LT(scale().begin, begin);
  QTest::keyClick(&widget_, Qt::Key_Right);
  QTest::keyClick(&widget_, Qt::Key_S);
  EXPECT_EQ(scale().end - scale().begin, 60 * us);
  QTest::keyClick(&widget_, Qt::Key_W);
  QTest::keyClick(&widget_, Qt::Key_0);
  EXPECT_EQ(scale().end, 60 * us);
}

TEST_F(TimelineWidgetTest, CtrlWheelKeepsTheTimeUnderTheCursor) {
  const int x = CanvasFrame::kGutter + 700;
  const Picoseconds before = scale().time_of(700);
  for (int i = 0; i < 10; ++i) {
    wheel(x, 1, Qt::ControlModifier);
    EXPECT_NEAR(static_cast<double>(scale().time_of(700)), static_cast<double>(before),
                scale().picoseconds_per_pixel() + 2);
  }
  EXPECT_LT(scale().end - scale().begin, 10 * us);
  wheel(x, -1, Qt::ShiftModifier);
  EXPECT_GT(scale().time_of(700), before);
}

TEST_F(TimelineWidgetTest, ShiftDragPans) {
  QTest::keyClick(&widget_, Qt::Key_W);
  const Picoseconds held = scale().time_of(500);
  drag({CanvasFrame::kGutter + 500, 60}, {CanvasFrame::kGutter + 400, 60}, Qt::ShiftModifier);
  EXPECT_NEAR(static_cast<double>(scale().time_of(400)), static_cast<double>(held), scale().picoseconds_per_pixel());
}

TEST_F(TimelineWidgetTest, DragSelectsAnArea) {
  Picoseconds from = 0, to = 0;
  QObject::connect(&widget_, &TimelineWidget::area_changed, [&](Picoseconds a, Picoseconds b) {
    from = a;
    to = b;
  });
  drag({x_of(30 * us), 60}, {x_of(15 * us), 90}, Qt::NoModifier);
  EXPECT_NEAR(static_cast<double>(from), 15e6, 7e4);
  EXPECT_NEAR(static_cast<double>(to), 30e6, 7e4);
  QTest::keyClick(&widget_, Qt::Key_F);
  EXPECT_LT(scale().end - scale().begin, 20 * us);
  QTest::keyClick(&widget_, Qt::Key_Escape);
  EXPECT_EQ(widget_.view().area_to, 0);
}

TEST_F(TimelineWidgetTest, EdgesOfAnAreaCanBeMoved) {
  widget_.set_area(15 * us, 30 * us);
  drag({x_of(30 * us), 60}, {x_of(45 * us), 60}, Qt::NoModifier);
  EXPECT_EQ(widget_.view().area_from, 15 * us);
  EXPECT_NEAR(static_cast<double>(widget_.view().area_to), 45e6, 7e4);
  drag({x_of(15 * us), 60}, {x_of(50 * us), 60}, Qt::NoModifier);  // past the other edge
  EXPECT_NEAR(static_cast<double>(widget_.view().area_from), 45e6, 7e4);
  EXPECT_NEAR(static_cast<double>(widget_.view().area_to), 50e6, 7e4);
}

TEST_F(TimelineWidgetTest, ClickSelectsAndFocusShowsIt) {
  EventId got = kNoEvent;
  QObject::connect(&widget_, &TimelineWidget::selected, [&](EventId e) { got = e; });
  QTest::mouseClick(&widget_, Qt::LeftButton, {}, {x_of(40 * us), y_of(1)});
  EXPECT_EQ(got, 2u);
  QTest::keyClick(&widget_, Qt::Key_F);
  EXPECT_GT(scale().begin, 25 * us);
  EXPECT_LT(scale().end, 55 * us);
}

TEST_F(TimelineWidgetTest, HoverMarksTheEvent) {
  QTest::mouseMove(&widget_, {x_of(5 * us), y_of(1)});
  QMouseEvent move(QEvent::MouseMove, QPointF(x_of(5 * us), y_of(1)), QPointF(), Qt::NoButton, Qt::NoButton, {});
  QApplication::sendEvent(&widget_, &move);
  EXPECT_EQ(widget_.view().hovered, 0u);
}

TEST_F(TimelineWidgetTest, NamesFoldAndPin) {
  const std::size_t rows = widget_.view().layout.rows.size();
  ASSERT_EQ(rows, 4u);  // rank, compute, tensor, memory
  QTest::mouseClick(&widget_, Qt::LeftButton, {}, {40, y_of(2)});
  EXPECT_TRUE(widget_.view().layout.rows[0].pinned);
  QTest::mouseClick(&widget_, Qt::LeftButton, {}, {40, y_of(0)});
  EXPECT_FALSE(widget_.view().layout.rows[0].pinned);
  QTest::mouseClick(&widget_, Qt::LeftButton, {}, {40, y_of(0)});
  EXPECT_EQ(widget_.view().layout.rows.size(), 1u);
}

TEST_F(TimelineWidgetTest, AsksForANoteWhereOneClicked) {
  std::vector<Note> wanted;
  QObject::connect(&widget_, &TimelineWidget::note_wanted, [&](const Note& n) { wanted.push_back(n); });
  QTest::keyClick(&widget_, Qt::Key_N);
  EXPECT_TRUE(wanted.empty());  // nothing is marked
  QTest::mouseClick(&widget_, Qt::LeftButton, Qt::NoModifier, {x_of(25 * us), y_of(1)});
  QTest::keyClick(&widget_, Qt::Key_N);
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_EQ(wanted[0].from, wanted[0].to);
  EXPECT_NEAR(static_cast<double>(wanted[0].from), 25.0 * us, 0.1 * us);
  EXPECT_EQ(wanted[0].process, "rank 0");
  widget_.set_area(10 * us, 20 * us);
  QTest::keyClick(&widget_, Qt::Key_N);
  EXPECT_EQ(wanted.back(), (Note{10 * us, 20 * us, "", ""}));
}

TEST(TimelineWidgetAlone, HasNoScrollBarWhereNothingIsOpen) {
  TimelineWidget widget;
  widget.resize(600, 300);
  widget.show();
  (void)QTest::qWaitForWindowExposed(&widget);
  EXPECT_FALSE(widget.findChild<QScrollBar*>()->isVisible());
}

TEST_F(TimelineWidgetTest, TipsSayWhatIsUnderTheMouse) {
  const std::vector<Row>& rows = widget_.view().layout.rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const QString tip = widget_.tip_at({x_of(5 * us), y_of(i)});
    if (rows[i].kind == RowKind::counter) {
      EXPECT_EQ(tip, "parameters: 0.00 MiB");
    } else if (rows[i].text == "compute") {
      EXPECT_EQ(tip, "qkv\nforward, 10.00 us from 0.00 us");
    } else {
      EXPECT_EQ(tip, "");  // the tensor lane is idle then
    }
    EXPECT_EQ(widget_.tip_at({5, y_of(i)}).toStdString(), rows[i].text);
  }
}
