#include "viz/window/timeline_widget.h"

#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "sim/print/text.h"

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

TimelineWidget::TimelineWidget(QWidget* parent) : QWidget(parent), bar_(new QScrollBar(Qt::Vertical, this)) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(CanvasFrame::kGutter + 100, 120);
  connect(bar_, &QScrollBar::valueChanged, this, [this](int value) {
    view_.scroll = value;
    update();
    Q_EMIT scrolled(value);
  });
}

int TimelineWidget::bar_width() const {
  return keeps_bar_ || bar_->isVisibleTo(this) ? bar_->sizeHint().width() : 0;
}

void TimelineWidget::show_scene(std::shared_ptr<const Scene> scene, Picoseconds total) {
  scene_ = std::move(scene);
  other_ = nullptr;
  const bool arrows = view_.arrows, host = options_.host;
  view_ = {};
  clicked_process_ = -1;
  view_.arrows = arrows;
  earliest_ = 0;
  keeps_bar_ = false;
  total_ = std::max<Picoseconds>({1, total, scene_ ? scene_->timeline().end : 0});
  if (scene_) options_ = default_options(scene_->timeline());
  options_.host = host;
  view_.scale = {0, total_, 1};
  relayout();
  fit();
  Q_EMIT scene_changed();
}

void TimelineWidget::relayout() {
  if (!scene_) return;
  view_.layout = lay_out(scene_->timeline(), options_);
  const int over = view_.layout.height - frame().rows_height();
  bar_->setVisible(over > 0);
  bar_->setRange(0, std::max(0, over));
  bar_->setPageStep(frame().rows_height());
  bar_->setGeometry(width() - bar_->sizeHint().width(), 0, bar_->sizeHint().width(), height());
  scroll_to(view_.scroll);
  view_.scale.width = frame().plot_width();
  update();
}

void TimelineWidget::scroll_to(int y) {
  bar_->setValue(y);
  view_.scroll = bar_->value();
  update();
}

// Returns what a function of a scale and the length of the axis gives, on an axis that need not begin at 0.
template <class F>
TimeScale TimelineWidget::on_axis(const F& function) const {
  const auto moved = [](TimeScale s, Picoseconds by) {
    s.begin += by;
    s.end += by;
    return s;
  };
  return moved(function(moved(view_.scale, -earliest_), total_ - earliest_), earliest_);
}

void TimelineWidget::apply(TimeScale scale) {
  scale.width = frame().plot_width();
  view_.scale = scale;
  view_.scale = on_axis([](const TimeScale& s, Picoseconds total) { return clamped(s, total); });
  update();
  Q_EMIT scale_changed(view_.scale.begin, view_.scale.end);
}

void TimelineWidget::set_scale(Picoseconds begin, Picoseconds end) {
  if (view_.scale.begin == begin && view_.scale.end == end) return;
  apply({begin, end, view_.scale.width});
}

void TimelineWidget::set_options(const LayoutOptions& options) {
  options_ = options;
  relayout();
}

void TimelineWidget::set_area(Picoseconds from, Picoseconds to) {
  view_.area_from = from;
  view_.area_to = to;
  update();
  Q_EMIT area_changed(from, to);
}

void TimelineWidget::set_found(std::vector<bool> labels) {
  view_.found = std::move(labels);
  update();
}

void TimelineWidget::set_path(std::vector<EventId> path) {
  view_.path = std::move(path);
  update();
}

void TimelineWidget::set_arrows(bool shown) {
  view_.arrows = shown;
  update();
}

void TimelineWidget::set_notes(const std::vector<Note>& notes) {
  view_.notes.clear();
  for (const Note& n : scene_ ? notes : std::vector<Note>{}) {
    ShownNote shown{n.from, n.to, -1, QString::fromStdString(n.text)};
    const auto& all = scene_->timeline().processes;
    const auto of =
        std::find_if(all.begin(), all.end(), [&](const Process& p) { return name_in_view(p) == n.process; });
    // Leaves out notes about ranks that this trace does not have.
    if (of == all.end() && !n.process.empty()) continue;
    if (of != all.end()) shown.process = static_cast<int>(of - all.begin());
    view_.notes.push_back(std::move(shown));
  }
  update();
}

void TimelineWidget::pin(const std::vector<std::uint32_t>& tracks) {
  options_.pinned = {tracks.begin(), tracks.end()};
  relayout();
}

void TimelineWidget::ask_for_note() {
  const bool area = view_.area_to > view_.area_from;
  if (!area && view_.marked < 0) return;
  Note note{area ? view_.area_from : view_.marked, area ? view_.area_to : view_.marked, "", ""};
  if (!area && clicked_process_ >= 0)
    note.process = name_in_view(scene_->timeline().processes[static_cast<std::size_t>(clicked_process_)]);
  Q_EMIT note_wanted(note);
}

void TimelineWidget::set_slowest_first(bool on) {
  options_.slowest_first =
      on && scene_ ? compute_times(scene_->timeline(), scene_->prepared->areas) : std::vector<Picoseconds>{};
  relayout();
}

void TimelineWidget::compare_with(std::shared_ptr<const Scene> other, const Matching* matching) {
  other_ = std::move(other);
  view_.other = other_.get();
  view_.matching = matching;
  update();
}

