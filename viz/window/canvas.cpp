#include "viz/window/canvas.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "viz/timeline/shown_name.h"
#include "viz/window/palette.h"

namespace orrery {
namespace {

constexpr double kNamed = 30;   // smallest width in pixels of a bar that shows its event's name
constexpr double kElided = 60;  // smallest width in pixels in which a name is cut rather than left out
const QString kWaitFor = QStringLiteral("wait for ");
constexpr double kFramed = 6;         // smallest width in pixels of a search hit that gets a frame
constexpr EventId kMostNamed = 4000;  // greatest number of bars of a row that are considered for drawing names

QRgb mixed(QRgb a, QRgb b, unsigned share) {
  const auto channel = [&](int x, int y) { return static_cast<int>(x + (y - x) * static_cast<int>(share) / 255); };
  return qRgb(channel(qRed(a), qRed(b)), channel(qGreen(a), qGreen(b)), channel(qBlue(a), qBlue(b)));
}

// Returns the opacity of a pixel from the share of the pixel that events cover. A pixel with a small share is drawn
// stronger than its share, so that a single event can be seen.
unsigned visible(unsigned share) { return share == 0 ? 0 : std::min(255U, 70 + share * 185 / 255); }

// The colours of pixels, in a table by the kind of the pixel's events, the share of the pixel that they cover, and
// whether the pixel is an event's edge.
class CellColours {
 public:
  CellColours() : colours_(kKinds * 512) {
    for (std::size_t i = 0; i < colours_.size(); ++i) {
      const QRgb kind = colour_of(static_cast<Kind>(i / 512)).rgb();
      const QRgb inside = mixed(colours::kRow.rgb(), kind, visible(i % 256));
      colours_[i] = i / 256 % 2 == 0 ? inside : mixed(inside, colours::kPaper.rgb(), 150);
    }
  }
  QRgb of(const Cell& c) const { return colours_[c.kind * 512U + (c.edge ? 256U : 0U) + c.share]; }

