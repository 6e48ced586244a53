#include "viz/window/what_if_panel.h"

#include <gtest/gtest.h>

#include <QComboBox>
#include <QStandardItemModel>
#include <QTableWidget>
#include <QTest>

using namespace orrery;

namespace {

const std::string kPanelSpec = std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml";

// For each value of a box, the reason why it cannot be chosen, "" if it can.
std::vector<std::string> reasons(const QComboBox& box) {
  std::vector<std::string> result;
  const auto* items = qobject_cast<const QStandardItemModel*>(box.model());
  for (int i = 0; i < items->rowCount(); ++i) {
    const QStandardItem* item = items->item(i);
    EXPECT_EQ(item->isEnabled(), item->toolTip().isEmpty());
    result.push_back(item->toolTip().toStdString());
  }
  return result;
}

}  // namespace

TEST(WhatIfPanel, GreysOutWhatIsImpossibleAndSaysWhy) {
  WhatIfPanel panel;
  panel.show_spec(kPanelSpec);
  const QComboBox* const box = panel.box("strategy.virtual_stages");
  ASSERT_NE(box, nullptr);
  ASSERT_TRUE(QTest::qWaitFor([&] { return !reasons(*box).back().empty(); }, 10'000));
  EXPECT_TRUE(reasons(*box)[static_cast<std::size_t>(box->currentIndex())].empty());
}

TEST(WhatIfPanel, EveryChangeIsSimulated) {
  WhatIfPanel panel;
  panel.show_spec(kPanelSpec);
  std::shared_ptr<const Step> got;
  QObject::connect(&panel, &WhatIfPanel::simulated, [&](const std::shared_ptr<const Step>& step) { got = step; });
  panel.box("strategy.micro_batch")->setCurrentText("2");
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->spec.strategy.micro_batch, 2);
}

TEST(WhatIfPanel, TakesTheOptionsOfTheProgram) {
  WhatIfPanel panel;
  panel.show_spec(kPanelSpec, {.overrides = {"strategy.tensor=4", "strategy.data=null"}});
  EXPECT_EQ(panel.box("strategy.tensor")->currentText(), "4");
}

TEST(WhatIfPanel, TheBestStrategyComesFirst) {
  WhatIfPanel panel;
  panel.show_spec(kPanelSpec);
  panel.try_all_now(6);
  ASSERT_EQ(panel.tried().size(), 6u);
  for (std::size_t i = 1; i < 6; ++i) EXPECT_FALSE(better(panel.tried()[i], panel.tried()[i - 1]));
  EXPECT_EQ(panel.table()->rowCount(), 6);
  EXPECT_EQ(panel.table()->item(0, 0)->text().toInt(), panel.tried()[0].candidate.tensor);
}
