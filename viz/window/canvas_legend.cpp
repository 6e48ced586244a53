// This file paints the legend of the colours below the rows.
#include <algorithm>
#include <array>

#include "viz/window/canvas.h"
#include "viz/window/palette.h"

namespace orrery {

void paint_legend(QPainter& painter, const CanvasFrame& frame, const Scene& scene, const View& view) {
  int y = frame.height - CanvasFrame::kLegend;
  painter.fillRect(0, y, frame.width, CanvasFrame::kLegend, colours::kPaper);
  painter.setPen(colours::kGrid);
  painter.drawLine(0, y, frame.width, y);
  y += 2;
  int x = 8;
  const auto entry = [&](const QColor& colour, const QString& text) {
    const int width = painter.fontMetrics().horizontalAdvance(text);
    if (x + 18 + width > frame.width) return;
    painter.fillRect(x, y + 4, 12, 11, colour);
    painter.setPen(colours::kInk);
    painter.drawText(QRect(x + 16, y, width + 2, 19), Qt::AlignVCenter, text);
    x += 30 + width;
  };
  if (view.other != nullptr) {
    entry(colour_of_change(-0.5), "shorter than in " + QString::fromStdString(view.other->timeline().title));
    entry(colour_of_change(0), "the same");
    entry(colour_of_change(0.5), "longer");
    entry(colours::kUnmatched, "no match there");
    return;
  }
  std::array<bool, kKinds> present{};
  for (const Label& label : scene.timeline().labels) present[static_cast<std::size_t>(label.kind)] = true;
  for (int k = 0; k < kKinds; ++k) {
    const auto kind = static_cast<Kind>(k);
    if (!present[static_cast<std::size_t>(k)]) continue;
    const std::string name(name_of(kind));
    entry(colour_of(kind),
          QString::fromStdString(communicates(kind) && kind != Kind::communication ? name + " comm." : name));
  }
  x = 8;  // the legend continues on a second line, from the left margin
  y += 18;
  for (std::size_t phase = 0; phase < scene.timeline().phases.size(); ++phase)
    entry(colour_of_phase(phase), QString::fromStdString(scene.timeline().phases[phase]));
  const auto shows = [&](const char* counter) {
    return std::any_of(view.layout.rows.begin(), view.layout.rows.end(),
                       [&](const Row& row) { return row.kind == RowKind::counter && row.text == counter; });
  };
  if (shows(kCacheCounter)) entry(colours::kCache, kCacheCounter);
  if (!view.path.empty()) entry(colours::kCritical, "critical path");
  if (!shows("memory")) return;
  for (const Process& p : scene.timeline().processes) {
    const Counter* counter = memory_of(p);
    if (counter == nullptr) continue;
    for (std::size_t s = 0; s < counter->series.size(); ++s) {
      if (scene.memory_seen[s]) entry(colour_of_series(s), QString::fromStdString(counter->series[s]));
    }
    return;
  }
}

}  // namespace orrery
