// The ten questions of a first-time user (docs/guide.md): each is answered within two interactions, in a window of
// 1280x720, as the golden pictures question_*.png show.
#include <gtest/gtest.h>

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QScrollArea>
#include <QScrollBar>
#include <QStatusBar>
#include <QTabBar>
#include <QTabWidget>
#include <QTableWidget>
#include <QTest>
#include <QToolBar>
#include <functional>

#include "tests/viz/events.h"
#include "tests/viz/window/golden.h"
#include "viz/window/main_window.h"
#include "viz/window/statistics_panel.h"

using namespace orrery;

namespace {

const std::string kAskedSpec = std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml";

// The hand of a user, who does things with the window; each counts as one interaction.
class User {
 public:
  explicit User(MainWindow& window) : window_(window) {}

  void press(const QString& button) {
    ++interactions;
    auto* const bar = window_.findChild<QToolBar*>();
    for (QAction* const action : bar->actions()) {
      if (action->text() == button) return QTest::mouseClick(bar->widgetForAction(action), Qt::LeftButton);
    }
    FAIL() << "no button " << button.toStdString();
  }
  void open_tab(const QString& name) {
    ++interactions;
    auto* const tabs = window_.findChild<QTabWidget*>();
    for (int i = 0; i < tabs->count(); ++i) {
      if (tabs->tabText(i) == name)
        return QTest::mouseClick(tabs->tabBar(), Qt::LeftButton, {}, tabs->tabBar()->tabRect(i).center());
    }
    FAIL() << "no tab " << name.toStdString();
  }
  void click(const QPoint& at) {
    ++interactions;
    QTest::mouseClick(window_.first(), Qt::LeftButton, {}, at);
  }
  void drag(const QPoint& from, const QPoint& to) {
    ++interactions;
    QTest::mousePress(window_.first(), Qt::LeftButton, {}, from);
    QTest::mouseMove(window_.first(), (from + to) / 2);
    QTest::mouseMove(window_.first(), to);
    QTest::mouseRelease(window_.first(), Qt::LeftButton, {}, to);
  }
  void click_row(QTableWidget* table, int row) {
    ++interactions;
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualItemRect(table->item(row, 0)).center());
  }
  void choose(const char* knob, const char* value) {
    ++interactions;
    window_.what_if()->box(knob)->setCurrentText(value);
  }

  int interactions = 0;

 private:
  MainWindow& window_;
};

// Returns a point of the timeline at a share of its width, in the first row of a kind whose text is `text`.
QPoint place(const MainWindow& w, RowKind kind, const char* text, double share) {
  const CanvasFrame frame{w.first()->width(), w.first()->height()};
  for (const Row& row : w.first()->view().layout.rows) {
    if (row.kind != kind || row.text != text) continue;
    return {CanvasFrame::kGutter + static_cast<int>(share * frame.plot_width()),
            top_of(w.first()->view(), row) + row.height / 2};
  }
  ADD_FAILURE() << "no row " << text;
  return {};
}

// Returns the share of the width at which the first compute lane has an event that begins after another share.
double work_after(const MainWindow& w, double share) {
  const Timeline& t = w.first()->scene()->timeline();
  const Track& track = t.tracks[compute_track(t, 0)];
  const auto time = static_cast<Picoseconds>(share * static_cast<double>(t.end));
  const auto first = t.begins.begin() + track.first;
  const auto e = std::lower_bound(first, first + track.count, time) - t.begins.begin();
  return static_cast<double>((t.begins[e] + t.ends[e]) / 2) / static_cast<double>(t.end);
}

std::vector<Document> two_pipelines() {
  std::vector<Document> documents(2);
  documents[0].timeline = made_pipeline(1);
  documents[0].name = documents[0].timeline.title = "predicted";
  documents[1].timeline = made_pipeline(2);
  documents[1].name = documents[1].timeline.title = "measured";
  return documents;
}

struct Question {
  const char* name;
  bool of_spec;  // asked of a spec, else of two traces
  std::function<void(MainWindow&, User&)> ask;
};

