// This file adds the overview, the statistics, the filters and the command palette to the window.
#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QStatusBar>
#include <QTabWidget>
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/print/text.h"
#include "viz/window/command_palette.h"
#include "viz/window/main_window.h"
#include "viz/window/overview_strip.h"
#include "viz/window/statistics_panel.h"

namespace orrery {
namespace {

constexpr int kWidestFilter = 500;  // greatest width in pixels of the text that says what is filtered

}  // namespace

void MainWindow::build_tools() {
  connect(first_, &TimelineWidget::scene_changed, this, [this] {
    overview_->show_axis(first_->scene(), first_->earliest(), first_->total());
    show_statistics();
  });
  connect(first_, &TimelineWidget::scale_changed, overview_, &OverviewStrip::show_view);
  connect(first_, &TimelineWidget::bar_changed, overview_, &OverviewStrip::set_margin);
  connect(overview_, &OverviewStrip::moved, first_, &TimelineWidget::set_scale);
  connect(first_, &TimelineWidget::area_changed, this, [this] { show_statistics(); });
  connect(panel_, &QTabWidget::currentChanged, this, [this] { show_statistics(); });
  auto* palette = new QAction("Commands...", this);
  palette->setShortcuts({QKeySequence("Ctrl+K"), QKeySequence("Ctrl+Shift+P")});
  connect(palette, &QAction::triggered, this, &MainWindow::show_palette);
  addAction(palette);
  menuBar()->actions().last()->menu()->addAction(palette);
}

// Fills the table of ops, for the selected range of time or else for all of it, if it is in view: it takes a pass over
// all events.
void MainWindow::show_statistics() {
  if (panel_->currentWidget() != statistics_) return statistics_->show_range(nullptr, 0, 0);
  const View& v = first_->view();
  const bool area = v.area_to > v.area_from;
  statistics_->show_range(first_->scene(), area ? v.area_from : first_->earliest(), area ? v.area_to : first_->total());
}

void MainWindow::build_filters() {
  auto* menu = new QMenu("F&ilter", this);
  menuBar()->insertMenu(menuBar()->actions().last(), menu);
  const auto add = [&](const QString& text, const char* keys, auto function) {
    QAction* const action = menu->addAction(text, this, function);
    if (*keys != '\0') action->setShortcut(QKeySequence(keys));
    addAction(action);
  };
  const auto by_op = [this](bool keeps) {
    if (first_->scene() == nullptr || first_->view().selected == kNoEvent) return say("click an event first");
    add_filter({.keeps = keeps, .name = first_->scene()->timeline().name(first_->view().selected)});
  };
  const auto by_phase = [this](bool keeps) {
    const Scene* const s = first_->scene();
    const EventId e = s == nullptr ? kNoEvent : first_->view().selected;
    const std::int8_t phase = e == kNoEvent ? kNoPhase : s->timeline().labels[s->timeline().label[e]].phase;
    if (phase == kNoPhase) return say("click an event of a phase first: prefill, decode, or one of two models");
    const std::string& name = s->timeline().phases[static_cast<std::size_t>(phase)];
    add_filter({.by = Filter::By::phase, .keeps = keeps, .name = name});
  };
  const auto by_rank = [this](bool keeps) {
    if (first_->scene() == nullptr || first_->clicked_process() < 0) return say("click into the lanes of a rank first");
    const auto process = static_cast<std::size_t>(first_->clicked_process());
    add_filter({.by = Filter::By::rank, .keeps = keeps, .name = first_->scene()->timeline().processes[process].name});
  };
  const auto by_time = [this](bool keeps) {
    const View& v = first_->view();
    if (v.area_to <= v.area_from) return say("drag over a range of time first");
    add_filter({.by = Filter::By::time, .keeps = keeps, .from = v.area_from, .to = v.area_to});
  };
  add("Only this op", "I", [by_op] { by_op(true); });
  add("Without this op", "X", [by_op] { by_op(false); });
  add("Only this phase", "", [by_phase] { by_phase(true); });
  add("Without this phase", "", [by_phase] { by_phase(false); });
  add("Only this rank", "", [by_rank] { by_rank(true); });
  add("Without this rank", "", [by_rank] { by_rank(false); });
  add("Only this time", "", [by_time] { by_time(true); });
  add("Without this time", "", [by_time] { by_time(false); });
  menu->addSeparator();
  add("Undo filter", "Ctrl+Z", [this] { undo_filter(); });
  add("Redo filter", "Ctrl+Shift+Z", [this] { redo_filter(); });
  connect(first_, &TimelineWidget::menu_wanted, menu, [menu](const QPoint& at) { menu->popup(at); });
  filter_text_ = new QLabel;
  statusBar()->addPermanentWidget(filter_text_);
}

void MainWindow::add_filter(const Filter& filter) {
  if (first_->scene() == nullptr || compared_) return say("filters are of one trace: stop comparing first");
  filters_.add(filter);
  show_filtered();
}

void MainWindow::undo_filter() {
  if (!filters_.undo()) return say("nothing is filtered");
  show_filtered();
}

void MainWindow::redo_filter() {
  if (!filters_.redo()) return say("no filter was taken back");
  show_filtered();
}

// Shows the events that pass all filters, at the same place as before.
void MainWindow::show_filtered() {
  if (unfiltered_ == nullptr) unfiltered_ = first_->shared_scene();
  const std::vector<Filter> filters = filters_.now();
  const Document& whole = unfiltered_->document;
  const View& before = first_->view();
  const Picoseconds begin = before.scale.begin, end = before.scale.end;
  LayoutOptions options = first_->options();
  options.hidden.clear();
  if (filters.empty()) {
    first_->show_scene(std::exchange(unfiltered_, nullptr));
  } else {
    FilteredTimeline some = filtered(whole.timeline, filters);
    Document d{whole.name, std::move(some.timeline), whole.step, whole.event_of_task, ""};
    for (EventId& e : d.event_of_task) e = e == kNoEvent ? kNoEvent : some.there[e];
    for (std::uint32_t p = 0; p < d.timeline.processes.size(); ++p) {
      const auto& tracks = d.timeline.processes[p].tracks;
      if (std::all_of(tracks.begin(), tracks.end(), [&](auto track) { return d.timeline.tracks[track].count == 0; }))
        options.hidden.insert(p);
    }
    const auto some_events = std::make_shared<const Scene>(std::move(d), threads_);
    if (unfiltered_->knows_fabric()) some_events->keep_fabric(unfiltered_->fabric());
    first_->show_scene(some_events);
  }
  first_->set_options(options);
  first_->set_scale(begin, end);
  first_->set_notes(notes_);
  critical_action_->setEnabled(filters.empty() && scene(0) && scene(0)->document.simulated());
  find(search_text_->text());
  std::vector<std::string> texts;
  for (const Filter& f : filters) texts.push_back(text_of(f));
  // Names of kernels may be a thousand letters long, and a label makes its window as wide as its text.
  const QString text = QString::fromStdString(fmt::format("{}", fmt::join(texts, ", ")));
  filter_text_->setText(filter_text_->fontMetrics().elidedText(text, Qt::ElideMiddle, kWidestFilter));
  filter_text_->setToolTip(text);
}

// Forgets the filters when another scene is about to be shown.
void MainWindow::forget_filters() {
  filters_.clear();
  unfiltered_ = nullptr;
  filter_text_->clear();
}

QList<PaletteCommand> MainWindow::commands() {
  QList<PaletteCommand> result;
  for (QAction* const action : findChildren<QAction*>()) {
    const QString text = action->text().remove('&');
    if (text.isEmpty() || action->menu() != nullptr || action->isSeparator() || !action->isEnabled()) continue;
    const auto same = [&](const PaletteCommand& c) { return c.text == text; };
    if (text == "Commands..." || std::any_of(result.begin(), result.end(), same)) continue;
    result.append({text, action->shortcut().toString(), [action] { action->trigger(); }});
  }
  for (int i = 0; i < panel_->count(); ++i)
    result.append({"Show " + panel_->tabText(i), "", [this, i] { panel_->setCurrentIndex(i); }});
  for (int i = 0; i < grouping_->count(); ++i)
    result.append({"Ranks: " + grouping_->itemText(i), "", [this, i] { group_by(i); }});
  return result;
}

void MainWindow::show_palette() {
  auto* palette = new CommandPalette(commands(), this);
  palette->setAttribute(Qt::WA_DeleteOnClose);
  palette->open();
}

}  // namespace orrery
