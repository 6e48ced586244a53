#include "viz/window/what_if_panel.h"

#include <gtest/gtest.h>

#include <QComboBox>
#include <QLabel>
#include <QStandardItemModel>
#include <QTableWidget>
#include <QTest>

#include "models/load/load_spec.h"

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
  std::shared_ptr<const Scene> got;
  QObject::connect(&panel, &WhatIfPanel::simulated, [&](const std::shared_ptr<const Scene>& scene) { got = scene; });
  panel.box("strategy.micro_batch")->setCurrentText("2");
  EXPECT_EQ(got, nullptr);  // it is simulated in the background
  panel.finish_work();
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->document.step->spec.strategy.micro_batch, 2);
}

// A change that is impossible takes back those that were not shown yet.
TEST(WhatIfPanel, SettingsAreThoseOfTheStepThatIsShown) {
  WhatIfPanel panel;
  panel.show_spec(kPanelSpec);
  int shown = 0;
  QObject::connect(&panel, &WhatIfPanel::simulated, [&] { ++shown; });
  QComboBox *const batch = panel.box("strategy.micro_batch"), *const chunks = panel.box("strategy.virtual_stages");
  const QString before = batch->currentText(), none = chunks->currentText();
  batch->setCurrentText("2");
  chunks->setCurrentIndex(chunks->count() - 1);
  panel.finish_work();
  EXPECT_EQ(batch->currentText(), before);
  EXPECT_EQ(chunks->currentText(), none);
  EXPECT_EQ(shown, 0);
  batch->setCurrentText("2");
  panel.finish_work();
  EXPECT_EQ(shown, 1);
  EXPECT_EQ(batch->currentText(), "2");
}

// The figures of a change stand beside those of the step as it was opened.
TEST(WhatIfPanel, SaysHowMuchAChangeChanges) {
  WhatIfPanel panel;
  const auto step = predict_step(load_spec(kPanelSpec));
  panel.show_spec(kPanelSpec, {}, step.get());
  panel.box("strategy.tensor")->setCurrentText("4");
  panel.finish_work();
  const QString text = panel.findChild<QLabel*>()->text();
  EXPECT_TRUE(text.contains("step 459.5 ms (-42.7 % on 802.4 ms), memory")) << text.toStdString();
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
