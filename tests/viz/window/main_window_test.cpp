#include "viz/window/main_window.h"
#include "viz/window/statistics_panel.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QMessageBox>
#include <QPushButton>
#include <QStatusBar>
#include <QTableWidget>
#include <QTest>
#include <QTextBrowser>
#include <QTimer>
#include <filesystem>
#include <fstream>

#include "models/base/error.h"
#include "tests/temporary_folder.h"
#include "tests/viz/events.h"
#include "tests/viz/traces.h"

using namespace orrery;

namespace {

const std::string kSpec = std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml";

std::vector<Document> made(int count) {
  std::vector<Document> documents(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) documents[static_cast<std::size_t>(i)].timeline = made_pipeline(i + 1);
  return documents;
}

}  // namespace

TEST(MainWindow, SearchGoesFromHitToHit) {
  MainWindow w;
  w.show_documents(made(1));
  w.find("reduce");
  w.find_next(true);
  const EventId hit = w.first()->view().selected;
  ASSERT_NE(hit, kNoEvent);
  EXPECT_EQ(w.first()->scene()->timeline().name(hit), "reduce gradients");
  w.find_next(false);
  EXPECT_EQ(w.first()->view().selected, hit);
  w.find("");
  EXPECT_TRUE(w.first()->view().found.empty());
}

TEST(MainWindow, ComparedTimelinesMoveTogether) {
  MainWindow w;
  w.show_documents(made(2));
  w.show();
  w.compare(true);
  EXPECT_TRUE(w.second()->isVisible());
  EXPECT_EQ(w.first()->view().scale.end, w.second()->view().scale.end);
  QTest::keyClick(w.first(), Qt::Key_W);
  EXPECT_EQ(w.first()->view().scale.begin, w.second()->view().scale.begin);
  EXPECT_NE(w.second()->view().other, nullptr);
  w.compare(false);
  EXPECT_FALSE(w.second()->isVisible());
}

TEST(MainWindow, AKnobRedrawsTheStep) {
  MainWindow w;
  w.open({kSpec});
  const Scene* before = w.first()->scene();
  const Picoseconds end = before->timeline().end;
  QComboBox* box = w.what_if()->box("network");
  ASSERT_NE(box, nullptr);
  box->setCurrentText("0.25");
  EXPECT_EQ(w.first()->scene(), before);  // the window answers while the step is simulated
  w.finish_work();
  ASSERT_NE(w.first()->scene(), before);
  EXPECT_GT(w.first()->scene()->timeline().end, end);
}

TEST(MainWindow, PinsLanesByPattern) {
  MainWindow w;
  w.show_documents(made(1));
  EXPECT_EQ(w.pin("stage [01]: compute"), 2u);
  EXPECT_EQ(w.first()->view().layout.rows[0].text, "stage 0: compute");
  EXPECT_TRUE(w.first()->view().layout.rows[1].pinned);
  EXPECT_THROW(w.pin("stage ["), Error);
  EXPECT_EQ(w.pin(""), 0u);
  EXPECT_TRUE(w.first()->options().pinned.empty());
}

TEST(MainWindow, NotesAreKeptInOrderAndShown) {
  MainWindow w;
  w.show_documents(made(1));
  w.add_note({9'000'000, 9'000'000, "rank 1", "second"});
  w.add_note({2'000'000, 5'000'000, "", "first"});
  ASSERT_EQ(w.notes().size(), 2u);
  EXPECT_EQ(w.notes()[0].text, "first");
  ASSERT_EQ(w.first()->view().notes.size(), 2u);
  EXPECT_EQ(w.first()->view().notes[0].process, -1);
  EXPECT_EQ(w.first()->view().notes[1].process, 1);
  w.remove_note(0);
  EXPECT_EQ(w.first()->view().notes.size(), 1u);
  w.show_documents(made(1));
  EXPECT_TRUE(w.notes().empty());
}

