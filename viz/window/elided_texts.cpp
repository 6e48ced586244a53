#include "viz/window/elided_texts.h"

#include <QFontMetrics>

namespace orrery {

int ElidedTexts::width_of(const QString& text) {
  const auto found = widths_.constFind(text);
  if (found != widths_.constEnd()) return *found;
  if (widths_.size() >= kMost) widths_.clear();
  return *widths_.insert(text, QFontMetrics(font_).horizontalAdvance(text));
}

void ElidedTexts::draw(QPainter& painter, const QString& text, double x, int y, int width, int height,
                       Qt::TextElideMode mode) {
  const int kept = width_of(text) <= width ? -1 : mode == Qt::ElideMiddle ? -2 - width : width;
  auto line = lines_.find({text, kept});
  if (line == lines_.end()) {
    if (lines_.size() >= kMost) lines_.clear();
    QStaticText made(kept == -1 ? text : QFontMetrics(font_).elidedText(text, mode, width));
    made.setTextFormat(Qt::PlainText);
    made.setPerformanceHint(QStaticText::AggressiveCaching);
    made.prepare({}, font_);
    line = lines_.insert({text, kept}, made);
  }
  painter.setFont(font_);
  painter.drawStaticText(QPointF(x, y + (height - QFontMetrics(font_).height() + 1) / 2), *line);
}

}  // namespace orrery
