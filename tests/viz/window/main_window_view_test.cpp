// Links, phases and the first step as the window shows them.
#include <gtest/gtest.h>

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QStatusBar>
#include <QTableWidget>
#include <QTest>
#include <QTextBrowser>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "tests/viz/events.h"
#include "tests/viz/traces.h"
#include "tests/viz/window/golden.h"
#include "viz/window/main_window.h"
#include "viz/window/statistics_panel.h"
#include "viz/window/what_if_panel.h"

using namespace orrery;

namespace {

Document linked(bool network) {
  const std::string leaf = network ? ", network: {leaf: {nodes: 2, uplinks: 1}}" : "";
  return document_of(timeline_of(predict_step(parse_spec(
      "{model: {name: small, layers: 4, hidden: 4096, heads: 32, feed_forward: 16384, vocab: 32000}, sequence: 2048, "
      "cluster: {node: dgx-a100, nodes: 8" +
          leaf + "}, strategy: {tensor: 4, pipeline: 2, data: 8, sharding: zero1, micro_batch: 1, global_batch: 32}}",
      "links.yaml"))));
}

std::vector<Document> one_document(Document d) {
  std::vector<Document> documents;
  documents.push_back(std::move(d));
  return documents;
}

std::vector<Document> generated() {
  Document d;
  d.timeline = made_generation();
  d.name = "text";
  return one_document(std::move(d));
}

QPoint in_row(const MainWindow& w, RowKind kind, double share) {
  for (const Row& row : w.first()->view().layout.rows) {
    if (row.kind != kind) continue;
    const int wide = w.first()->width() - CanvasFrame::kGutter;
    return {CanvasFrame::kGutter + static_cast<int>(share * wide), top_of(w.first()->view(), row) + row.height / 2};
  }
  ADD_FAILURE() << "no such row";
  return {};
}

void open_window(MainWindow& w, int width, int height, std::vector<Document> documents) {
  w.resize(width, height);
  w.show_documents(std::move(documents));
  w.show();
  QApplication::processEvents();
}

}  // namespace

// A cluster with a network shows its links at once, another when it is asked to.
TEST(Links, AreShownWhereTheClusterHasANetwork) {
  MainWindow w;
  w.show_documents(one_document(linked(false)));
  EXPECT_NE(w.first()->view().layout.rows[0].kind, RowKind::link);
  w.show_view("links");
  EXPECT_EQ(w.first()->view().layout.rows[0].text, "fullest NIC");
  MainWindow other;
  open_window(other, 1280, 720, one_document(linked(true)));
  EXPECT_EQ(other.first()->view().layout.rows[2].text, "fullest uplinks of 16 GPUs");
  expect_golden(coarse(other.grab().toImage()), "links");
  EXPECT_TRUE(other.first()->tip_at(in_row(other, RowKind::link, 0.5)).startsWith("the fullest NIC (stage "));
  QTest::mouseClick(other.first(), Qt::LeftButton, {}, in_row(other, RowKind::link, 0.5));
  EXPECT_NE(other.findChild<QTextBrowser*>()->toPlainText().indexOf("over the step: mean "), -1);
  SavedView saved = other.view_as_it_is();
  EXPECT_TRUE(saved.fabric);
  saved.fabric = false;
  other.apply(saved);
  EXPECT_NE(other.first()->view().layout.rows[0].kind, RowKind::link);
}

