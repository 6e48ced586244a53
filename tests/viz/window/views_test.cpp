#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/viz/events.h"
#include "viz/window/main_window.h"

using namespace orrery;

namespace {

std::vector<Document> pipelines(int count) {
  std::vector<Document> documents(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) documents[static_cast<std::size_t>(i)].timeline = made_pipeline(i + 1);
  return documents;
}

}  // namespace

TEST(Views, EveryOneCanBeShown) {
  for (const std::string& name : view_names()) {
    if (name == "what-if") continue;  // takes seconds; MainWindow.StrategiesOpenTheirTimelines
    if (name == "links" || name == "first-step")
      continue;  // of specs alone; tests/viz/window/main_window_view_test.cpp
    MainWindow w;
    w.show_documents(pipelines(2));
    EXPECT_NO_THROW(w.show_view(name)) << name;
  }
}

TEST(Views, SaysWhichThereAre) {
  MainWindow w;
  w.show_documents(pipelines(1));
  EXPECT_THROW(w.show_view("compare"), Error);  // needs two
  try {
    w.show_view("nothing");
    FAIL();
  } catch (const Error& e) {
    for (const std::string& name : view_names()) EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << name;
  }
}

TEST(Views, ShowWhatTheyAreCalled) {
  MainWindow w;
  w.show_documents(pipelines(2));
  w.show_view("area");
  EXPECT_GT(w.first()->view().area_to, w.first()->view().area_from);
  w.show_view("details");
  EXPECT_NE(w.first()->view().selected, kNoEvent);
  w.show_view("pipeline");
  for (const Row& row : w.first()->view().layout.rows) EXPECT_EQ(row.kind, RowKind::process);
  w.show_view("compare");
  EXPECT_NE(w.second()->view().other, nullptr);
}