void TimelineWidget::show_alike(Picoseconds earliest, Picoseconds latest, double memory_top) {
  earliest_ = earliest;
  total_ = std::max(latest, earliest + 1);
  view_.memory_top = memory_top;
  keeps_bar_ = true;
  relayout();
  fit();
  Q_EMIT scene_changed();
}

void TimelineWidget::light(std::vector<EventId> events) {
  view_.lit = std::move(events);
  update();
}

void TimelineWidget::mark(Picoseconds time) {
  view_.marked = time;
  clicked_process_ = -1;
  update();
}

void TimelineWidget::fit() { apply({earliest_, total_, view_.scale.width}); }

void TimelineWidget::focus_on_selection() {
  if (!scene_) return;
  const Timeline& t = scene_->timeline();
  const auto focus = [&](Picoseconds from, Picoseconds to) {
    apply(on_axis([&](const TimeScale& s, Picoseconds total) {
      return focused(s, from - earliest_, to - earliest_, total);
    }));
  };
  if (view_.area_to > view_.area_from) {
    focus(view_.area_from, view_.area_to);
  } else if (view_.selected != kNoEvent) {
    focus(t.begins[view_.selected], t.ends[view_.selected]);
  } else {
    fit();
  }
}

void TimelineWidget::select(EventId e) {
  view_.selected = e;
  view_.lit = e == kNoEvent || !scene_ ? std::vector<EventId>{} : members_of(scene_->timeline(), e);
  if (e != kNoEvent && scene_) {
    const Timeline& t = scene_->timeline();
    const int index = view_.layout.row_of_track[track_of(t, e)];
    if (index >= 0) {
      const Row& row = view_.layout.rows[static_cast<std::size_t>(index)];
      const int inside = row.y - view_.scroll;
      if (!row.pinned && (inside < view_.layout.pinned_height || inside + row.height > frame().rows_height()))
        scroll_to(row.y - frame().rows_height() / 2);
    }
    if (t.ends[e] < view_.scale.begin || t.begins[e] > view_.scale.end) {
      const Picoseconds half = (view_.scale.end - view_.scale.begin) / 2;
      apply({t.begins[e] - half, t.begins[e] + half, view_.scale.width});
    }
  }
  update();
  Q_EMIT selected(e);
}

void TimelineWidget::zoom(double x, double factor) {
  apply(on_axis([&](const TimeScale& s, Picoseconds total) { return zoomed(s, x, factor, total); }));
}

void TimelineWidget::pan(double pixels) {
  apply(on_axis([&](const TimeScale& s, Picoseconds total) { return panned(s, pixels, total); }));
}

void TimelineWidget::hover(EventId e) {
  if (e == view_.hovered) return;
  view_.hovered = e;
  if (view_.selected == kNoEvent || e != kNoEvent)
    view_.lit = e == kNoEvent ? std::vector<EventId>{} : members_of(scene_->timeline(), e);
  update();
}

bool TimelineWidget::toggle_row(int index) {
  if (index < 0) return false;
  const Row row = view_.layout.rows[static_cast<std::size_t>(index)];
  if (row.kind == RowKind::process) {
    if (!options_.closed.erase(row.process)) options_.closed.insert(row.process);
  } else if (row.kind == RowKind::group) {
    const std::int64_t group =
        scene_->timeline().processes[row.process].coordinates[static_cast<std::size_t>(options_.group_by)];
    if (!options_.closed_groups.erase(group)) options_.closed_groups.insert(group);
  } else if (row.kind == RowKind::track) {
    if (!options_.pinned.erase(row.track)) options_.pinned.insert(row.track);
  } else {
    return false;
  }
  relayout();
  Q_EMIT options_changed(options_);
  return true;
}

void TimelineWidget::click(const QPoint& at) {
  const int row = row_at_pixel(view_, frame(), at.y());
  if (at.x() < CanvasFrame::kGutter) {
    toggle_row(row);
    return;
  }
  const Picoseconds time = view_.scale.time_of(at.x() - CanvasFrame::kGutter);
  view_.area_from = view_.area_to = 0;
  view_.marked = time;
  select(event_at_pixel(*scene_, view_, frame(), at.x(), at.y()));
  clicked_process_ = row < 0 ? -1 : static_cast<int>(view_.layout.rows[static_cast<std::size_t>(row)].process);
  Q_EMIT time_clicked(time, clicked_process_);
}

void TimelineWidget::paint_to(QImage& image) {
  if (scene_) {
    canvas_.paint(image, *scene_, view_);
  } else {
    image.fill(Qt::white);
  }
}

void TimelineWidget::paintEvent(QPaintEvent*) {
  const CanvasFrame f = frame();
  const double ratio = devicePixelRatioF();
  const QSize size(static_cast<int>(std::lround(f.width * ratio)), static_cast<int>(std::lround(f.height * ratio)));
  if (image_.size() != size) image_ = QImage(size, QImage::Format_RGB32);
  image_.setDevicePixelRatio(ratio);
  paint_to(image_);
  QPainter(this).drawImage(0, 0, image_);
}

void TimelineWidget::resizeEvent(QResizeEvent*) {
  relayout();
  apply(view_.scale);
}

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
