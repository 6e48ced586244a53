#include "viz/window/statistics_panel.h"

#include <gtest/gtest.h>

#include <QTableWidget>
#include <QTest>

#include "tests/viz/events.h"

using namespace orrery;

TEST(StatisticsPanel, ShowsEveryOpAndTheSpreadOfTheChosenOne) {
  const Scene scene({"", made_pipeline(1), nullptr, {}}, 1);
  StatisticsPanel panel;
  panel.resize(500, 600);
  panel.show();
  panel.show_range(&scene, 0, scene.timeline().end);
  ASSERT_EQ(panel.table()->rowCount(), 8);
  EXPECT_EQ(panel.table()->item(0, 0)->text(), "mlp up gradient");
  panel.choose("send");
  EXPECT_EQ(panel.table()->currentRow(), panel.table()->findItems("send", Qt::MatchExactly)[0]->row());
  const int top = panel.plot()->height() * 6 / 10;
  EXPECT_EQ(panel.plot()->text_at({100, top}), "stage 0, micro-batch 0: 2.00 us");
  EXPECT_EQ(panel.plot()->text_at({2, 2}), "");
  QTest::mouseClick(panel.table()->viewport(), Qt::LeftButton, {},
                    panel.table()->visualItemRect(panel.table()->item(1, 0)).center());
  panel.show_range(&scene, 0, scene.timeline().end);  // keeps what was chosen
  EXPECT_EQ(panel.table()->currentRow(), 1);
  panel.show_range(nullptr, 0, 0);
  EXPECT_EQ(panel.table()->rowCount(), 0);
  EXPECT_EQ(panel.plot()->text_at({100, top}), "");
}
