#include "viz/window/command_palette.h"

#include <gtest/gtest.h>

#include <QLineEdit>
#include <QListWidget>
#include <QTest>

using namespace orrery;

TEST(CommandPalette, FitsByLettersInTheirOrder) {
  EXPECT_GE(misfit("crp", "Critical path"), 0);
  EXPECT_EQ(misfit("xyz", "Critical path"), -1);
  EXPECT_LT(misfit("path", "Critical path"), misfit("pth", "Critical path"));
  EXPECT_EQ(misfit("", "anything"), 0);
}

TEST(CommandPalette, ReturnRunsTheChosenCommand) {
  QString ran;
  const auto made = [&](const char* text) { return PaletteCommand{text, "", [&ran, text] { ran = text; }}; };
  CommandPalette palette({made("Compare"), made("Critical path"), made("Copy")}, nullptr);
  palette.show();
  EXPECT_EQ(palette.list()->count(), 3);
  QTest::keyClicks(palette.line(), "c p");
  EXPECT_EQ(palette.list()->count(), 3);
  QTest::keyClicks(palette.line(), "ath");
  ASSERT_EQ(palette.list()->count(), 1);
  palette.line()->setText("c");
  QTest::keyClick(palette.line(), Qt::Key_Down);
  QTest::keyClick(palette.line(), Qt::Key_Down);
  QTest::keyClick(palette.line(), Qt::Key_Down);
  QTest::keyClick(palette.line(), Qt::Key_Up);
  const QString chosen = palette.list()->currentItem()->text();
  QTest::keyClick(palette.line(), Qt::Key_Return);
  EXPECT_EQ(ran, chosen);
  EXPECT_FALSE(palette.isVisible());
}
