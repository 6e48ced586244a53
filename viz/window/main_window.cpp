#include "viz/window/main_window.h"

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QFileDialog>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QPointer>
#include <QProgressDialog>
#include <QScrollArea>
#include <QSplitter>
#include <QStatusBar>
#include <QTabWidget>
#include <QTableWidget>
#include <QTextBrowser>
#include <QToolBar>
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/error.h"
#include "sim/text.h"
#include "viz/scene_cache.h"
#include "viz/window/exports.h"
#include "viz/window/palette.h"

namespace orrery {
namespace {

constexpr unsigned kThreads = 2;  // that prepare a scene

QTableWidget* table_with(const QStringList& columns) {
  auto* table = new QTableWidget(0, static_cast<int>(columns.size()));
  table->setHorizontalHeaderLabels(columns);
  table->verticalHeader()->setVisible(false);
  table->verticalHeader()->setDefaultSectionSize(20);
  table->setFont(canvas_font());
  table->setAlternatingRowColors(true);
  return table;
}

std::vector<std::shared_ptr<const Scene>> scenes_of(std::vector<Document> documents) {
  std::vector<std::shared_ptr<const Scene>> scenes;
  for (Document& d : documents) scenes.push_back(std::make_shared<const Scene>(std::move(d), kThreads));
  return scenes;
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
      what_if_(new WhatIfPanel) {
  setWindowTitle("Orrery");
  for (QTableWidget* table : {compare_, notes_table_})
    table->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  setFont(canvas_font());
  timelines_->addWidget(first_);
  timelines_->addWidget(second_);
  second_->hide();
  panel_->addTab(details_, "Details");
  panel_->addTab(area_, "Area");
  panel_->addTab(compare_, "Differences");
  auto* scroll = new QScrollArea;
  scroll->setWidgetResizable(true);
  scroll->setWidget(what_if_);
  panel_->addTab(scroll, "What if");
  panel_->addTab(notes_table_, "Notes");
  auto* all = new QSplitter(Qt::Horizontal);
  all->addWidget(timelines_);
  all->addWidget(panel_);
  all->setStretchFactor(0, 1);
  all->setSizes({1000, 500});
  setCentralWidget(all);
  details_->setFont(canvas_font());
  details_->setHtml(
      "<p>Open a spec, a trace or a report. Click a bar for its details, drag for an area's sums.</p>"
      "<p>W S zoom, A D pan, Ctrl+wheel zooms at the cursor, Shift+drag pans, F focuses, 0 fits, "
      "Esc clears, N notes. Click a name at the left to fold a rank or pin a lane.</p>");
  build_tool_bar();
  build_menu();
  build_notes();
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

// While two are compared they show the same time, the same ranks and lanes, and are scrolled alike.
void MainWindow::follow(TimelineWidget* leader, TimelineWidget* follower) {
  const auto comparing = [this] { return compare_action_->isChecked(); };
  connect(leader, &TimelineWidget::scale_changed, this, [=](Picoseconds begin, Picoseconds end) {
    if (comparing()) follower->set_scale(begin, end);
  });
  connect(leader, &TimelineWidget::scrolled, this, [=](int y) {
    if (comparing()) follower->set_scroll(y);
  });
  connect(leader, &TimelineWidget::options_changed, this, [=](const LayoutOptions& options) {
    if (!comparing() || follower->scene() == nullptr) return;
    SavedView by_name;
    take_layout(by_name, leader->scene()->timeline(), options);
    follower->set_options(layout_of(by_name, follower->scene()->timeline()));
  });
}

MainWindow::~MainWindow() { stop_loading(); }

// What is half read is given up.
void MainWindow::stop_loading() {
  if (cancelled_) *cancelled_ = true;
  if (loader_.joinable()) loader_.join();
}

void MainWindow::build_tool_bar() {
  auto* bar = addToolBar("Tools");
  bar->setMovable(false);
  documents_ = new QComboBox;
  documents_->setMinimumWidth(180);
  bar->addWidget(documents_);
  connect(documents_, &QComboBox::activated, this, [this](int i) {
    if (const auto s = scene(static_cast<std::size_t>(i))) first_->show_scene(s);
    first_->set_notes(notes_);
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
  });
  slowest_action_ = bar->addAction("Slowest first", [this](bool on) {
    for (TimelineWidget* w : {first_, second_}) w->set_slowest_first(on);
  });
  slowest_action_->setToolTip("ranks that compute longest first: the others wait for them");
  critical_action_ = bar->addAction("Critical path", [this](bool on) { show_critical_path(on); });
  compare_action_ = bar->addAction("Compare", [this](bool on) { compare(on); });
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
  add(file, "&Open...", QKeySequence::Open, [this] {
    std::vector<std::string> paths;
    for (const QString& path : QFileDialog::getOpenFileNames(this, "Open specs, traces or reports"))
      paths.push_back(path.toStdString());
    if (!paths.empty()) open_later(paths);
  });
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
  add(go, "Next", QKeySequence("Ctrl+G"), [this] { find_next(true); });
  add(go, "Previous", QKeySequence("Ctrl+Shift+G"), [this] { find_next(false); });
  add(go, "Pin lanes", QKeySequence("Ctrl+P"), [this] { finder_->setFocus(); });
}

void MainWindow::say(const std::string& text) { statusBar()->showMessage(QString::fromStdString(text)); }

void MainWindow::open(const std::vector<std::string>& paths) {
  const Opening opening = opening_of(paths, options_);
  show_scenes(open_scenes(opening.inputs, opening.options, {}, kThreads));
  opened(opening);
  for (const auto& s : scenes_) put_in_cache(*s);
}

// The first input, where it is a spec, can be changed. A saved view is shown again, the one beside the inputs or that
// which the first holds.
void MainWindow::opened(const Opening& opening) {
  inputs_ = opening.inputs;
  inputs_options_ = opening.options;
  if (scenes_.empty()) return;
  what_if_->show_spec(scenes_[0]->document.simulated() ? inputs_[0] : std::string(), inputs_options_);
  const std::string& held = scenes_[0]->timeline().saved_view;
  try {
    if (opening.view) {
      apply(*opening.view);
    } else if (!held.empty()) {
      apply(parse_view(held, inputs_[0] + ": orreryView"));
    }
  } catch (const Error& e) {
    say(e.what());
  }
  if (!pin_opened_.empty()) pin(pin_opened_);
}

// In place of the first scene: the user looks on at the same ranks and lanes.
void MainWindow::show_step(std::shared_ptr<const Step> step) {
  compare(false);
  const auto now = std::make_shared<const Scene>(document_of(timeline_of(std::move(step))), kThreads);
  if (scenes_.empty()) scenes_.emplace_back();
  scenes_[0] = now;
  critical_ = {};
  LayoutOptions options = first_->options();
  options.pinned.clear();
  first_->show_scene(now);
  first_->set_options(options);
  first_->set_notes(notes_);
  if (critical_action_->isChecked()) show_critical_path(true);
}

void MainWindow::open_later(const std::vector<std::string>& paths) {
  Opening opening;
  try {
    opening = opening_of(paths, options_);
  } catch (const Error& e) {
    return say(e.what());
  }
  auto* dialog = new QProgressDialog("Loading", "Cancel", 0, 1000, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setMinimumDuration(300);
  stop_loading();
  cancelled_ = std::make_shared<std::atomic<bool>>(false);
  const auto cancelled = cancelled_;
  connect(dialog, &QProgressDialog::canceled, this, [cancelled] { *cancelled = true; });
  // The thread touches no widget: everything goes through the event loop.
  loader_ = std::thread([this, dialog, cancelled, opening] {
    const auto later = [this](auto function) { QMetaObject::invokeMethod(this, function, Qt::QueuedConnection); };
    auto scenes = std::make_shared<std::vector<std::shared_ptr<const Scene>>>();
    std::string error;
    try {
      const auto progress = [&](double share) {
        later([dialog = QPointer<QProgressDialog>(dialog), share] {
          if (dialog) dialog->setValue(static_cast<int>(share * 999));
        });
        return !*cancelled;
      };
      *scenes = open_scenes(opening.inputs, opening.options, progress, kThreads);
    } catch (const Cancelled&) {
      error = "loading was cancelled";
    } catch (const std::exception& e) {
      error = e.what();
    }
    later([this, dialog = QPointer<QProgressDialog>(dialog), scenes, error, opening] {
      if (dialog) dialog->close();
      if (!error.empty()) return say(error);
      show_scenes(*scenes);
      try {
        opened(opening);
      } catch (const Error& e) {
        say(e.what());
      }
    });
    for (const auto& s : *scenes) put_in_cache(*s);
  });
}

void MainWindow::show_documents(std::vector<Document> documents) { show_scenes(scenes_of(std::move(documents))); }

void MainWindow::show_scenes(std::vector<std::shared_ptr<const Scene>> scenes) {
  if (scenes.empty()) return;
  compare(false);
  scenes_ = std::move(scenes);
  critical_ = {};
  notes_.clear();
  show_notes();
  documents_->clear();
  std::vector<std::string> remarks;
  for (const auto& s : scenes_) {
    documents_->addItem(QString::fromStdString(s->document.name + " (" + s->timeline().source + ")"));
    remarks.insert(remarks.end(), s->timeline().remarks.begin(), s->timeline().remarks.end());
  }
  first_->show_scene(scenes_[0]);
  first_->set_slowest_first(slowest_action_->isChecked());
  second_->show_scene(nullptr);
  compare_action_->setEnabled(scenes_.size() > 1);
  critical_action_->setEnabled(scenes_[0]->document.simulated());
  if (!remarks.empty()) {
    QString html = "<h3>Remarks</h3><ul>";
    for (const std::string& r : remarks) html += "<li>" + QString::fromStdString(r).toHtmlEscaped() + "</li>";
    details_->setHtml(html + "</ul>");
    say(fmt::format("{} remarks on what was opened: see Details", remarks.size()));
  } else {
    say(fmt::format("{} events on {} lanes", grouped(scenes_[0]->timeline().events()),
                    scenes_[0]->timeline().tracks.size()));
  }
}

void MainWindow::show_tab(QWidget* tab) {
  while (tab != nullptr && panel_->indexOf(tab) < 0) tab = tab->parentWidget();
  if (tab != nullptr) panel_->setCurrentWidget(tab);
}

void MainWindow::group_by(int index) {
  for (TimelineWidget* w : {first_, second_}) {
    LayoutOptions o = w->options();
    o.group_by = index - 1;
    w->set_options(o);
  }
}

void MainWindow::find(const QString& text) {
  if (first_->scene() == nullptr) return;
  search_ = search(first_->scene()->timeline(), text.toStdString());
  const bool any = !search_.hits.empty();
  first_->set_found(any ? search_.labels : std::vector<bool>{});
  search_count_->setText(text.isEmpty() ? QString() : QString::number(search_.hits.size()) + " found");
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
  compare_action_->setChecked(on);
  second_->setVisible(on);
  if (!on) {
    if (first_->scene() != nullptr) first_->compare_with(nullptr, nullptr);
    return;
  }
  const Picoseconds total = std::max(scenes_[0]->timeline().end, scenes_[1]->timeline().end);
  matching_ = match(scenes_[0]->timeline(), scenes_[1]->timeline());
  back_ = {matching_.back, matching_.there, matching_.matched};
  first_->show_scene(scenes_[0], total);
  first_->set_notes(notes_);
  second_->show_scene(scenes_[1], total);
  second_->compare_with(scenes_[0], &back_);
  show_differences();
}

void MainWindow::export_to(const QString& path) {
  if (first_->scene() == nullptr) throw Error(path.toStdString() + ": nothing is open to be exported");
  SavedView view = view_as_it_is();
  view.inputs.clear();  // it lies in its trace
  view.options = {};
  export_scene(path, *first_->scene(), first_->view(), first_->size(), to_json(view));
  say("wrote " + path.toStdString());
}

}  // namespace orrery
