// This file handles keys, wheel and mouse of the timeline.
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "viz/window/timeline_widget.h"

namespace orrery {
namespace {

// Zoom factor per key press, and fraction of the view by which a key press pans the view.
constexpr double kKeyZoom = 1.25, kKeyPan = 0.1;
constexpr double kWheelZoom = 1.2;  // zoom factor per notch of the mouse wheel
constexpr int kWheelScroll = 54;    // number of pixels scrolled per notch of the mouse wheel
constexpr double kNotch = 120;      // wheel movement of one notch in eighths of a degree (QWheelEvent)
// number of pixels around the edge of the selected range of time within which the mouse can drag the edge
constexpr double kGrip = 4;
// Pixels that the mouse must move for a click to become a drag.
constexpr int kDragStart = 3;

}  // namespace

void TimelineWidget::keyPressEvent(QKeyEvent* event) {
  if (!scene_) return QWidget::keyPressEvent(event);
  const double middle = view_.scale.width / 2;
  switch (event->key()) {
    case Qt::Key_W:
      return zoom(middle, 1 / kKeyZoom);
    case Qt::Key_S:
      return zoom(middle, kKeyZoom);
    case Qt::Key_A:
    case Qt::Key_Left:
      return pan(-kKeyPan * view_.scale.width);
    case Qt::Key_D:
    case Qt::Key_Right:
      return pan(kKeyPan * view_.scale.width);
    case Qt::Key_Up:
      return scroll_to(view_.scroll - kWheelScroll);
    case Qt::Key_Down:
      return scroll_to(view_.scroll + kWheelScroll);
    case Qt::Key_F:
      return focus_on_selection();
    case Qt::Key_0:
      return fit();
    case Qt::Key_Period:
      return select_neighbour(true);
    case Qt::Key_Comma:
      return select_neighbour(false);
    case Qt::Key_N:
      return ask_for_note();
    case Qt::Key_Escape:
      set_area(0, 0);
      view_.marked = -1;
      return select(kNoEvent);
    default:
      QWidget::keyPressEvent(event);
  }
}

// Selects the event after the selected one in its track, or the one before, and brings it into view.
void TimelineWidget::select_neighbour(bool next) {
  if (view_.selected == kNoEvent) return;
  const Timeline& t = scene_->timeline();
  const Track& track = t.tracks[track_of(t, view_.selected)];
  const EventId e = next ? view_.selected + 1 : view_.selected - 1;
  if (e < track.first || e >= track.first + track.count) return;
  select(e);
  const Picoseconds span = view_.scale.end - view_.scale.begin;
  if (t.begins[e] >= view_.scale.begin && t.ends[e] <= view_.scale.end) return;
  set_scale(t.begins[e] - span / 3, t.begins[e] - span / 3 + span);
}

void TimelineWidget::wheelEvent(QWheelEvent* event) {
  if (!scene_) return;
  const double notches = (event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x()) / kNotch;
  if (event->modifiers() & Qt::ControlModifier) {
    zoom(std::clamp(event->position().x() - CanvasFrame::kGutter, 0.0, view_.scale.width),
         std::pow(kWheelZoom, -notches));
  } else if ((event->modifiers() & Qt::ShiftModifier) || event->angleDelta().y() == 0) {
    pan(-notches * kKeyPan * view_.scale.width);
  } else {
    scroll_to(view_.scroll - static_cast<int>(notches * kWheelScroll));
  }
  event->accept();
}

// Returns whether pixel x is at an edge of the selected range of time; if so, sets `other` to the time of the opposite
// edge.
bool TimelineWidget::at_edge(int x, Picoseconds& other) const {
  if (view_.area_to <= view_.area_from) return false;
  const auto near = [&](Picoseconds edge) {
    return std::abs(CanvasFrame::kGutter + view_.scale.x_of(edge) - x) <= kGrip;
  };
  if (near(view_.area_to)) {
    other = view_.area_from;
  } else if (near(view_.area_from)) {
    other = view_.area_to;
  } else {
    return false;
  }
  return true;
}

void TimelineWidget::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !scene_) return;
  pressed_ = last_ = event->pos();
  const bool plain = !(event->modifiers() & Qt::ShiftModifier);
  drag_ = plain && at_edge(pressed_.x(), anchor_) ? Drag::area : Drag::none;
}

void TimelineWidget::mouseMoveEvent(QMouseEvent* event) {
  if (!scene_) return;
  const QPoint at = event->pos();
  if (!(event->buttons() & Qt::LeftButton)) {
    Picoseconds other = 0;
    setCursor(at_edge(at.x(), other) ? Qt::SplitHCursor : Qt::ArrowCursor);
    hover(event_at_pixel(*scene_, view_, frame(), at.x(), at.y()));
    QToolTip::showText(event->globalPosition().toPoint(), tip_at(at), this);
    return;
  }
  const auto time = [&](int x) {
    return view_.scale.time_of(std::clamp<double>(x - CanvasFrame::kGutter, 0, view_.scale.width));
  };
  if (drag_ == Drag::none && (at - pressed_).manhattanLength() > kDragStart && pressed_.x() >= CanvasFrame::kGutter) {
    drag_ = event->modifiers() & Qt::ShiftModifier ? Drag::pan : Drag::area;
    anchor_ = time(pressed_.x());
  }
  if (drag_ == Drag::pan) {
    pan(last_.x() - at.x());
    scroll_to(view_.scroll + last_.y() - at.y());
  } else if (drag_ == Drag::area) {
    set_area(std::min(anchor_, time(at.x())), std::max(anchor_, time(at.x())));
  }
  last_ = at;
}

void TimelineWidget::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !scene_) return;
  if (drag_ == Drag::none) click(event->pos());
  drag_ = Drag::none;
}

void TimelineWidget::contextMenuEvent(QContextMenuEvent* event) {
  if (!scene_) return;
  const int row = row_at_pixel(view_, frame(), event->pos().y());
  clicked_process_ = row < 0 ? -1 : static_cast<int>(view_.layout.rows[static_cast<std::size_t>(row)].process);
  select(event_at_pixel(*scene_, view_, frame(), event->pos().x(), event->pos().y()));
  Q_EMIT menu_wanted(event->globalPos());
}

void TimelineWidget::leaveEvent(QEvent*) {
  if (scene_) hover(kNoEvent);
}

}  // namespace orrery
