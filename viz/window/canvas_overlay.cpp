// This file paints everything over the rows: memory curves, loads of links, ruler, arrows, marks.
#include <algorithm>
#include <cmath>

#include "sim/print/text.h"
#include "viz/window/canvas.h"
#include "viz/window/palette.h"

namespace orrery {
namespace {

// Arrows are drawn only if the plot has at least this number of pixels per arrow, so that they can be told apart.
constexpr int kArrowDistance = 5;
constexpr int kPale = 70;  // opacity, of 255, of the highest load of a link within a pixel

TimeScale plot_scale(const CanvasFrame& frame, const View& view) {
  TimeScale s = view.scale;
  s.width = frame.plot_width();
  return s;
}

struct Highest {
  std::ptrdiff_t sample = -1;  // index of the counter's sample with the greatest sum within a pixel
  double sum = 0;
};

double sum_of(const Counter& c, std::ptrdiff_t sample) {
  double sum = 0;
  for (std::size_t s = 0; s < c.series.size(); ++s)
    sum += c.values[static_cast<std::size_t>(sample) * c.series.size() + s];
  return sum;
}

// Returns, for each pixel column of a memory curve, the highest value at any time within the pixel, so that no peak is
// lost.
std::vector<Highest> columns_of(const Counter& c, const TimeScale& scale) {
  std::vector<Highest> columns(static_cast<std::size_t>(scale.width));
  std::ptrdiff_t at = sample_at(c, scale.begin);
  const auto count = static_cast<std::ptrdiff_t>(c.times.size());
  for (std::size_t x = 0; x < columns.size(); ++x) {
    Highest& column = columns[x];
    if (at >= 0) column = {at, sum_of(c, at)};
    const Picoseconds end = scale.time_of(static_cast<double>(x + 1));
    for (; at + 1 < count && c.times[static_cast<std::size_t>(at + 1)] < end; ++at) {
      const double sum = sum_of(c, at + 1);
      if (column.sample < 0 || sum >= column.sum) column = {at + 1, sum};
    }
  }
  return columns;
}

// Returns, for each pixel column of a curve and each of its series, the mean over the time of the pixel.
std::vector<double> means_of(const Counter& c, const TimeScale& scale) {
  const std::size_t series = c.series.size();
  std::vector<double> means(static_cast<std::size_t>(scale.width) * series, 0.0);
  std::ptrdiff_t at = sample_at(c, scale.begin);
  for (std::size_t x = 0; x < static_cast<std::size_t>(scale.width); ++x) {
    const Picoseconds begin = scale.time_of(static_cast<double>(x));
    const Picoseconds end = std::max(begin + 1, scale.time_of(static_cast<double>(x + 1)));
    for (Picoseconds from = begin; from < end;) {
      const auto next = static_cast<std::size_t>(at + 1);
      const bool changes = next < c.times.size() && c.times[next] < end;
      const Picoseconds to = changes ? std::max(from, c.times[next]) : end;
      const double share = static_cast<double>(to - from) / static_cast<double>(end - begin);
      for (std::size_t k = 0; at >= 0 && k < series; ++k)
        means[x * series + k] += share * c.values[static_cast<std::size_t>(at) * series + k];
      from = to;
      at += changes ? 1 : 0;
    }
  }
  return means;
}

void dashed_line(QPainter& painter, double y, int from, int to, const QColor& colour, Qt::PenStyle style) {
  painter.setPen(QPen(colour, 1, style));
  painter.drawLine(QPointF(from, std::floor(y) + 0.5), QPointF(to, std::floor(y) + 0.5));
}

// Returns the point at which a line from a point outside the plot enters the plot. Lines are cut there because vector
// formats would draw them beyond the plot.
QPointF cut(const QPointF& outside, const QPointF& other, const QRectF& plot) {
  const double x = outside.x() < plot.left() ? plot.left() : plot.right();
  if (other.x() == outside.x()) return outside;
  return outside + (other - outside) * ((x - outside.x()) / (other.x() - outside.x()));
}

QString bytes_text(double bytes) { return QString::fromStdString(memory_text(bytes)); }

}  // namespace

QString time_label(Picoseconds t, Picoseconds step) {
  struct Unit {
    const char* name;
    Picoseconds size;
  };
  static constexpr Unit units[] = {
      {"s", 1'000'000'000'000}, {"ms", 1'000'000'000}, {"us", 1'000'000}, {"ns", 1000}, {"ps", 1}};
  const Unit* unit = units;
  while (unit->size > 1 && unit->size > step * 100) ++unit;
  int decimals = 0;
  for (Picoseconds d = unit->size; d > step && decimals < 3; d /= 10) ++decimals;
  return QString::number(static_cast<double>(t) / static_cast<double>(unit->size), 'f', decimals) + " " + unit->name;
}

// Marks the time from which on a rank would have run out of memory.
static void paint_out_of_memory(QPainter& painter, const TimeScale& scale, Picoseconds time, int y, int height) {
  if (time < 0 || time > scale.end) return;
  const double x = CanvasFrame::kGutter + std::max(0.0, scale.x_of(time));
  painter.fillRect(QRectF(x, y + 1, CanvasFrame::kGutter + scale.width - x, 3), colours::kLimit);
  painter.setPen(QPen(colours::kLimit, 1));
  painter.drawLine(QPointF(x, y + 1), QPointF(x, y + height - 1));
  const QRectF box(std::min(x + 4, CanvasFrame::kGutter + scale.width - 94), y + 6, 90, 15);
  painter.fillRect(box, colours::kPaper);
  painter.drawText(box, Qt::AlignCenter, "out of memory");
}

// Draws the series of a counter as areas stacked one on top of the other. y_of: maps a value to a vertical pixel;
// colour_of: gives the colour of a series by its index.
template <class F, class C>
static void paint_series(QPainter& painter, const Counter& counter, const TimeScale& scale, const F& y_of,
                         const C& colour_of) {
  const std::vector<Highest> columns = columns_of(counter, scale);
  const std::size_t series = counter.series.size();
  for (std::size_t s = 0; s < series; ++s) {
    const QColor colour = colour_of(s);
    for (std::size_t x = 0; x < columns.size(); ++x) {
      if (columns[x].sample < 0) continue;
      const double* values = counter.values.data() + static_cast<std::size_t>(columns[x].sample) * series;
      double below = 0;
      for (std::size_t k = 0; k < s; ++k) below += values[k];
      const int from = static_cast<int>(std::lround(y_of(below))),
                to = static_cast<int>(std::lround(y_of(below + values[s])));
      if (from > to) painter.fillRect(CanvasFrame::kGutter + static_cast<int>(x), to, 1, from - to, colour);
    }
  }
}

// Draws the means of the series over each pixel as areas stacked one on top of the other.
template <class F, class C>
static void paint_means(QPainter& painter, const Counter& counter, const TimeScale& scale, const F& y_of,
                        const C& colour_of) {
  const std::vector<double> means = means_of(counter, scale);
  std::size_t at = 0;
  for (int x = 0; at < means.size(); ++x) {
    double below = 0;
    for (std::size_t s = 0; s < counter.series.size(); ++s) {
      const double above = below + means[at++];
      const int from = static_cast<int>(std::lround(y_of(below))), to = static_cast<int>(std::lround(y_of(above)));
      if (from > to) painter.fillRect(CanvasFrame::kGutter + x, to, 1, from - to, colour_of(s));
      below = above;
    }
  }
}

// Writes the peak, reserved and available bytes (capacity) of a rank's memory beside the memory's curve. A reserved or
// capacity of 0 means not known, and is not written.
static void paint_memory_words(QPainter& painter, double peak, double reserved, double capacity, int y) {
  painter.setPen(colours::kFaintInk);
  const bool over = capacity > 0 && std::max(peak, reserved) > capacity;
  QStringList lines = {"peak " + bytes_text(peak)};
  if (reserved > 0) lines << "reserved " + bytes_text(reserved);
  if (capacity > 0) lines << (over ? "OVER capacity " : "capacity ") + bytes_text(capacity);
  for (int i = 0; i < lines.size(); ++i) {
    if (over && i + 1 == lines.size()) painter.setPen(colours::kLimit);
    painter.drawText(QRect(28, y + 15 + 15 * i, CanvasFrame::kGutter - 30, 15), Qt::AlignVCenter, lines[i]);
  }
}

// Draws a triangle that stands on its tip, to mark the peak of a memory curve.
static void paint_peak(QPainter& painter, double x, double tip) {
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colours::kInk);
  const QPointF triangle[] = {{x, tip}, {x - 4, tip - 6}, {x + 4, tip - 6}};
  painter.drawPolygon(triangle, 3);
  painter.setBrush(Qt::NoBrush);
  painter.setRenderHint(QPainter::Antialiasing, false);
}

void paint_counter(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y) {
  const CanvasFrame frame = frame_of(painter);
  const TimeScale scale = plot_scale(frame, view);
  const Process& process = scene.timeline().processes[row.process];
  const Counter& counter = process.counters[row.counter];
  const bool memory = counter.name == "memory";
  const auto& [peak, above] = scene.peaks[row.process][row.counter];
  const auto capacity = memory ? static_cast<double>(process.capacity) : 0;
  const auto reserved = memory ? static_cast<double>(process.reserved) : 0;
  const double top =
      memory && view.memory_top > 0
          ? view.memory_top
          : std::max({peak.bytes, reserved, capacity <= 3 * peak.bytes ? capacity : 0.0, 1.0}) * kRoomAbove;
  const int base = y + row.height - 1, height = row.height - 3;
  const auto y_of = [&](double value) { return base - value / top * height; };
  const bool cache = counter.name == kCacheCounter;
  paint_series(painter, counter, scale, y_of,
               [&](std::size_t series) { return cache ? colours::kCache : colour_of_series(series); });
  const int left = CanvasFrame::kGutter, right = frame.width;
  if (capacity > 0 && capacity <= top) dashed_line(painter, y_of(capacity), left, right, colours::kLimit, Qt::DashLine);
  if (reserved > 0) dashed_line(painter, y_of(reserved), left, right, colours::kInk, Qt::DotLine);
  if (memory)
    paint_memory_words(painter, peak.bytes, reserved, capacity, y);
  else if (cache)
    paint_memory_words(painter, peak.bytes, 0, 0, y);
  paint_out_of_memory(painter, scale, above, y, row.height);
  const double x = CanvasFrame::kGutter + scale.x_of(peak.time);
  if (x >= left && x <= right && peak.bytes > 0) paint_peak(painter, x, y_of(peak.bytes));
}

void paint_link(QPainter& painter, const Scene& scene, const View& view, const Row& row, int y) {
  const CanvasFrame frame = frame_of(painter);
  const TimeScale scale = plot_scale(frame, view);
  const FabricLoad& load = scene.fabric()[row.counter];
  // A link that is hardly used has a scale of its own, on which the full capacity is not seen.
  const bool full_seen = load.peak > 1.0 / 3;
  const double top = (full_seen ? std::max(1.0, load.peak) : std::max(load.peak, 1e-6)) * kRoomAbove;
  const int base = y + row.height - 1, height = row.height - 3;
  const auto y_of = [&](double value) { return base - value / top * height; };
  // Within a pixel a link may be full and idle many times: pale is the highest load, and in full colour the mean.
  paint_series(painter, load.curve, scale, y_of, [&](std::size_t s) {
    QColor pale = colour_of(load.kinds[s]);
    pale.setAlpha(kPale);
    return pale;
  });
  paint_means(painter, load.curve, scale, y_of, [&](std::size_t s) { return colour_of(load.kinds[s]); });
  if (full_seen) dashed_line(painter, y_of(1), CanvasFrame::kGutter, frame.width, colours::kLimit, Qt::DashLine);
  painter.setPen(colours::kFaintInk);
  int line = y + 15;
  for (const auto& [name, share] : {std::pair("peak ", load.peak), std::pair("mean ", load.mean)}) {
    painter.drawText(QRect(28, line, CanvasFrame::kGutter - 30, 15), Qt::AlignVCenter,
                     name + QString::fromStdString(load_text(load, share)));
    line += 15;
  }
}

// Writes the duration of the selected range of time on the ruler, between its edges or, if that is too narrow, beside
// them.
static void paint_measure(QPainter& painter, const TimeScale& scale, const View& view) {
  const double from = std::max(0.0, scale.x_of(view.area_from)), to = std::min(scale.width, scale.x_of(view.area_to));
  if (to <= from) return;
  const QString text = QString::fromStdString(time_text(seconds(view.area_to - view.area_from)));
  const double wide = painter.fontMetrics().horizontalAdvance(text) + 8;
  const double left = std::clamp((from + to - wide) / 2, 0.0, std::max(0.0, scale.width - wide));
  painter.fillRect(QRectF(CanvasFrame::kGutter + from, CanvasFrame::kRuler - 5, to - from, 4), colours::kMeasure);
  painter.fillRect(QRectF(CanvasFrame::kGutter + left, 2, wide, 17), colours::kMeasure);
  painter.setPen(colours::kPaper);
  painter.drawText(QRectF(CanvasFrame::kGutter + left, 2, wide, 17), Qt::AlignCenter, text);
}

void paint_ruler(QPainter& painter, const CanvasFrame& frame, const Scene& scene, const View& view) {
  const TimeScale scale = plot_scale(frame, view);
  painter.fillRect(0, 0, frame.width, CanvasFrame::kRuler, colours::kPaper);
  painter.setFont(canvas_font(true));
  painter.setPen(colours::kInk);
  const QString title = QString::fromStdString(scene.timeline().title + ", " + scene.timeline().source);
  painter.drawText(QRect(6, 0, CanvasFrame::kGutter - 10, CanvasFrame::kRuler - 2), Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(title, Qt::ElideRight, CanvasFrame::kGutter - 12));
  painter.setFont(canvas_font());
  const Picoseconds step = tick_distance(scale, 100);
  for (Picoseconds t = scale.begin / step * step; t <= scale.end; t += step) {
    const double x = CanvasFrame::kGutter + scale.x_of(t);
    if (x < CanvasFrame::kGutter) continue;
    painter.setPen(colours::kFaintInk);
    painter.drawLine(QPointF(x, CanvasFrame::kRuler - 6), QPointF(x, CanvasFrame::kRuler - 1));
    const QString label = time_label(t, step);
    if (x + 4 + painter.fontMetrics().horizontalAdvance(label) <= frame.width)
      painter.drawText(QRectF(x + 4, 0, 120, CanvasFrame::kRuler - 4), Qt::AlignVCenter | Qt::AlignLeft, label);
  }
  painter.setPen(colours::kGrid);
  painter.drawLine(0, CanvasFrame::kRuler - 1, frame.width, CanvasFrame::kRuler - 1);
  if (view.area_to > view.area_from) paint_measure(painter, scale, view);
}

void paint_arrows(QPainter& painter, const CanvasFrame& frame, const Scene& scene, const View& view) {
  const TimeScale scale = plot_scale(frame, view);
  const std::vector<Arrow>& arrows = scene.timeline().arrows;
  const auto first = std::lower_bound(arrows.begin(), arrows.end(), scale.begin - (scale.end - scale.begin) / 4,
                                      [](const Arrow& a, Picoseconds t) { return a.from < t; });
  const auto last =
      std::lower_bound(first, arrows.end(), scale.end, [](const Arrow& a, Picoseconds t) { return a.from < t; });
  if ((last - first) * kArrowDistance > frame.plot_width()) return;
  const auto point = [&](std::uint32_t track, Picoseconds t) {
    const int index = view.layout.row_of_track[track];
    if (index < 0) return QPointF(-1, -1);
    const Row& row = view.layout.rows[static_cast<std::size_t>(index)];
    return QPointF(CanvasFrame::kGutter + scale.x_of(t), top_of(view, row) + row.height / 2.0);
  };
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setClipRect(CanvasFrame::kGutter, CanvasFrame::kRuler, frame.plot_width(), frame.rows_height());
  const QRectF plot(CanvasFrame::kGutter, CanvasFrame::kRuler, frame.plot_width(), frame.rows_height());
  QColor colour = colour_of(Kind::pipeline).darker(130);
  colour.setAlpha(150);
  painter.setPen(QPen(colour, 1));
  painter.setBrush(colour);
  for (auto a = first; a != last; ++a) {
    const QPointF from = point(a->from_track, a->from), to = point(a->to_track, a->to);
    if (from.y() < 0 || to.y() < 0 || std::abs(from.y() - to.y()) < 2 || to.x() < plot.left()) continue;
    painter.drawLine(from.x() < plot.left() ? cut(from, to, plot) : from,
                     to.x() > plot.right() ? cut(to, from, plot) : to);
    if (!plot.contains(to)) continue;
    const double down = to.y() > from.y() ? -1 : 1;
    const QPointF head[] = {to, to + QPointF(-3.5, 5 * down), to + QPointF(2, 5.5 * down)};
    painter.drawPolygon(head, 3);
  }
  painter.setBrush(Qt::NoBrush);
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setClipRect(0, CanvasFrame::kRuler, frame.width, frame.rows_height());
}

// Draws a bar below each event of the critical path, at most one bar per pixel and row.
static void paint_path(QPainter& painter, const Timeline& t, const View& view, const TimeScale& scale) {
  double drawn = -1e9;
  int drawn_row = -1;
  for (const EventId e : view.path) {
    const int index = view.layout.row_of_track[track_of(t, e)];
    if (index < 0 || t.ends[e] < scale.begin || t.begins[e] > scale.end) continue;
    const double from = scale.x_of(t.begins[e]), to = scale.x_of(t.ends[e]);
    if (index == drawn_row && to < drawn + 1) continue;
    const Row& row = view.layout.rows[static_cast<std::size_t>(index)];
    painter.fillRect(
        QRectF(CanvasFrame::kGutter + from, top_of(view, row) + row.height - 5, std::max(1.0, to - from), 4),
        colours::kCritical);
    drawn = to;
    drawn_row = index;
  }
}

// Draws the span of time that the user has selected, and its two ends up into the ruler.
static void paint_area(QPainter& painter, const CanvasFrame& frame, const View& view, const TimeScale& scale) {
  const double from = std::max(0.0, scale.x_of(view.area_from)), to = std::min(scale.width, scale.x_of(view.area_to));
  painter.fillRect(QRectF(CanvasFrame::kGutter + from, CanvasFrame::kRuler, to - from, frame.rows_height()),
                   colours::kArea);
  painter.setPen(QPen(colours::kMeasure, 1));
  for (const double x : {from, to})
    painter.drawLine(QPointF(CanvasFrame::kGutter + x, 0), QPointF(CanvasFrame::kGutter + x, frame.height));
}

void paint_marks(QPainter& painter, const CanvasFrame& frame, const Scene& scene, const View& view) {
  const Timeline& t = scene.timeline();
  const TimeScale scale = plot_scale(frame, view);
  painter.setClipRect(CanvasFrame::kGutter, CanvasFrame::kRuler, frame.plot_width(), frame.rows_height());
  const auto outline = [&](EventId e, const QColor& colour, int width) {
    const int index = view.layout.row_of_track[track_of(t, e)];
    if (index < 0 || t.ends[e] < scale.begin || t.begins[e] > scale.end) return;
    const Row& row = view.layout.rows[static_cast<std::size_t>(index)];
    const double from = std::max(-4.0, scale.x_of(t.begins[e])), to = std::min(scale.width + 4, scale.x_of(t.ends[e]));
    painter.setPen(QPen(colour, width, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
    painter.drawRect(
        QRectF(CanvasFrame::kGutter + from, top_of(view, row) + 1.5, std::max(1.0, to - from), row.height - 3));
  };
  paint_path(painter, t, view, scale);
  for (const EventId e : view.lit) outline(e, colours::kCritical, 2);
  if (view.hovered != kNoEvent) outline(view.hovered, colours::kSelection, 1);
  if (view.selected != kNoEvent) outline(view.selected, colours::kSelection, 2);
  if (view.area_to > view.area_from) paint_area(painter, frame, view, scale);
  if (view.marked >= 0) {
    painter.setPen(QPen(colours::kInk, 1, Qt::DashLine));
    const double x = CanvasFrame::kGutter + scale.x_of(view.marked);
    painter.drawLine(QPointF(x, CanvasFrame::kRuler), QPointF(x, frame.height));
  }
  painter.setPen(colours::kGrid);
  painter.setClipRect(0, CanvasFrame::kRuler, frame.width, frame.rows_height());
  painter.drawLine(CanvasFrame::kGutter - 1, 0, CanvasFrame::kGutter - 1, frame.height);
}

}  // namespace orrery
