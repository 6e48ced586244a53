#pragma once

#include <QFont>
#include <QHash>
#include <QPainter>
#include <QStaticText>
#include <QString>
#include <utility>

namespace orrery {

// Lines of text, cut with "..." to the width that they have, laid out once and kept: QPainter::drawText() lays a line
// out whenever it draws it, which is most of what a picture with thousands of names takes.
class ElidedTexts {
 public:
  explicit ElidedTexts(QFont font) : font_(std::move(font)) {}
  // Draws a text from x on, at most `width` wide, centred between y and y + height, in the painter's colour.
  void draw(QPainter& painter, const QString& text, double x, int y, int width, int height);
  int width_of(const QString& text);

 private:
  // most lines that are kept; beyond that, they are of other names and are dropped
  static constexpr qsizetype kMost = 20'000;

  QFont font_;
  QHash<QString, int> widths_;
  QHash<std::pair<QString, int>, QStaticText> lines_;  // by text and width; -1: not cut
};

}  // namespace orrery
