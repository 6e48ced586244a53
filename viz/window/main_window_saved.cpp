// This file handles notes, pinned lanes, and saved views.
#include <QAction>
#include <QCloseEvent>
#include <QComboBox>
#include <QHeaderView>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QSignalBlocker>
#include <QTabWidget>
#include <QTableWidget>
#include <QToolBar>
#include <algorithm>

#include "models/base/error.h"
#include "sim/print/text.h"
#include "viz/window/main_window.h"

namespace orrery {
namespace {

constexpr int kNoteColumns = 4;

// Makes a cell in the table of notes; only the notes' texts can be edited.
QTableWidgetItem* note_item(const std::string& text, bool editable) {
  auto* item = new QTableWidgetItem(QString::fromStdString(text));
  item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable | (editable ? Qt::ItemIsEditable : Qt::NoItemFlags));
  return item;
}

}  // namespace

void MainWindow::build_notes() {
  connect(notes_table_, &QTableWidget::itemChanged, this, [this](QTableWidgetItem* item) {
    if (item->column() != 0) return;
    notes_[static_cast<std::size_t>(item->row())].text = item->text().toStdString();
    first_->set_notes(notes_);
  });
  connect(notes_table_, &QTableWidget::cellClicked, this, [this](int row, int) {
    const Note& n = notes_[static_cast<std::size_t>(row)];
    const Picoseconds half = std::max((first_->view().scale.end - first_->view().scale.begin) / 2, n.to - n.from);
    first_->set_scale(n.from - half, n.to + half);
  });
  auto* remove = new QAction("Remove note", notes_table_);
  remove->setShortcut(QKeySequence::Delete);
  remove->setShortcutContext(Qt::WidgetShortcut);
  notes_table_->addAction(remove);
  notes_table_->setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(remove, &QAction::triggered, this, [this] { remove_note(notes_table_->currentRow()); });
}

void MainWindow::build_finder(QToolBar* bar) {
  finder_ = new QLineEdit;
  finder_->setPlaceholderText("pin lanes (Ctrl+P)");
  finder_->setToolTip(
      "a regular expression, as \"stage [01].*compute\"; Return pins what it is found in, empty unpins");
  finder_->setMaximumWidth(150);
  bar->addWidget(finder_);
  found_lanes_ = new QLabel;
  bar->addWidget(found_lanes_);
  const auto answer = [this](bool pins) {
    try {
      const std::string pattern = finder_->text().toStdString();
      if (first_->scene() == nullptr) return;
      const std::size_t found = pins ? pin(pattern) : lanes_matching(first_->scene()->timeline(), pattern).size();
      found_lanes_->setText(pattern.empty() ? QString() : QString::number(found) + (pins ? " pinned" : " lanes"));
    } catch (const Error& e) {
      found_lanes_->setText("no pattern");
      if (pins) say(e.what());
    }
  };
  connect(finder_, &QLineEdit::textChanged, this, [answer] { answer(false); });
  connect(finder_, &QLineEdit::returnPressed, this, [answer] { answer(true); });
}

std::size_t MainWindow::pin(const std::string& pattern) {
  std::size_t found = 0;
  for (TimelineWidget* w : {first_, second_}) {
    if (w->scene() == nullptr) continue;
    const auto lanes = pattern.empty() ? std::vector<std::uint32_t>{} : lanes_matching(w->scene()->timeline(), pattern);
    w->pin(lanes);
    found += lanes.size();
  }
  return found;
}

void MainWindow::ask_for_note(Note note) {
  const QString text = QInputDialog::getText(this, "Note", "What is to be seen here");
  if (text.isEmpty()) return;
  note.text = text.toStdString();
  add_note(note);
}

// Adds a note; notes are sorted by time.
void MainWindow::add_note(const Note& note) {
  const auto later = [](const Note& a, const Note& b) { return a.from < b.from; };
  notes_.insert(std::upper_bound(notes_.begin(), notes_.end(), note, later), note);
  show_notes();
}

void MainWindow::remove_note(int row) {
  if (row < 0 || row >= static_cast<int>(notes_.size())) return;
  notes_.erase(notes_.begin() + row);
  show_notes();
}