// Notes that are in no file are asked about before they are dropped.
TEST(MainWindow, KnowsWhichNotesAreInNoFile) {
  const test::TemporaryFolder folder;
  MainWindow w;
  w.open({kSpec});
  EXPECT_FALSE(w.notes_unsaved());
  w.add_note({4'000'000'000, 4'000'000'000, "", "here"});
  EXPECT_TRUE(w.notes_unsaved());
  w.save_view(QString::fromStdString(folder.path("v.json")));
  EXPECT_FALSE(w.notes_unsaved());
  w.remove_note(0);
  EXPECT_TRUE(w.notes_unsaved());
  w.export_to(QString::fromStdString(folder.path("step.json.gz")));
  EXPECT_FALSE(w.notes_unsaved());
  MainWindow again;
  again.open({folder.path("v.json")});
  EXPECT_FALSE(again.notes_unsaved());
}

// A view taken with several documents open shows the document that it was taken of.
TEST(MainWindow, AViewNamesItsDocument) {
  MainWindow w;
  std::vector<Document> two = made(2);
  two[0].name = "one";
  two[1].name = "another";
  w.show_documents(std::move(two));
  SavedView v = w.view_as_it_is();
  EXPECT_EQ(v.document, "one");
  for (const char* name : {"another", "one"}) {
    v.document = name;
    w.apply(v);
    EXPECT_EQ(w.first()->scene()->document.name, name);
    EXPECT_EQ(w.view_as_it_is().document, name);
  }
}

TEST(MainWindow, AViewIsSavedAndShownAgain) {
  const test::TemporaryFolder folder;
  SavedView v;
  {
    MainWindow w;
    w.open({kSpec});
    w.first()->set_scale(1'000'000'000, 9'000'000'000);
    w.first()->set_area(2'000'000'000, 3'000'000'000);
    w.pin("stage 0.*: compute");
    w.add_note({4'000'000'000, 4'000'000'000, "", "here"});
    w.show_critical_path(true);
    w.save_view(QString::fromStdString(folder.path("v.json")));
    v = w.view_as_it_is();
    EXPECT_EQ(v.pinned.size(), 1u);
  }
  MainWindow again;
  again.open({folder.path("v.json")});
  EXPECT_EQ(again.view_as_it_is(), v);
  EXPECT_FALSE(again.first()->view().path.empty());
  MainWindow other;  // the same on another step
  other.set_options({.overrides = {"strategy.tensor=2", "strategy.data=null"}});
  other.open({folder.path("v.json"), kSpec});
  EXPECT_EQ(other.notes(), v.notes);
  EXPECT_EQ(other.view_as_it_is().pinned, v.pinned);
  EXPECT_EQ(other.first()->view().scale.begin, v.begin);
}

TEST(MainWindow, OneFileHoldsTheTraceAndHowItWasLookedAt) {
  const test::TemporaryFolder folder;
  for (const bool simulated : {false, true}) {
    const std::string file = folder.path("snapshot.json.gz");
    MainWindow w;
    if (simulated) {
      w.open({kSpec});
    } else {
      w.show_documents(made(1));
    }
    w.first()->set_scale(20'000'000, 90'000'000);
    w.add_note({30'000'000, 40'000'000, "", "look"});
    w.export_to(QString::fromStdString(file));
    MainWindow again;
    again.open({file});
    EXPECT_EQ(again.notes(), w.notes());
    EXPECT_EQ(again.first()->view().scale.begin, 20'000'000);
    EXPECT_EQ(again.first()->view().scale.end, 90'000'000);
  }
}

TEST(MainWindow, GroupingStaysWithWhatIsShownNext) {
  MainWindow w;
  w.show_documents(made(2));
  w.group_by(3);
  LayoutOptions o = w.first()->options();
  o.closed_groups = {1};
  w.first()->set_options(o);
  w.compare(true);
  EXPECT_EQ(w.first()->options().group_by, 2);
  EXPECT_EQ(w.second()->options().group_by, 2);
  w.group_by(1);
  EXPECT_TRUE(w.first()->options().closed_groups.empty());
  w.show_documents(made(1));
  EXPECT_EQ(w.first()->options().group_by, 0);
}

TEST(MainWindow, ComparedTimelinesFoldTogether) {
  MainWindow w;
  w.show_documents(made(2));
  w.compare(true);
  LayoutOptions o = w.first()->options();
  o.closed.insert(1);
  Q_EMIT w.first()->options_changed(o);
  EXPECT_TRUE(w.second()->options().closed.contains(1));
}

