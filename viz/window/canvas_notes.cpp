// This file paints notes, over everything else in the area of rows.
#include <algorithm>

#include "viz/window/canvas.h"
#include "viz/window/palette.h"

namespace orrery {
namespace {

constexpr int kWidest = 240, kHigh = 17;  // greatest width of a note's box, and its height, in pixels
constexpr int kMostBelow = 8;  // greatest number of lines by which a note's box is moved down to avoid others

// Returns the vertical pixels of the visible rows of a process: the top of the first row, the bottom of the last.
std::pair<int, int> rows_of(const View& view, const CanvasFrame& frame, int process) {
  const int top = CanvasFrame::kRuler, bottom = top + frame.rows_height();
  if (process < 0) return {top, bottom};
  int first = bottom, last = top;
  for (const Row& row : view.layout.rows) {
    if (row.pinned || row.kind == RowKind::group || row.process != static_cast<std::uint32_t>(process)) continue;
    first = std::min(first, top_of(view, row));
    last = std::max(last, top_of(view, row) + row.height);
  }
  return {std::max(first, top), std::min(last, bottom)};
}

}  // namespace

void paint_notes(QPainter& painter, const CanvasFrame& frame, const View& view) {
  TimeScale scale = view.scale;
  scale.width = frame.plot_width();
  std::vector<QRect> boxes;
  for (const ShownNote& note : view.notes) {
    const auto [top, bottom] = rows_of(view, frame, note.process);
    if (note.to < scale.begin || note.from > scale.end || top >= bottom) continue;
    const double from = CanvasFrame::kGutter + std::max(0.0, scale.x_of(note.from));
    const double to = CanvasFrame::kGutter + std::min(scale.width, scale.x_of(note.to));
    painter.fillRect(QRectF(from, top, to - from, bottom - top), colours::kNoted);
    painter.setPen(QPen(colours::kNoteEdge, 1));
    for (const double x : {from, to}) painter.drawLine(QPointF(x, top), QPointF(x, bottom));
    const QString text = painter.fontMetrics().elidedText(note.text, Qt::ElideRight, kWidest - 10);
    const int wide = painter.fontMetrics().horizontalAdvance(text) + 10;
    QRect box(std::min(static_cast<int>(from), frame.width - wide - 1), top + 2, wide, kHigh);
    const auto covered = [&] {
      return std::any_of(boxes.begin(), boxes.end(), [&](const QRect& other) { return other.intersects(box); });
    };
    for (int i = 0; i < kMostBelow && covered(); ++i) box.translate(0, kHigh + 2);
    boxes.push_back(box);
    painter.fillRect(box, colours::kNote);
    painter.drawRect(box);
    painter.setPen(colours::kInk);
    painter.drawText(box, Qt::AlignCenter | Qt::TextSingleLine, text);
  }
}

}  // namespace orrery
