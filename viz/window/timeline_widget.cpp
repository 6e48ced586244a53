#include "viz/window/timeline_widget.h"

#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/print/text.h"
#include "viz/timeline/shown_name.h"

namespace orrery {
TimelineWidget::TimelineWidget(QWidget* parent) : QWidget(parent), bar_(new QScrollBar(Qt::Vertical, this)) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(CanvasFrame::kGutter + 100, 120);
  bar_->hide();
  connect(bar_, &QScrollBar::valueChanged, this, [this](int value) {
    view_.scroll = value;
    update();
    Q_EMIT scrolled(value);
  });
}

int TimelineWidget::bar_width() const { return keeps_bar_ || bar_->isVisibleTo(this) ? bar_->sizeHint().width() : 0; }

void TimelineWidget::show_scene(std::shared_ptr<const Scene> scene, Picoseconds total) {
  scene_ = std::move(scene);
  other_ = nullptr;
  const bool arrows = view_.arrows, host = options_.host, fabric = options_.fabric;
  view_ = {};
  clicked_process_ = -1;
  view_.arrows = arrows;
  earliest_ = 0;
  keeps_bar_ = false;
  total_ = std::max<Picoseconds>({1, total, scene_ ? scene_->timeline().end : 0});
  if (scene_) options_ = default_options(scene_->timeline());
  options_.host = host;
  options_.fabric = fabric;
  view_.scale = {0, total_, 1};
  relayout();
  fit();
  Q_EMIT scene_changed();
}

void TimelineWidget::relayout() {
  if (!scene_) return bar_->hide();
  std::vector<std::string> links;
  if (options_.fabric && scene_->knows_fabric()) {
    for (const FabricLoad& load : scene_->fabric()) links.push_back("fullest " + load.name);
  }
  view_.layout = lay_out(scene_->timeline(), options_, links);
  const int over = view_.layout.height - frame().rows_height();
  bar_->setVisible(over > 0);
  bar_->setRange(0, std::max(0, over));
  bar_->setPageStep(frame().rows_height());
  bar_->setGeometry(width() - bar_->sizeHint().width(), 0, bar_->sizeHint().width(), height());
  scroll_to(view_.scroll);
  view_.scale.width = frame().plot_width();
  update();
  Q_EMIT bar_changed(bar_width());
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
    apply(on_axis(
        [&](const TimeScale& s, Picoseconds total) { return focused(s, from - earliest_, to - earliest_, total); }));
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
  if (row >= 0 && view_.layout.rows[static_cast<std::size_t>(row)].kind == RowKind::link) Q_EMIT link_clicked(time);
}

QString TimelineWidget::tip_at(const QPoint& at) const {
  const int index = scene_ == nullptr ? -1 : row_at_pixel(view_, frame(), at.y());
  if (index < 0) return {};
  const Row& row = view_.layout.rows[static_cast<std::size_t>(index)];
  if (at.x() < CanvasFrame::kGutter) return QString::fromStdString(row.text);  // which the gutter may cut
  const Timeline& t = scene_->timeline();
  const Picoseconds time = view_.scale.time_of(at.x() - CanvasFrame::kGutter);
  QStringList lines;
  if (const EventId e = event_at_pixel(*scene_, view_, frame(), at.x(), at.y()); e != kNoEvent) {
    lines << QString::fromStdString(shown_name(t.labels[t.label[e]]))
          << QString::fromStdString(fmt::format("{}, {} from {}", name_of(t.kind(e)),
                                                time_text(seconds(t.ends[e] - t.begins[e])),
                                                time_text(seconds(t.begins[e]))));
  } else if (row.kind == RowKind::counter) {
    const Counter& c = t.processes[row.process].counters[row.counter];
    const bool bytes = c.name == "memory" || c.name == kCacheCounter;
    const std::ptrdiff_t sample = sample_at(c, time);
    for (std::size_t s = 0; sample >= 0 && s < c.series.size(); ++s) {
      const double value = c.values[static_cast<std::size_t>(sample) * c.series.size() + s];
      if (value > 0)
        lines << QString::fromStdString(c.series[s] + ": " + (bytes ? memory_text(value) : fmt::format("{:g}", value)));
    }
  } else if (row.kind == RowKind::link) {
    for (const std::string& line : load_at(scene_->fabric()[row.counter], time)) lines << QString::fromStdString(line);
  } else if (row.kind == RowKind::process && row.open) {
    for (const Band& band : scene_->bands[row.process]) {
      if (band.begin > time || band.end <= time) continue;
      lines << QString::fromStdString(name_of(t, band) + ": " + time_text(seconds(band.end - band.begin)));
      break;
    }
  }
  return lines.join('\n');
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

}  // namespace orrery
