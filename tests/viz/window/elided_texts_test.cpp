#include "viz/window/elided_texts.h"

#include <gtest/gtest.h>

#include <QImage>

#include "viz/window/canvas.h"

using namespace orrery;

namespace {

constexpr int kWide = 200, kHigh = 20;

// Columns from the first to behind the last that ink is in, of a line drawn at x = 10.
std::pair<int, int> inked(ElidedTexts& texts, const QString& text, int width) {
  QImage image(kWide, kHigh, QImage::Format_RGB32);
  image.fill(Qt::white);
  QPainter painter(&image);
  painter.setPen(Qt::black);
  texts.draw(painter, text, 10, 0, width, kHigh);
  painter.end();
  int first = kWide, last = 0;
  for (int x = 0; x < kWide; ++x) {
    for (int y = 0; y < kHigh; ++y) {
      if (image.pixel(x, y) == qRgb(255, 255, 255)) continue;
      first = std::min(first, x);
      last = x + 1;
    }
  }
  return {first, last};
}

}  // namespace

TEST(ElidedTexts, KeepsToItsWidth) {
  ElidedTexts texts{canvas_font()};
  const QString text = "attention output gradient";
  EXPECT_GT(texts.width_of(text), 100);
  for (int i = 0; i < 2; ++i) {  // the second time from what was kept
    EXPECT_LE(inked(texts, text, 60).second, 70);
    EXPECT_GT(inked(texts, text, 60).second, 50);
    EXPECT_NEAR(inked(texts, text, 190).second, 10 + texts.width_of(text), 3);
    EXPECT_NEAR(inked(texts, text, 190).first, 10, 2);
  }
}

TEST(ElidedTexts, TakesTheColourOfThePainter) {
  ElidedTexts texts{canvas_font()};
  for (const QColor& colour : {QColor(Qt::red), QColor(Qt::blue)}) {
    QImage image(kWide, kHigh, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    painter.setPen(colour);
    texts.draw(painter, "iiii", 10, 0, 100, kHigh);
    painter.end();
    int other = 0;
    for (int x = 0; x < kWide; ++x) {
      for (int y = 0; y < kHigh; ++y) {
        const QColor pixel = image.pixelColor(x, y);
        other += colour == QColor(Qt::red) ? pixel.red() < 200 : pixel.blue() < 200;
      }
    }
    EXPECT_EQ(other, 0);
  }
}

// Two lanes whose names differ in their ends alone are drawn otherwise where their middle is left out.
TEST(ElidedTexts, LeavesOutTheMiddle) {
  ElidedTexts texts{canvas_font()};
  const auto picture = [&](const QString& text, Qt::TextElideMode mode) {
    QImage image(kWide, kHigh, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    painter.setPen(Qt::black);
    texts.draw(painter, text, 10, 0, 120, kHigh, mode);
    painter.end();
    return image;
  };
  const QString a = "PP rank 0, TP rank 0, compute", b = "PP rank 0, TP rank 0, network";
  EXPECT_EQ(picture(a, Qt::ElideRight), picture(b, Qt::ElideRight));
  EXPECT_NE(picture(a, Qt::ElideMiddle), picture(b, Qt::ElideMiddle));
}