void MainWindow::show_notes() {
  const QSignalBlocker blocker(notes_table_);
  notes_table_->setRowCount(static_cast<int>(notes_.size()));
  for (int i = 0; i < static_cast<int>(notes_.size()); ++i) {
    const Note& n = notes_[static_cast<std::size_t>(i)];
    const std::string cells[kNoteColumns] = {n.text, time_text(seconds(n.from)),
                                             n.to > n.from ? time_text(seconds(n.to - n.from)) : "",
                                             n.process.empty() ? "all" : n.process};
    for (int c = 0; c < kNoteColumns; ++c) notes_table_->setItem(i, c, note_item(cells[c], c == 0));
  }
  first_->set_notes(notes_);
}

SavedView MainWindow::view_as_it_is() const {
  SavedView v;
  v.inputs = inputs_;
  v.options = inputs_options_;
  v.notes = notes_;
  if (first_->scene() == nullptr) return v;
  if (scenes_.size() > 1 && !compare_action_->isChecked()) v.document = first_->scene()->document.name;
  const View& shown = first_->view();
  const Picoseconds all = first_->total();
  v.begin = shown.scale.begin;
  v.end = shown.scale.begin == 0 && shown.scale.end >= all ? 0 : shown.scale.end;
  v.area_from = shown.area_from;
  v.area_to = shown.area_to;
  v.marked = shown.marked;
  take_layout(v, first_->scene()->timeline(), first_->options());
  v.arrows = arrows_action_->isChecked();
  v.slowest_first = slowest_action_->isChecked();
  v.compare = compare_action_->isChecked();
  v.critical_path = critical_action_->isChecked();
  v.search = search_text_->text().toStdString();
  return v;
}

void MainWindow::show_layout(const SavedView& v) {
  compare(v.compare);
  for (std::size_t i = 0; i < scenes_.size() && !v.compare; ++i) {
    if (scenes_[i]->document.name != v.document) continue;
    documents_->setCurrentIndex(static_cast<int>(i));
    first_->show_scene(scenes_[i]);
    break;
  }
  arrows_action_->setChecked(v.arrows);
  host_action_->setChecked(v.host);
  show_fabric(v.fabric);
  slowest_action_->setChecked(v.slowest_first);
  for (TimelineWidget* w : {first_, second_}) {
    if (w->scene() == nullptr) continue;
    w->set_options(layout_of(v, w->scene()->timeline()));
    w->set_arrows(v.arrows);
    w->set_slowest_first(v.slowest_first);
  }
  grouping_->setCurrentIndex(first_->options().group_by + 1);
  const Picoseconds all = first_->total();
  if (v.end > v.begin) {
    first_->set_scale(std::min(v.begin, all), std::min(v.end, all));
  } else {
    first_->fit();
  }
  if (v.area_to > v.area_from) first_->set_area(std::min(v.area_from, all), std::min(v.area_to, all));
  first_->mark(std::min(v.marked, all));
  search_text_->setText(QString::fromStdString(v.search));
  show_critical_path(v.critical_path && critical_action_->isEnabled());
}

void MainWindow::apply(const SavedView& v) {
  if (first_->scene() == nullptr) return;
  show_layout(v);
  notes_ = kept_notes_ = v.notes;
  show_notes();
  if (!notes_.empty()) panel_->setCurrentWidget(notes_table_);
}

bool MainWindow::may_drop_notes() {
  if (!notes_unsaved()) return true;
  return QMessageBox::question(this, "Notes", "The notes are in no file yet. Drop them?",
                               QMessageBox::Discard | QMessageBox::Cancel) == QMessageBox::Discard;
}

void MainWindow::closeEvent(QCloseEvent* event) { may_drop_notes() ? event->accept() : event->ignore(); }

void MainWindow::save_view(const QString& path) {
  if (first_->scene() == nullptr) throw Error(path.toStdString() + ": nothing is open that could be seen again");
  if (step_changed_)
    throw Error(path.toStdString() +
                ": not written: a view is of what the inputs give, and What if has changed the step; "
                "open the spec with --set, or export Chrome JSON, which holds step and view");
  write_view(path.toStdString(), view_as_it_is());
  kept_notes_ = notes_;
  say("wrote " + path.toStdString());
}

}  // namespace orrery
