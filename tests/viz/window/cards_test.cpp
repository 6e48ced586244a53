#include "viz/window/cards.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QTest>
#include <QTextBrowser>
#include <QUrl>

#include "sim/advice/advice.h"
#include "tests/viz/events.h"
#include "viz/window/main_window.h"

using namespace orrery;

namespace {

const std::string kExamples = std::string(ORRERY_SOURCE_DIR) + "/examples/";

QString details_of_window(MainWindow& w) { return w.findChild<QTextBrowser*>()->toPlainText(); }

}  // namespace

// The first questions about a step are answered without a click.
TEST(Cards, AStepIsSummedUpWhenItOpens) {
  MainWindow w;
  w.open({kExamples + "gpt-64-gpus.yaml"});
  const QString text = details_of_window(w);
  for (const char* part : {"step time", "in 8 of 10 runs", "tokens/s", "MFU", "fits:", "Where the time goes",
                           "limited by", "What would help most"})
    EXPECT_TRUE(text.contains(part)) << part << " is not in: " << text.toStdString();
}

TEST(Cards, ATraceIsSummedUpByRanksAndOps) {
  MainWindow w;
  w.open({std::string(ORRERY_SOURCE_DIR) + "/benchmarks/measured/gpu_h200_2026-11-27/traces/compile.json.gz"});
  const QString text = details_of_window(w);
  for (const char* part : {"GPU 0", "Ops that take the most time", "nvjet_sm90", "step", "mean of"})
    EXPECT_TRUE(text.contains(part)) << part << " is not in: " << text.toStdString();
  // Fifteen devices of the machine without an event, which PyTorch's profiler names, are not shown.
  EXPECT_LE(w.first()->scene()->timeline().processes.size(), 3U);
}

TEST(Cards, NothingOpenSaysWhatCanBeOpened) {
  MainWindow w;
  EXPECT_TRUE(details_of_window(w).contains("or drop it here"));
  EXPECT_TRUE(welcome_card({"/data/a <b>.yaml"}).contains("recent:/data/a &lt;b&gt;.yaml"));
}

TEST(Cards, AQuestionMarkShowsTheKeys) {
  MainWindow w;
  w.show();
  QApplication::setActiveWindow(&w);
  ASSERT_TRUE(QTest::qWaitForWindowActive(&w));
  QTest::keyClick(&w, '?');
  EXPECT_TRUE(details_of_window(w).contains("next and previous event"));
}

TEST(Cards, AFullStopGoesToTheNextEventOfTheLane) {
  MainWindow w;
  std::vector<Document> documents(1);
  documents[0].timeline = made_pipeline(1);
  w.show_documents(std::move(documents));
  w.show();
  const Timeline& t = w.first()->scene()->timeline();
  const Track& track = t.tracks[0];
  w.first()->select(track.first);
  QTest::keyClick(w.first(), Qt::Key_Period);
  EXPECT_EQ(w.first()->view().selected, track.first + 1);
  QTest::keyClick(w.first(), Qt::Key_Comma);
  QTest::keyClick(w.first(), Qt::Key_Comma);
  EXPECT_EQ(w.first()->view().selected, track.first);  // the first one has none before it
}

TEST(Cards, KeysAndLeversAreToldInShort) {
  EXPECT_TRUE(keys_card().contains("F1"));
  EXPECT_EQ(lever_text({"twice the batch", 0.05}), "twice the batch: 5.0 % less time a token");
  EXPECT_EQ(lever_text({"half the host's time", 0.4, true, 0.08}),
            "half the host's time: 40.0 % less time a token (10 % faster: 8.0 %)");
}