TEST(MainWindow, StrategiesOpenTheirTimelines) {
  MainWindow w;
  w.open({kSpec});
  w.what_if()->try_all_now(3);
  ASSERT_EQ(w.what_if()->tried().size(), 3u);
  EXPECT_EQ(w.what_if()->table()->rowCount(), 3);
  const Scene* before = w.first()->scene();
  Q_EMIT w.what_if()->table()->cellClicked(1, 0);
  w.finish_work();
  EXPECT_NE(w.first()->scene(), before);
}

TEST(MainWindow, GivesUpLoadingWhenAnotherOpensOrItCloses) {
  const test::TemporaryFolder folder;
  const std::string slow = folder.path("slow.json");
  {
    std::ofstream out(slow);  // half a million events: enough to be reading still
    out << '[';
    for (int i = 0; i < 500'000; ++i) out << R"({"ph":"X","name":"a","pid":0,"tid":0,"ts":)" << i << R"(,"dur":1},)";
  }
  MainWindow w;
  w.open_later({slow});
  w.open_later({kSpec});
  ASSERT_TRUE(QTest::qWaitFor([&] { return w.first()->scene() != nullptr; }, 20'000));
  EXPECT_TRUE(w.first()->scene()->document.simulated());
  w.open_later({slow});
  w.open_later({folder.path("nowhere.json")});  // leaves what is shown
  QTest::qWait(100);
  EXPECT_TRUE(w.first()->scene()->document.simulated());
  w.open_later({slow});
}

// Presses a button of the dialog when it appears, however late.
static void answer(QMessageBox::StandardButton button) {
  QTimer::singleShot(20, [button] {
    for (QWidget* w : QApplication::topLevelWidgets()) {
      if (auto* box = qobject_cast<QMessageBox*>(w)) return box->button(button)->click();
    }
    answer(button);
  });
}

// The user is asked when the loaded trace would replace the notes: they may have been written meanwhile.
TEST(MainWindow, NotesWrittenWhileItLoadsAreAskedAbout) {
  MainWindow w;
  w.open({kSpec});
  const Scene* before = w.first()->scene();
  w.open_later({kSpec});
  w.add_note({4'000'000'000, 4'000'000'000, "", "here"});
  answer(QMessageBox::Cancel);
  ASSERT_TRUE(
      QTest::qWaitFor([&] { return w.statusBar()->currentMessage().startsWith("kept what was open"); }, 20'000));
  EXPECT_EQ(w.notes().size(), 1u);
  EXPECT_EQ(w.first()->scene(), before);
  w.open_later({kSpec});
  answer(QMessageBox::Discard);
  ASSERT_TRUE(QTest::qWaitFor([&] { return w.notes().empty(); }, 20'000));
  EXPECT_NE(w.first()->scene(), before);
}

// A trace is cut short while it is open, as by a copy that begins anew: a click says so, and nothing ends.
TEST(MainWindow, ATraceThatShrinksWhileItIsOpenIsSaidToHaveShrunk) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path("trace.json");
  std::ofstream(file) << traces::TorchTrace(traces::kLayouts[3], 0).text(200);
  MainWindow w;
  w.open({file, kSpec});
  std::filesystem::resize_file(file, 5'000);
  const Timeline& t = w.first()->scene()->timeline();
  constexpr EventId kEvery = 97;  // each is looked for up to the end of the file
  for (EventId e = 0; e < t.events(); e += kEvery) w.first()->select(e);
  EXPECT_NE(w.findChild<QTextBrowser*>()->toPlainText().indexOf("became shorter"), -1);
  w.compare(true);
  EXPECT_EQ(w.first()->scene()->timeline().events(), t.events());
}

TEST(MainWindow, AClickNamesTheOperatorThatLaunchedAKernel) {
  MainWindow w;
  std::vector<Document> documents(1);
  documents[0].timeline = traces::read({traces::TorchTrace(traces::kLayouts[0], 0).text(1)});
  w.show_documents(std::move(documents));
  w.first()->select(traces::event_named(w.first()->scene()->timeline(), "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT"));
  const QString text = w.findChild<QTextBrowser*>()->toPlainText();
  EXPECT_NE(text.indexOf("aten::mm: gemm 1024x512x256"), -1) << text.toStdString();
  EXPECT_NE(text.indexOf("585.0 us before, by cudaLaunchKernel"), -1) << text.toStdString();
}

TEST(MainWindow, FiltersAreShownAndTakenBack) {
  MainWindow w;
  w.open({kSpec});
  w.first()->set_scale(1'000'000'000, 9'000'000'000);
  const EventId all = w.first()->scene()->timeline().events();
  const EventId e = w.first()->scene()->timeline().tracks[0].first;
  const std::string name = w.first()->scene()->timeline().name(e);
  w.add_filter({.name = name});
  const Timeline& some = w.first()->scene()->timeline();
  ASSERT_GT(some.events(), 0u);
  EXPECT_LT(some.events(), all);
  for (EventId i = 0; i < some.events(); ++i) EXPECT_EQ(some.name(i), name);
  EXPECT_EQ(w.first()->view().scale.begin, 1'000'000'000);
  w.add_filter({.by = Filter::By::rank, .keeps = true, .name = some.processes[0].name});
  for (const Row& row : w.first()->view().layout.rows) EXPECT_EQ(row.process, 0u);
  w.first()->select(0);  // its details are those of the event that passed
  w.undo_filter();
  w.undo_filter();
  EXPECT_EQ(w.first()->scene()->timeline().events(), all);
  EXPECT_TRUE(w.first()->options().hidden.empty());
  w.redo_filter();
  EXPECT_LT(w.first()->scene()->timeline().events(), all);
  w.open({kSpec});
  EXPECT_EQ(w.first()->scene()->timeline().events(), all);
  w.undo_filter();
  EXPECT_EQ(w.first()->scene()->timeline().events(), all);
}

TEST(MainWindow, ComparedPanesHaveLikeScales) {
  MainWindow w;
  std::vector<Document> two(2);
  two[0].timeline = made_pipeline(1);
  two[1].timeline = traces::read({traces::TorchTrace(traces::kLayouts[3], 0).text(2)});
  w.show_documents(std::move(two));
  w.resize(1280, 500);
  w.show();
  w.compare(true);
  const View &a = w.first()->view(), &b = w.second()->view();
  EXPECT_EQ(a.scale.picoseconds_per_pixel(), b.scale.picoseconds_per_pixel());
  EXPECT_EQ(a.memory_top, b.memory_top);
  EXPECT_GT(a.memory_top, 70e9);
  EXPECT_EQ(b.scale.begin - a.scale.begin, 610'000'000);  // where the first kernel of the first step begins
  QTest::keyClick(w.second(), Qt::Key_W);
  EXPECT_EQ(b.scale.begin - a.scale.begin, 610'000'000);
  EXPECT_EQ(a.scale.picoseconds_per_pixel(), b.scale.picoseconds_per_pixel());
  w.compare(false);
  EXPECT_EQ(w.first()->earliest(), 0);
}

TEST(MainWindow, AClickLightsTheCounterpart) {
  MainWindow w;
  w.show_documents(made(2));
  w.compare(true);
  w.second()->select(3);
  ASSERT_EQ(w.first()->view().lit.size(), 1u);
  EXPECT_EQ(w.first()->scene()->timeline().name(w.first()->view().lit[0]), w.second()->scene()->timeline().name(3));
  EXPECT_NE(w.findChild<QTextBrowser*>()->toPlainText().indexOf("+100.0 %"), -1);
}

TEST(MainWindow, CommandsAreThoseOfItsMenusTabsAndLists) {
  MainWindow w;
  w.show_documents(made(2));
  const QList<PaletteCommand> all = w.commands();
  const auto run = [&](const QString& text) {
    for (const PaletteCommand& c : all) {
      if (c.text == text) return c.run();
    }
    ADD_FAILURE() << "no command " << text.toStdString();
  };
  run("Compare");
  EXPECT_TRUE(w.second()->isVisibleTo(&w));
  run("Show Statistics");
  EXPECT_GT(w.statistics()->table()->rowCount(), 0);
  run("Ranks: group by pipeline");
  EXPECT_EQ(w.first()->options().group_by, 2);
  run("Undo filter");
}

TEST(MainWindow, LoadsInAThread) {
  MainWindow w;
  w.open_later({kSpec});
  ASSERT_TRUE(QTest::qWaitFor([&] { return w.first()->scene() != nullptr; }, 20'000));
  EXPECT_EQ(w.documents(), 1u);
  w.show_critical_path(true);
  EXPECT_FALSE(w.first()->view().path.empty());
}
