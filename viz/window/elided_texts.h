#pragma once

#include <QFont>
#include <QHash>
#include <QPainter>
#include <QStaticText>
#include <QString>
#include <utility>

namespace orrery {

// Draws lines of text, shortened with "..." to the available width. Lines are laid out once and cached:
// QPainter::drawText() lays a line out whenever it draws it, which takes most of the time of a picture with thousands
// of names.
class ElidedTexts {
 public:
  explicit ElidedTexts(QFont font) : font_(std::move(font)) {}
  // Draws a text from x on, at most `width` wide, centred between y and y + height, in the painter's colour. mode: the
  // end (ElideRight) or the middle (ElideMiddle) of a text that is too long is left out.
  void draw(QPainter& painter, const QString& text, double x, int y, int width, int height,
            Qt::TextElideMode mode = Qt::ElideRight);
  int width_of(const QString& text);

 private:
  // Number of lines above which the cache is emptied, because most of them are then of names that are no longer shown.
  static constexpr qsizetype kMost = 20'000;

  QFont font_;
  QHash<QString, int> widths_;
  // the cached layout of each text for each width in pixels; -1: the text is not shortened; below: -2 - width where its
  // middle is left out
  QHash<std::pair<QString, int>, QStaticText> lines_;
};

}  // namespace orrery