// Links that are asked for while a change is simulated are shown of the changed step.
TEST(Links, StayWhenAStepIsReplaced) {
  MainWindow w;
  w.open({std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml"});
  w.what_if()->box("strategy.micro_batch")->setCurrentText("2");
  w.show_fabric(true);
  w.finish_work();
  w.finish_work();
  EXPECT_EQ(w.first()->scene()->document.step->spec.strategy.micro_batch, 2);
  EXPECT_EQ(w.first()->view().layout.rows[0].kind, RowKind::link);
}

TEST(Links, OfATraceAreNotKnown) {
  MainWindow w;
  w.show_documents(generated());
  EXPECT_THROW(w.show_view("links"), Error);
  EXPECT_NE(w.first()->view().layout.rows[0].kind, RowKind::link);
}

TEST(FirstStepView, StandsAboveASteadyOneAndGoesAgain) {
  MainWindow w;
  open_window(w, 1280, 720, one_document(linked(false)));
  const Scene* const before = w.first()->scene();
  const Picoseconds end = before->timeline().end;
  w.first()->set_scale(end / 4, end / 2);
  ASSERT_GT(w.pin("compute"), 0u);
  const std::set<std::uint32_t> pinned = w.first()->options().pinned;
  QTest::keyClick(w.first(), Qt::Key_T);
  w.finish_work();
  ASSERT_TRUE(w.shows_first_step());
  EXPECT_EQ(w.first()->scene()->timeline().title, "first step");
  EXPECT_EQ(w.second()->scene()->timeline().title, "steady step");
  EXPECT_EQ(w.first()->view().scale.picoseconds_per_pixel(), w.second()->view().scale.picoseconds_per_pixel());
  EXPECT_NE(w.statusBar()->currentMessage().indexOf("after the step before it"), -1);
  QApplication::processEvents();
  expect_golden(coarse(w.grab().toImage()), "first_step");
  w.show_fabric(true);
  EXPECT_NE(w.first()->view().layout.rows[0].kind, RowKind::link);  // other steps' transfers are on the links too
  w.show_first_step(true);                                          // is shown already
  QTest::keyClick(w.first(), Qt::Key_T);
  EXPECT_FALSE(w.shows_first_step());
  EXPECT_EQ(w.first()->scene(), before);
  EXPECT_FALSE(w.second()->isVisible());
  EXPECT_EQ(w.first()->view().scale.begin, end / 4);
  EXPECT_EQ(w.first()->options().pinned, pinned);
}

// Steps that are asked for and not wanted before they are there leave nothing checked.
TEST(FirstStepView, IsUncheckedWhenItsStepsAreDropped) {
  MainWindow w;
  w.show_documents(one_document(linked(false)));
  QAction* first = nullptr;
  for (QAction* action : w.findChildren<QAction*>()) first = action->shortcut() == QKeySequence("T") ? action : first;
  ASSERT_NE(first, nullptr);
  w.show_first_step(true);
  EXPECT_TRUE(first->isChecked());
  w.show_first_step(false);
  EXPECT_FALSE(first->isChecked());
}

// The steps of a trace that are shown are the first of those that it marks, and the one of median length.
TEST(FirstStepView, OfATraceIsThatOfItsMarks) {
  MainWindow w;
  Document d;
  d.timeline = traces::read({traces::TorchTrace(traces::kLayouts[3], 0).text(4)});
  w.show_documents(one_document(std::move(d)));
  w.show_view("first-step");
  EXPECT_EQ(w.second()->scene()->timeline().title, "step 3 of 4");
  EXPECT_EQ(w.second()->scene()->timeline().end, 1'560'000'000);  // from the step's mark to its last kernel
  MainWindow other;
  other.show_documents(generated());
  EXPECT_THROW(other.show_view("first-step"), Error);
  EXPECT_EQ(other.documents(), 1u);
}

TEST(PhasesView, AreNamedAndColouredAndSummedUp) {
  MainWindow w;
  w.first()->resize(800, 500);
  open_window(w, 1280, 720, generated());
  LayoutOptions o = w.first()->options();
  o.closed = {1};
  w.first()->set_options(o);
  w.show_view("statistics");
  QApplication::processEvents();
  expect_golden(coarse(w.grab().toImage()), "phases");
  const QTableWidget* const table = w.statistics()->table();
  EXPECT_EQ(table->item(0, 0)->text(), "prefill");
  EXPECT_EQ(table->item(1, 0)->text(), "decode");
  EXPECT_EQ(table->item(1, 3)->text(), "16");
  EXPECT_EQ(table->rowCount(), 8);  // two phases, and three ops in each
  EXPECT_EQ(w.first()->tip_at(in_row(w, RowKind::process, 0.1)), "prefill: 40.00 us");
  w.first()->select(w.first()->scene()->timeline().tracks[0].first + 5);
  for (const PaletteCommand& c : w.commands()) {
    if (c.text == "Only this phase") c.run();
  }
  EXPECT_EQ(w.first()->scene()->timeline().events(), 48u);
  EXPECT_EQ(table->rowCount(), 4);
}
