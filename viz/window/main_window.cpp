#include "viz/window/main_window.h"

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QFileDialog>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QScrollArea>
#include <QSplitter>
#include <QStatusBar>
#include <QTabWidget>
#include <QTableWidget>
#include <QTextBrowser>
#include <QToolBar>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "sim/print/text.h"
#include "viz/window/exports.h"
#include "viz/window/overview_strip.h"
#include "viz/window/palette.h"
#include "viz/window/statistics_panel.h"

namespace orrery {
namespace {

QTableWidget* table_with(const QStringList& columns) {
  auto* table = new QTableWidget(0, static_cast<int>(columns.size()));
  table->setHorizontalHeaderLabels(columns);
  table->verticalHeader()->setVisible(false);
  table->verticalHeader()->setDefaultSectionSize(20);
  table->setFont(canvas_font());
  table->setAlternatingRowColors(true);
  table->setWordWrap(false);  // a cell with blanks would show its first words alone
  return table;
}

// Returns the bytes at the upper end of a scale that holds all memory curves of a scene.
double memory_top(const Scene& scene) {
  double top = 0;
  for (std::size_t p = 0; p < scene.timeline().processes.size(); ++p) {
    const Process& process = scene.timeline().processes[p];
    for (std::size_t c = 0; c < process.counters.size(); ++c) {
      if (process.counters[c].name != "memory") continue;
      const double peak = scene.peaks[p][c].peak.bytes;
      const auto capacity = static_cast<double>(process.capacity);
      top = std::max({top, peak, static_cast<double>(process.reserved), capacity <= 3 * peak ? capacity : 0.0});
    }
  }
  return top * kRoomAbove;
}

}  // namespace

MainWindow::MainWindow(QWidget* parent)
    : QMainWindow(parent),
      first_(new TimelineWidget),
      second_(new TimelineWidget),
      timelines_(new QSplitter(Qt::Vertical)),
      panel_(new QTabWidget),
      details_(new QTextBrowser),
      area_(table_with({"rank", "compute", "exposed", "hidden", "bubble", "peak"})),
      compare_(table_with({"op", "first", "second", "more", "%"})),
      notes_table_(table_with({"note", "at", "lasts", "rank"})),
      what_if_(new WhatIfPanel),
      overview_(new OverviewStrip),
      statistics_(new StatisticsPanel) {
  setWindowTitle("Orrery");
  compare_->horizontalHeaderItem(0)->setToolTip("means over the ranks and steps of each");
  compare_->setTextElideMode(Qt::ElideMiddle);
  for (QTableWidget* table : {compare_, notes_table_})
    table->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  setFont(canvas_font());
  timelines_->addWidget(first_);
  timelines_->addWidget(second_);
  second_->hide();
  panel_->addTab(details_, "Details");
  panel_->addTab(area_, "Area");
  panel_->addTab(statistics_, "Statistics");
  panel_->addTab(compare_, "Differences");
  auto* scroll = new QScrollArea;
  scroll->setWidgetResizable(true);
  scroll->setWidget(what_if_);
  panel_->addTab(scroll, "What if");
  panel_->addTab(notes_table_, "Notes");
  for (const auto& [tab, tip] : {std::pair(0, "a summary, or what was clicked"),
                                 {1, "sums by rank over the time that was dragged over"},
                                 {2, "how often and how long each op runs; a click shows one op on all ranks"},
                                 {3, "where the second of two compared inputs takes longer than the first"},
                                 {4, "the same spec with other degrees, precision or links, and other strategies"},
                                 {5, "notes at a time; N writes one"}})
    panel_->setTabToolTip(tab, tip);
  auto* all = new QSplitter(Qt::Horizontal);
  auto* left = new QWidget;
  auto* column = new QVBoxLayout(left);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(overview_);
  column->addWidget(timelines_, 1);
  all->addWidget(left);
  all->addWidget(panel_);
  all->setStretchFactor(0, 1);
  all->setSizes({1000, 500});
  setCentralWidget(all);
  details_->setFont(canvas_font());
  build_tool_bar();
  build_menu();
  build_cards();
  build_notes();
  build_tools();
  build_filters();
  build_view_menu();
  connect_timelines();
  resize(1500, 850);
}

void MainWindow::connect_timelines() {
  for (TimelineWidget* w : {first_, second_}) {
    connect(w, &TimelineWidget::selected, this, [this, w](EventId e) {
      if (e != kNoEvent && w->scene() != nullptr) show_details(*w->scene(), e);
    });
    connect(w, &TimelineWidget::time_clicked, this, [this, w](Picoseconds time, int process) {
      if (w->view().selected == kNoEvent && w->scene() != nullptr) show_memory(*w->scene(), time, process);
    });
  }
  connect(first_, &TimelineWidget::area_changed, this, &MainWindow::show_area);
  connect(first_, &TimelineWidget::note_wanted, this, &MainWindow::ask_for_note);
  connect(what_if_, &WhatIfPanel::simulated, this, &MainWindow::show_step);
  follow(first_, second_);
  follow(second_, first_);
}

// Connects two compared timelines, so that they show the same time, ranks and lanes and scroll together.
void MainWindow::follow(TimelineWidget* leader, TimelineWidget* follower) {
  const auto comparing = [this] { return compare_action_->isChecked(); };
  connect(leader, &TimelineWidget::scale_changed, this, [=, this](Picoseconds begin, Picoseconds end) {
    const Picoseconds by = leader == first_ ? comparison_.offset : -comparison_.offset;
    // A follower that stops at the ends of its axis does not move its leader back.
    if (!comparing() || following_) return;
    following_ = true;
    follower->set_scale(begin + by, end + by);
    following_ = false;
  });
  connect(leader, &TimelineWidget::selected, this, [=, this](EventId e) {
    if (!comparing() || e == kNoEvent) return;
    const EventId there = (leader == first_ ? comparison_.matching.there : comparison_.matching.back)[e];
    follower->light(there == kNoEvent ? std::vector<EventId>{} : std::vector<EventId>{there});
  });
  connect(leader, &TimelineWidget::scrolled, this, [=](int y) {
    if (!comparing()) return;
    // The follower (the other timeline) may have fewer rows, and then stops scrolling before y. Its signals are
    // blocked, because they would scroll this timeline (the leader) back.
    const QSignalBlocker shorter(follower);
    follower->set_scroll(y);
  });
  connect(leader, &TimelineWidget::options_changed, this, [=](const LayoutOptions& options) {
    if (!comparing() || follower->scene() == nullptr) return;
    SavedView by_name;
    take_layout(by_name, leader->scene()->timeline(), options);
    LayoutOptions there = layout_of(by_name, follower->scene()->timeline());
    there.slowest_first = follower->options().slowest_first;
    follower->set_options(there);
  });
}

void MainWindow::build_tool_bar() {
  auto* bar = addToolBar("Tools");
  bar->setMovable(false);
  bar->toggleViewAction()->setEnabled(false);  // hidden, its searches and switches could not be found again
  documents_ = new QComboBox;
  documents_->setMinimumWidth(180);
  documents_->setMaximumWidth(300);  // a long name would push what follows out of a small window
  bar->addWidget(documents_);
  connect(documents_, &QComboBox::activated, this, [this](int i) {
    compare(false);
    forget_filters();
    if (const auto s = scene(static_cast<std::size_t>(i))) first_->show_scene(s);
    first_->set_notes(notes_);
    group_by(grouping_->currentIndex());
  });
  grouping_ = new QComboBox;
  grouping_->addItem("no grouping");
  for (const std::string_view name : kCoordinates)
    grouping_->addItem("group by " + QString::fromUtf8(name.data(), static_cast<int>(name.size())));
  bar->addWidget(grouping_);
  connect(grouping_, &QComboBox::activated, this, &MainWindow::group_by);
  arrows_action_ = bar->addAction("Arrows", [this](bool on) {
    first_->set_arrows(on);
    second_->set_arrows(on);
  });
  host_action_ = bar->addAction("Host lanes", [this](bool on) {
    for (TimelineWidget* w : {first_, second_}) {
      LayoutOptions o = w->options();
      o.host = on;
      w->set_options(o);
    }
    find(search_text_->text());
  });
  slowest_action_ = bar->addAction("Slowest first", [this](bool on) {
    for (TimelineWidget* w : {first_, second_}) w->set_slowest_first(on);
  });
  slowest_action_->setToolTip("ranks that compute longest first: the others wait for them");
  critical_action_ = bar->addAction("Critical path", [this](bool on) { show_critical_path(on); });
  compare_action_ = bar->addAction("Compare", [this](bool on) { compare(on); });
  arrows_action_->setToolTip("arrows from the send of a message to its receive");
  host_action_->setToolTip("lanes of hosts too: operators, launches, annotations");
  critical_action_->setToolTip("the ops that would have to be shorter for the step to be shorter; of a simulated step");
  compare_action_->setToolTip("the second of two inputs against the first, op by op");
  documents_->setToolTip("what is open");
  grouping_->setToolTip("ranks in groups by their place in one form of parallelism");
  for (QAction* a : {arrows_action_, host_action_, slowest_action_, critical_action_, compare_action_})
    a->setCheckable(true);
  arrows_action_->setChecked(true);
  search_text_ = new QLineEdit;
  search_text_->setPlaceholderText("search (Ctrl+F)");
  search_text_->setMaximumWidth(220);
  bar->addWidget(search_text_);
  connect(search_text_, &QLineEdit::textChanged, this, &MainWindow::find);
  connect(search_text_, &QLineEdit::returnPressed, this, [this] { find_next(true); });
  search_count_ = new QLabel;
  bar->addWidget(search_count_);
  build_finder(bar);
}

void MainWindow::build_menu() {
  QMenu* file = menuBar()->addMenu("&File");
  const auto add = [this](QMenu* menu, const QString& text, const QKeySequence& keys, auto function) {
    QAction* action = menu->addAction(text, this, function);
    action->setShortcut(keys);
    addAction(action);
  };
  add(file, "&Open...", QKeySequence::Open, [this] { ask_for_files(); });
  add(file, "&Export...", QKeySequence("Ctrl+E"), [this] {
    const QString path = QFileDialog::getSaveFileName(this, "Export", {}, "*.png *.svg *.csv *.json *.json.gz");
    try {
      if (!path.isEmpty()) export_to(path);
    } catch (const Error& e) {
      say(e.what());
    }
  });
  add(file, "&Save view...", QKeySequence::Save, [this] {
    const QString path = QFileDialog::getSaveFileName(this, "Save view", {}, "*.json");
    try {
      if (!path.isEmpty()) save_view(path);
    } catch (const Error& e) {
      say(e.what());
    }
  });
  add(file, "&Quit", QKeySequence::Quit, [this] { close(); });
  QMenu* go = menuBar()->addMenu("&Go");
  add(go, "Find", QKeySequence::Find, [this] { search_text_->setFocus(); });
  add(go, "Find next", QKeySequence("Ctrl+G"), [this] { find_next(true); });
  add(go, "Find previous", QKeySequence("Ctrl+Shift+G"), [this] { find_next(false); });
  add(go, "Pin lanes", QKeySequence("Ctrl+P"), [this] { finder_->setFocus(); });
}

void MainWindow::say(const std::string& text) { statusBar()->showMessage(QString::fromStdString(text)); }

void MainWindow::show_tab(QWidget* tab) {
  while (tab != nullptr && panel_->indexOf(tab) < 0) tab = tab->parentWidget();
  if (tab != nullptr) panel_->setCurrentWidget(tab);
}

void MainWindow::group_by(int index) {
  grouping_->setCurrentIndex(index);
  for (TimelineWidget* w : {first_, second_}) {
    LayoutOptions o = w->options();
    o.group_by = index - 1;
    o.closed_groups.clear();  // groups that were closed in the previous grouping do not exist in this one
    w->set_options(o);
  }
}

void MainWindow::find(const QString& text) {
  if (first_->scene() == nullptr) return;
  const Timeline& t = first_->scene()->timeline();
  search_ = search(t, text.toStdString());
  const bool any = !search_.hits.empty();
  first_->set_found(any ? search_.labels : std::vector<bool>{});
  // Hits on lanes of hosts that are not shown would be gone to without being seen.
  const std::vector<int>& rows = first_->view().layout.row_of_track;
  const std::size_t hidden =
      std::erase_if(search_.hits, [&](EventId e) { return t.kind(e) == Kind::host && rows[track_of(t, e)] < 0; });
  QString count = QString::number(search_.hits.size()) + " found";
  if (hidden > 0) count += QString(", %1 on host lanes").arg(hidden);
  search_count_->setText(text.isEmpty() ? QString() : count);
}

void MainWindow::find_next(bool forward) {
  if (first_->scene() == nullptr) return;
  const EventId e = next_hit(search_, first_->scene()->timeline(), first_->view().selected, forward);
  if (e == kNoEvent) return;
  first_->select(e);
  const auto at = std::find(search_.hits.begin(), search_.hits.end(), e) - search_.hits.begin();
  search_count_->setText(QString("%1 of %2").arg(at + 1).arg(search_.hits.size()));
}

void MainWindow::compare(bool on) {
  on = on && scenes_.size() > 1;
  if (on) forget_filters();
  compare_action_->setChecked(on);
  second_->setVisible(on);
  if (!on) {
    if (first_->scene() != nullptr && std::exchange(compared_, false)) {
      const TimeScale seen = first_->view().scale;
      first_->show_scene(scenes_[0]);
      first_->set_scale(seen.begin, seen.end);
      first_->set_notes(notes_);
      group_by(grouping_->currentIndex());
    }
    return;
  }
  const Timeline &a = scenes_[0]->timeline(), &b = scenes_[1]->timeline();
  comparison_ = orrery::compare(a, b);
  back_ = {comparison_.matching.back, comparison_.matching.there, comparison_.matching.matched};
  const Picoseconds offset = comparison_.offset;  // steps begin at the same place in both panes
  const double memory = std::max(memory_top(*scenes_[0]), memory_top(*scenes_[1]));
  first_->show_scene(scenes_[0]);
  first_->set_notes(notes_);
  second_->show_scene(scenes_[1]);
  second_->compare_with(scenes_[0], &back_);
  const Picoseconds earliest = std::min<Picoseconds>(0, -offset), latest = std::max(a.end, b.end - offset);
  second_->show_alike(earliest + offset, latest + offset, memory);
  first_->show_alike(earliest, latest, memory);
  compared_ = true;
  group_by(grouping_->currentIndex());
  show_differences();
}

void MainWindow::export_to(const QString& path) {
  if (first_->scene() == nullptr) throw Error(path.toStdString() + ": nothing is open to be exported");
  SavedView view = view_as_it_is();
  view.inputs.clear();  // the view will be stored inside the exported trace, so it need not name its inputs
  view.options = {};
  export_scene(path, *first_->scene(), first_->view(), first_->size(), to_json(view));
  if (path.endsWith(".json") || path.endsWith(".json.gz")) kept_notes_ = notes_;
  say("wrote " + path.toStdString());
}

}  // namespace orrery
