// These tests open a trace of PyTorch's profiler, and look at what the window and its panel show of it.
#include <gtest/gtest.h>

#include <QApplication>
#include <QTableWidget>
#include <QTextBrowser>
#include <fstream>

#include "tests/temporary_folder.h"
#include "tests/viz/traces.h"
#include "viz/window/main_window.h"

using namespace orrery;

namespace {

// A window with a step of PyTorch's profiler: a host, and a device with three streams.
void open_torch_step(MainWindow& w, const test::TemporaryFolder& folder) {
  std::ofstream(folder.path("step.json")) << traces::TorchTrace(traces::kLayouts[3], 0).text(1);
  w.resize(1280, 720);
  w.show();
  w.open({folder.path("step.json")});
}

QString first_row(MainWindow& w, const char* text) {
  const QString details = w.findChild<QTextBrowser*>()->toPlainText();
  return details.left(details.indexOf(text));
}

}  // namespace

// A small window shows the first details alone: a kernel's operator and launch must be among them.
TEST(MainWindow, AKernelsOperatorStandsBeforeItsFields) {
  const test::TemporaryFolder folder;
  MainWindow w;
  open_torch_step(w, folder);
  w.first()->select(traces::event_named(w.first()->scene()->timeline(), "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT"));
  EXPECT_TRUE(first_row(w, "stream").contains("aten::mm"));
  EXPECT_TRUE(first_row(w, "stream").contains("cudaLaunchKernel"));
  EXPECT_FALSE(first_row(w, "stream").contains("pid"));
}

TEST(MainWindow, HitsOnHiddenLanesOfHostsAreCountedAndPassedOver) {
  const test::TemporaryFolder folder;
  MainWindow w;
  open_torch_step(w, folder);
  w.find("aten::mm");
  w.find_next(true);
  EXPECT_EQ(w.first()->view().selected, kNoEvent);  // "aten::mm" ran on the host
  w.find("nccl");
  w.find_next(true);
  ASSERT_NE(w.first()->view().selected, kNoEvent);
  EXPECT_NE(w.first()->scene()->timeline().kind(w.first()->view().selected), Kind::host);
}

// A label as wide as the name of a templated kernel would make the window wider than any screen.
TEST(MainWindow, ALongNameInAFilterKeepsTheWindowsWidth) {
  TimelineBuilder b;
  b.add_process({});
  const std::string name(2000, 'k');
  b.add({0, 10, b.add_thread(0, "compute", 0), b.label(name, Kind::other), 0});
  std::vector<Document> documents(1);
  documents[0].timeline = b.finish(0);
  MainWindow w;
  w.resize(1280, 720);
  w.show();
  w.show_documents(std::move(documents));
  w.add_filter({.by = Filter::By::op, .keeps = true, .name = name});
  QApplication::processEvents();
  EXPECT_LE(w.minimumSizeHint().width(), 1280);
}

TEST(MainWindow, AnAreaHasNoRowOfAHost) {
  const test::TemporaryFolder folder;
  MainWindow w;
  open_torch_step(w, folder);
  w.first()->set_area(0, w.first()->scene()->timeline().end);
  QTableWidget* area = nullptr;
  for (auto* table : w.findChildren<QTableWidget*>()) {
    if (table->columnCount() > 1 && table->horizontalHeaderItem(1)->text() == "compute") area = table;
  }
  ASSERT_NE(area, nullptr);
  ASSERT_EQ(area->rowCount(), 1);
  EXPECT_TRUE(area->item(0, 0)->text().startsWith("GPU 0"));
  EXPECT_EQ(area->item(0, 5)->text(), "");  // the trace says nothing of memory
}