const Question kQuestions[] = {
    {"1_how_long", true, [](MainWindow&, User&) {}},
    {"2_critical", true, [](MainWindow&, User& user) { user.press("Critical path"); }},
    {"3_slowest", false, [](MainWindow&, User& user) { user.press("Slowest first"); }},
    {"4_why_then", true,
     [](MainWindow& w, User& user) { user.click(place(w, RowKind::track, "compute", work_after(w, 0.5))); }},
    {"5_hidden", false,
     [](MainWindow& w, User& user) {
       user.drag(place(w, RowKind::track, "compute", 0.3), place(w, RowKind::track, "compute", 0.6));
     }},
    {"6_memory", true, [](MainWindow& w, User& user) { user.click(place(w, RowKind::counter, "memory", 0.3)); }},
    {"7_spread", false,
     [](MainWindow& w, User& user) {
       user.open_tab("Statistics");
       user.click_row(w.statistics()->table(), 0);
     }},
    {"8_what_if", true,
     [](MainWindow&, User& user) {
       user.open_tab("What if");
       user.choose("strategy.tensor", "4");
     }},
    {"9_strategies", true,
     [](MainWindow& w, User& user) {
       user.open_tab("What if");
       ++user.interactions;  // "Compare strategies" tries two hundred of them; twelve are enough here
       w.what_if()->try_all_now(12);
     }},
    {"10_difference", false, [](MainWindow&, User& user) { user.press("Compare"); }},
};

// Opens what a question is of in a window of 1280x720, and asks it. Returns the number of interactions.
int ask(const Question& q, MainWindow& w) {
  w.set_threads(1);
  w.resize(1280, 720);
  w.show();
  if (q.of_spec) {
    w.open({kAskedSpec});
  } else {
    w.show_documents(two_pipelines());
  }
  QApplication::processEvents();
  EXPECT_EQ(w.size(), QSize(1280, 720));
  User user(w);
  q.ask(w, user);
  w.finish_work();
  // Whether a frame shows which cell has the keyboard depends on the desktop.
  if (QWidget* const focus = QApplication::focusWidget()) focus->clearFocus();
  QApplication::processEvents();
  return user.interactions;
}

}  // namespace

TEST(Questions, AreAnsweredWithinTwoInteractions) {
  for (const Question& q : kQuestions) {
    MainWindow w;
    EXPECT_LE(ask(q, w), 2) << q.name;
    expect_golden(coarse(w.grab().toImage()), QString("question_") + q.name);
  }
}

// All settings, the strategies and the plot are seen at once.
TEST(Questions, TheWhatIfPanelFitsIntoASmallWindow) {
  MainWindow w;
  w.set_threads(1);
  w.resize(1280, 720);
  w.show();
  w.open({kAskedSpec});
  User user(w);
  user.open_tab("What if");
  w.what_if()->try_all_now(3);
  QApplication::processEvents();
  auto* const scroll = w.findChild<QScrollArea*>();
  ASSERT_NE(scroll, nullptr);
  EXPECT_EQ(scroll->horizontalScrollBar()->maximum(), 0);
  EXPECT_EQ(scroll->verticalScrollBar()->maximum(), 0);
}

// The window at the scale of the device (QT_SCALE_FACTOR; the tests of this program run at 1, 1.5 and 2).
TEST(Scaled, TheWindowIsDrawnAtThePixelsOfTheDevice) {
  for (const QSize size : {QSize(1280, 720), QSize(1920, 1080)}) {
    MainWindow w;
    w.set_threads(1);
    w.resize(size);
    w.show();
    w.show_documents(two_pipelines());
    QApplication::processEvents();
    w.first()->select(w.first()->scene()->timeline().tracks[0].first + 40);
    QApplication::processEvents();
    const QImage image = w.grab().toImage();
    EXPECT_EQ(image.size(), size * w.devicePixelRatioF());
    expect_golden(coarse(image), QString("scaled_%1_%2").arg(size.height()).arg(w.devicePixelRatioF()));
  }
}

// The answers in a small and in a large window, at every scale and on every platform.
TEST(Scaled, TheTenQuestionsLookTheSameOnEveryPlatform) {
  for (const Question& q : kQuestions) {
    MainWindow w;
    w.set_options({.overrides = {"model.layers=4"}});  // which is quick to simulate
    ask(q, w);
    for (const QSize size : {QSize(1280, 720), QSize(1920, 1080)}) {
      w.resize(size);
      QApplication::processEvents();
      const QImage image = w.grab().toImage();
      ASSERT_EQ(image.size(), size * w.devicePixelRatioF());
      expect_hash(image, QString("%1_%2_%3").arg(q.name).arg(size.height()).arg(w.devicePixelRatioF()));
    }
  }
}
