#include "viz/window/overview_strip.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "viz/draw/layout.h"
#include "viz/window/canvas.h"
#include "viz/window/palette.h"

namespace orrery {
namespace {

constexpr std::size_t kMostLanes = 6;  // the most ranks with a lane, spread evenly over all

// Returns the compute lane of a rank, or its first lane with work where none computes; kNone: there is none.
std::uint32_t busy_lane(const Timeline& t, std::uint32_t process) {
  const std::uint32_t compute = compute_track(t, process);
  if (compute != kNone && has_work(t, t.tracks[compute])) return compute;
  for (const std::uint32_t track : t.processes[process].tracks) {
    if (has_work(t, t.tracks[track])) return track;
  }
  return kNone;
}

// Returns the compute lanes of some ranks, spread evenly over those that have work.
std::vector<std::uint32_t> some_lanes(const Timeline& t) {
  std::vector<std::uint32_t> all, some;
  for (std::uint32_t p = 0; p < t.processes.size(); ++p) {
    if (const std::uint32_t track = busy_lane(t, p); track != kNone) all.push_back(track);
  }
  const std::size_t count = std::min(kMostLanes, all.size());
  for (std::size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

}  // namespace

OverviewStrip::OverviewStrip(QWidget* parent) : QWidget(parent) {
  setFixedHeight(kHeight);
  setCursor(Qt::SizeHorCursor);
}

void OverviewStrip::show_axis(const Scene* scene, Picoseconds earliest, Picoseconds latest) {
  scene_ = scene;
  earliest_ = earliest;
  latest_ = std::max(latest, earliest + 1);
  lanes_ = {};
  update();
}

void OverviewStrip::show_view(Picoseconds begin, Picoseconds end) {
  begin_ = begin;
  end_ = end;
  update();
}

void OverviewStrip::set_margin(int pixels) {
  margin_ = pixels;
  update();
}

int OverviewStrip::plot_width() const { return std::max(1, width() - CanvasFrame::kGutter - margin_); }

TimeScale OverviewStrip::axis() const { return {earliest_, latest_, static_cast<double>(plot_width())}; }

void OverviewStrip::paint_lanes() {
  const double ratio = devicePixelRatioF();
  const int wide = std::max(1, static_cast<int>(std::lround(plot_width() * ratio)));
  const int high = static_cast<int>(std::lround((kHeight - 4) * ratio));
  lanes_ = QImage(wide, high, QImage::Format_RGB32);
  lanes_.fill(colours::kRow);
  if (scene_ == nullptr) return;
  const std::vector<std::uint32_t> tracks = some_lanes(scene_->timeline());
  std::vector<Cell> cells(static_cast<std::size_t>(wide));
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    render_track(scene_->timeline(), scene_->timeline().tracks[tracks[i]], scene_->prepared->pyramids[tracks[i]],
                 {earliest_, latest_, static_cast<double>(wide)}, cells);
    const int first = high * static_cast<int>(i) / static_cast<int>(tracks.size());
    const int last = high * static_cast<int>(i + 1) / static_cast<int>(tracks.size());
    for (int y = first; y < std::max(first + 1, last - 1); ++y) {
      auto* const line = reinterpret_cast<QRgb*>(lanes_.scanLine(y));
      for (std::size_t x = 0; x < cells.size(); ++x) {
        if (cells[x].share > 0) line[x] = colour_of(static_cast<Kind>(cells[x].kind)).rgb();
      }
    }
  }
  lanes_.setDevicePixelRatio(ratio);
}

void OverviewStrip::paintEvent(QPaintEvent*) {
  if (lanes_.isNull() || lanes_.width() != std::lround(plot_width() * devicePixelRatioF())) paint_lanes();
  QPainter painter(this);
  painter.fillRect(rect(), colours::kPaper);
  painter.setFont(canvas_font());
  painter.setPen(colours::kFaintInk);
  painter.drawText(QRect(6, 0, CanvasFrame::kGutter - 10, kHeight), Qt::AlignVCenter, "whole trace");
  painter.drawImage(CanvasFrame::kGutter, 2, lanes_);
  const TimeScale scale = axis();
  const double from = std::max(0.0, scale.x_of(begin_)), to = std::min(scale.width, scale.x_of(end_));
  const QColor shade(255, 255, 255, 170);
  painter.fillRect(QRectF(CanvasFrame::kGutter, 2, from, kHeight - 4), shade);
  painter.fillRect(QRectF(CanvasFrame::kGutter + to, 2, scale.width - to, kHeight - 4), shade);
  painter.setPen(QPen(colours::kSelection, 1));
  painter.drawRect(QRectF(CanvasFrame::kGutter + from + 0.5, 1.5, std::max(2.0, to - from - 1), kHeight - 3));
}

// Moves the view so that its middle is at a pixel of the strip.
void OverviewStrip::move_to(double x) {
  const Picoseconds middle = axis().time_of(std::clamp(x - CanvasFrame::kGutter, 0.0, axis().width));
  const Picoseconds length = end_ - begin_;
  Q_EMIT moved(middle - length / 2, middle - length / 2 + length);
}

void OverviewStrip::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton && scene_ != nullptr) move_to(event->position().x());
}

void OverviewStrip::mouseMoveEvent(QMouseEvent* event) {
  if ((event->buttons() & Qt::LeftButton) && scene_ != nullptr) move_to(event->position().x());
}

}  // namespace orrery
