#include <gtest/gtest.h>

#include <QFontInfo>
#include <QFontMetrics>

#include "viz/window/canvas.h"

using namespace orrery;

TEST(Font, IsOurOwn) {
  for (const bool bold : {false, true}) {
    EXPECT_EQ(canvas_font(bold).family(), QString("Orrery Sans"));
    EXPECT_EQ(QFontInfo(canvas_font(bold)).family(), QString("Orrery Sans"));
    EXPECT_EQ(QFontInfo(canvas_font(bold)).bold(), bold);
  }
}

TEST(Font, HasEveryCharacterThatIsShown) {
  const QFontMetrics metrics(canvas_font());
  for (const QChar c : QStringLiteral("ABCXYZabcxyz0189.,:;()[]{}%+-*/<>=_#'\"\u25BE\u25B8\u2026"))
    EXPECT_TRUE(metrics.inFont(c)) << static_cast<int>(c.unicode());
}