 private:
  std::vector<QRgb> colours_;
};

constexpr int kHatch = 6;  // distance in pixels between the stripes of waiting events

bool waiting(const Cell& c) { return c.share > 0 && c.kind == static_cast<std::uint8_t>(Kind::wait); }

QRgb hatch_colour() { return mixed(colour_of(Kind::wait).rgb(), colours::kInk.rgb(), 90); }

// Returns the name of a band; where it has no room, only what tells it from other bands of its phase: "12" of
// "decode 12".
QString band_text(QPainter& painter, const Timeline& t, const Band& band, double room) {
  const QString name = QString::fromStdString(name_of(t, band));
  const QString phase = QString::fromStdString(t.phases[static_cast<std::size_t>(band.phase)]) + " ";
  const bool shortened = painter.fontMetrics().horizontalAdvance(name) > room && name.startsWith(phase);
  return shortened ? name.mid(phase.size()) : name;
}

// Returns the pixel of a device that has `ratio` pixels in place of one of the frame.
int in_device(int pixel, double ratio) { return static_cast<int>(std::lround(pixel * ratio)); }

TimeScale scale_of(const View& view, int width) {
  TimeScale s = view.scale;
  s.width = width;
  return s;
}

}  // namespace

CanvasFrame frame_of(const QPainter& painter) {
  const double ratio = painter.device()->devicePixelRatioF();
  return {static_cast<int>(std::lround(painter.device()->width() / ratio)),
          static_cast<int>(std::lround(painter.device()->height() / ratio))};
}

int top_of(const View& view, const Row& row) { return CanvasFrame::kRuler + row.y - (row.pinned ? 0 : view.scroll); }

int row_at_pixel(const View& view, const CanvasFrame& frame, int y) {
  const int inside = y - CanvasFrame::kRuler;
  if (inside < 0 || inside >= frame.rows_height()) return -1;
  return row_at(view.layout, inside < view.layout.pinned_height ? inside : inside + view.scroll);
}

EventId event_at_pixel(const Scene& scene, const View& view, const CanvasFrame& frame, int x, int y) {
  const int index = row_at_pixel(view, frame, y);
  if (index < 0 || x < CanvasFrame::kGutter) return kNoEvent;
  const Row& row = view.layout.rows[static_cast<std::size_t>(index)];
  if (row.track == kNone) return kNoEvent;
  const TimeScale scale = scale_of(view, frame.plot_width());
  const double at = x - CanvasFrame::kGutter;
  const EventId exact = event_at(scene.timeline(), row.track, scale.time_of(at + 0.5));
  if (exact != kNoEvent) return exact;
  const Track& track = scene.timeline().tracks[row.track];
  const EventId near = first_after(scene.timeline(), track, scale.time_of(at - 1));
  return near < track.first + track.count && scene.timeline().begins[near] <= scale.time_of(at + 2) ? near : kNoEvent;
}

const QString& Canvas::name_of_label(const Scene& scene, std::uint32_t label) {
  names_.resize(scene.timeline().labels.size());
  auto& [name, text] = names_[label];
  const Label& wanted = scene.timeline().labels[label];
  if (name != wanted.name) {
    name = wanted.name;
    text = QString::fromStdString(shown_name(wanted));
  }
  return text;
}

void Canvas::paint_lane(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y) {
  const CanvasFrame frame = frame_of(painter);
  const double ratio = image_ == nullptr ? 1 : image_->devicePixelRatio();
  const int gutter = in_device(CanvasFrame::kGutter, ratio);
  cells_.resize(
      static_cast<std::size_t>(image_ == nullptr ? frame.plot_width() : std::max(1, image_->width() - gutter)));
  line_.resize(cells_.size());
  render_track(scene.timeline(), scene.timeline().tracks[row.track], scene.prepared->pyramids[row.track],
               scale_of(view, static_cast<int>(cells_.size())), cells_);
  static const CellColours colours;
  for (std::size_t x = 0; x < cells_.size(); ++x) line_[x] = colours.of(cells_[x]);
  const int first = std::max(y + 2, CanvasFrame::kRuler), last = std::min(y + row.height - 1, frame.height);
  if (image_ != nullptr) {
    copy_lane(gutter, in_device(first, ratio), std::min(in_device(last, ratio), image_->height()));
  } else {
    draw_lane(painter, first, last);
  }
}

// Copies the colours of a row's pixels into the lines of the image, from its pixel `left` on.
void Canvas::copy_lane(int left, int first, int last) {
  const QRgb hatch = hatch_colour();
  const auto distance = static_cast<std::size_t>(in_device(kHatch, image_->devicePixelRatio()));
  const bool waits = std::any_of(cells_.begin(), cells_.end(), waiting);
  for (int line = first; line < last; ++line) {
    auto* const pixels = reinterpret_cast<QRgb*>(image_->scanLine(line)) + left;
    std::memcpy(pixels, line_.data(), line_.size() * sizeof(QRgb));
    if (!waits) continue;
    for (std::size_t x = 0; x < cells_.size(); ++x) {
      const bool stripe = (x + static_cast<std::size_t>(line)) % distance == 0;
      if (stripe && waiting(cells_[x])) pixels[x] = hatch;
    }
  }
}

// Draws a row with one rectangle for each stretch of neighbouring pixels of the same colour, for vector formats.
void Canvas::draw_lane(QPainter& painter, int first, int last) {
  const auto runs = [&](auto same, auto draw) {
    for (std::size_t from = 0, to = 0; from < cells_.size(); from = to) {
      while (to < cells_.size() && same(from, to)) ++to;
      draw(static_cast<int>(from), static_cast<int>(to));
    }
  };
  const int left = CanvasFrame::kGutter;
  runs([&](std::size_t a, std::size_t b) { return line_[a] == line_[b]; },
       [&](int from, int to) { painter.fillRect(left + from, first, to - from, last - first, QColor(line_[from])); });
  painter.setPen(QColor(hatch_colour()));
  runs([&](std::size_t a, std::size_t b) { return waiting(cells_[a]) == waiting(cells_[b]); },
       [&](int from, int to) {
         if (!waiting(cells_[from])) return;
         // Waiting events are hatched: a stripe of the hatching consists of the pixels with the same x + y = c.
         for (int c = (from + first) / kHatch * kHatch; c < to + last; c += kHatch) {
           const int x1 = std::max(from, c - last), x2 = std::min(to, c - first);
           if (x1 < x2) painter.drawLine(left + x1, c - x1, left + x2, c - x2);
         }
       });
}

void Canvas::paint_names(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y) {
  const Timeline& t = scene.timeline();
  const CanvasFrame frame = frame_of(painter);
  const TimeScale scale = scale_of(view, frame.plot_width());
  const Track& track = t.tracks[row.track];
  const EventId first = first_after(t, track, scale.begin);
  const EventId last = std::min(track.first + track.count, first + kMostNamed);
  const auto shortest = static_cast<Picoseconds>(kNamed * scale.picoseconds_per_pixel());
  for (EventId e = first; e < last && t.begins[e] < scale.end; ++e) {
    const bool searched = !view.found.empty() && view.found[t.label[e]];
    if (!searched && t.ends[e] - t.begins[e] < shortest) continue;
    // Waits and hosts of a compared trace are left blank where they have no counterpart.
    if (view.other != nullptr && !works(t, e) && view.matching->there[e] == kNoEvent) continue;
    const double from = std::max(0.0, scale.x_of(t.begins[e])), to = std::min(scale.width, scale.x_of(t.ends[e]));
    if (searched && to - from < kFramed) {  // too narrow for a frame: a tick is drawn instead
      painter.fillRect(QRectF(CanvasFrame::kGutter + from, y + 1, std::max(1.0, to - from), 3), colours::kInk);
    } else if (searched) {
      painter.setPen(QPen(colours::kInk, 1));
      painter.drawRect(QRectF(CanvasFrame::kGutter + from + 0.5, y + 1.5, to - from - 1, row.height - 3));
    }
    if (to - from < kNamed) continue;
    const int room = static_cast<int>(to - from) - 6;
    const QString& whole = name_of_label(scene, t.label[e]);
    const bool waits = t.kind(e) == Kind::wait;
    const bool fits = (room >= kElided && !waits) || texts_.width_of(whole) <= room;
    QString of;  // the rank that a wait is for: the hatching says that it waits
    if (!fits && waits && whole.startsWith(kWaitFor)) of = whole.mid(kWaitFor.size());
    const QString& name = of.isEmpty() ? whole : of;
    if (!fits && room < kElided && texts_.width_of(name) > room) continue;
    painter.setPen(view.other != nullptr ? colours::kInk : text_on(colour_of(t.kind(e))));
    texts_.draw(painter, name, CanvasFrame::kGutter + from + 4, y + 1, room, row.height - 1);
  }
}

void Canvas::paint_runs(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y) {
  const CanvasFrame frame = frame_of(painter);
  const TimeScale scale = scale_of(view, frame.plot_width());
  const std::vector<Run>& runs = scene.runs[row.process];
  auto run = std::lower_bound(runs.begin(), runs.end(), scale.begin,
                              [](const Run& r, Picoseconds time) { return r.end < time; });
  for (; run != runs.end() && run->begin < scale.end; ++run) {
    const double from = std::max(0.0, scale.x_of(run->begin)), to = std::min(scale.width, scale.x_of(run->end));
    const QRectF box(CanvasFrame::kGutter + from, y + 2, to - from, row.height - 3);
    if (box.width() < 5) continue;
    painter.setPen(QPen(QColor(255, 255, 255, 210), 1));
    painter.drawLine(QPointF(std::floor(box.left()) + 0.5, box.top()),
                     QPointF(std::floor(box.left()) + 0.5, box.bottom()));
    const QString number = QString::number(run->micro_batch);
    if (box.width() < painter.fontMetrics().horizontalAdvance(number) + 4) continue;
    painter.setPen(text_on(colour_of(run->kind)));
    painter.drawText(box, Qt::AlignCenter, number);
  }
}

// Paints the phases of a process: as named boxes in the row above its lanes, as a strip over the lane of a closed one.
void Canvas::paint_bands(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y) {
  constexpr int kStrip = 4;  // height in pixels of the strip
  const CanvasFrame frame = frame_of(painter);
  const TimeScale scale = scale_of(view, frame.plot_width());
  const std::vector<Band>& bands = scene.bands[row.process];
  const auto ends_before = [](const Band& b, Picoseconds time) { return b.end < time; };
  for (auto b = std::lower_bound(bands.begin(), bands.end(), scale.begin, ends_before);
       b != bands.end() && b->begin < scale.end;) {
    const double from = std::max(0.0, scale.x_of(b->begin)), to = std::min(scale.width, scale.x_of(b->end));
    const QColor colour = colour_of_phase(static_cast<std::size_t>(b->phase));
    const double gap = to - from > kFramed ? 1 : 0;
    painter.fillRect(QRectF(CanvasFrame::kGutter + from, y + 2, std::max(1.0, to - from - gap),
                            row.track == kNone ? row.height - 4 : kStrip),
                     colour);
    const double room = to - from - 6;
    const QString text = row.track == kNone && room > 0 ? band_text(painter, scene.timeline(), *b, room) : QString();
    if (!text.isEmpty() && (room >= kElided || painter.fontMetrics().horizontalAdvance(text) <= room)) {
      painter.setPen(text_on(colour));
      texts_.draw(painter, text, CanvasFrame::kGutter + from + 4, y, static_cast<int>(room), row.height);
    }
    // After a band that is narrower than a pixel, skips the other bands that end within the same pixel.
    b = to - from < 1 ? std::max(b + 1, std::lower_bound(b, bands.end(), scale.time_of(from + 1), ends_before)) : b + 1;
  }
}

// Paints the events of a lane in colours that show how much slower or faster they are than in the trace compared with,
// instead of the colours of their kinds.
void Canvas::paint_changes(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y) {
  const Timeline& t = scene.timeline();
  const CanvasFrame frame = frame_of(painter);
  const TimeScale scale = scale_of(view, frame.plot_width());
  const Track& track = t.tracks[row.track];
  painter.fillRect(CanvasFrame::kGutter, y + 2, frame.plot_width(), row.height - 3, colours::kRow);
  EventId e = first_after(t, track, scale.begin);
  while (e < track.first + track.count && t.begins[e] < scale.end) {
    const double from = std::max(0.0, scale.x_of(t.begins[e])), to = std::min(scale.width, scale.x_of(t.ends[e]));
    const bool matched = view.matching->there[e] != kNoEvent;
    QColor colour = colour_of_change(relative_change(t, view.other->timeline(), *view.matching, e));
    if (!matched) colour = works(t, e) ? colours::kUnmatched : colours::kRow;
    painter.fillRect(
        QRectF(CanvasFrame::kGutter + from, y + 2, std::max(1.0, to - from - (to - from > 3 ? 1 : 0)), row.height - 3),
        colour);
    // After an event that is narrower than a pixel, skips the other events that end within the same pixel.
    const EventId next = first_after(t, track, std::max(t.ends[e], scale.time_of(from + 1)));
    e = to - from < 1 ? std::max(e + 1, next) : e + 1;
  }
}

// Fills a row with the background colour. In a row that shows a lane or a curve, only the gutter and the row's edges
// are filled, because painting the lane or curve covers the rest.
void Canvas::paint_background(QPainter& painter, const Row& row, int y) {
  const int width = frame_of(painter).width, plot = width - CanvasFrame::kGutter;
  const bool header = row.kind == RowKind::group || row.kind == RowKind::process;
  const QColor& colour = header ? colours::kHeader : colours::kPaper;
  const bool curve = row.kind == RowKind::counter || row.kind == RowKind::link;
  if (row.track == kNone && !curve) return painter.fillRect(0, y, width, row.height, colour);
  painter.fillRect(0, y, CanvasFrame::kGutter, row.height, colour);
  painter.fillRect(CanvasFrame::kGutter, y, plot, 2, colour);
  painter.fillRect(CanvasFrame::kGutter, y + row.height - 1, plot, 1, colour);
}

void Canvas::paint_row(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y) {
  const int width = frame_of(painter).width;
  const bool header = row.kind == RowKind::group || row.kind == RowKind::process;
  const bool banded = row.kind == RowKind::process && !scene.bands[row.process].empty();
  paint_background(painter, row, y);
  if (row.kind == RowKind::counter || row.kind == RowKind::link) {
    painter.fillRect(CanvasFrame::kGutter, y + 1, width - CanvasFrame::kGutter, row.height - 1, colours::kRow);
    (row.kind == RowKind::link ? paint_link : paint_counter)(painter, scene, view, row, y);
  } else if (row.track != kNone) {
    if (view.other != nullptr) {
      paint_changes(painter, scene, view, row, y);
    } else {
      paint_lane(painter, scene, view, row, y);
    }
    if (banded) paint_bands(painter, scene, view, row, y);
    if (row.kind != RowKind::track) {
      paint_runs(painter, scene, view, row, y);
    } else {
      paint_names(painter, scene, view, row, y);
    }
  }
  if (banded && row.track == kNone) paint_bands(painter, scene, view, row, y);
  painter.setPen(row.kind == RowKind::track ? colours::kFaintInk : colours::kInk);
  const int indent = row.kind == RowKind::group ? 6 : header ? 12 : 28;
  const QString mark = header ? (row.open ? QStringLiteral("\u25BE ") : QStringLiteral("\u25B8 ")) : QString();
  ElidedTexts& texts = header ? bold_texts_ : texts_;
  const int room = CanvasFrame::kGutter - indent - 6;
  QString name = mark + QString::fromStdString(row.text);
  if (header && texts.width_of(name) > room) name.replace("(rank ", "(");  // "stage 10 (1280, x128)"
  // The ends of lanes' names tell them apart: "PP rank 0, TP rank 0, compute".
  texts.draw(painter, name, indent, y, room, std::min(row.height, kHeaderHeight), Qt::ElideMiddle);
  painter.setFont(canvas_font());
}

void Canvas::paint_rows(QPainter& painter, const Scene& scene, const View& view) {
  const CanvasFrame frame = frame_of(painter);
  const int top = CanvasFrame::kRuler, bottom = top + frame.rows_height();
  const auto paint_if_in_view = [&](const Row& row) {
    const int y = top_of(view, row);
    if (y + row.height > top && y < bottom) paint_row(painter, scene, view, row, y);
  };
  for (const Row& row : view.layout.rows) {
    if (!row.pinned) paint_if_in_view(row);
  }
  if (view.arrows && view.other == nullptr) paint_arrows(painter, frame, scene, view);
  for (const Row& row : view.layout.rows) {
    if (row.pinned) paint_if_in_view(row);
  }
}

void Canvas::paint(QPainter& painter, const Scene& scene, const View& view) {
  const CanvasFrame frame = frame_of(painter);
  const int below = CanvasFrame::kRuler + std::max(view.layout.pinned_height, view.layout.height - view.scroll);
  painter.fillRect(0, below, frame.width, frame.height - below, colours::kPaper);
  painter.setFont(canvas_font());
  painter.setClipRect(0, CanvasFrame::kRuler, frame.width, frame.rows_height());
  paint_rows(painter, scene, view);
  paint_marks(painter, frame, scene, view);
  paint_notes(painter, frame, view);
  painter.setClipping(false);
  paint_ruler(painter, frame, scene, view);
  paint_legend(painter, frame, scene, view);
}

void Canvas::paint(QImage& image, const Scene& scene, const View& view) {
  QPainter painter(&image);
  image_ = &image;
  paint(painter, scene, view);
  image_ = nullptr;
}

}  // namespace orrery
