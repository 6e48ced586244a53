// This file adds the menu of what is shown beside the lanes: how full links are, and the first step beside a later one.
#include <QAction>
#include <QComboBox>
#include <QMenu>
#include <QMenuBar>
#include <QStatusBar>
#include <QTabWidget>
#include <QTextBrowser>
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/print/text.h"
#include "viz/predicted/first_step.h"
#include "viz/timeline/one_step.h"
#include "viz/window/cards.h"
#include "viz/window/main_window.h"

namespace orrery {
namespace {

using Scenes = std::vector<std::shared_ptr<const Scene>>;

// Returns the first step of a trace that has work, and the one of the later ones whose length is the median.
Scenes steps_of_trace(const Scene& scene, unsigned threads) {
  const Timeline& t = scene.timeline();
  const Launches launches = launches_of(t);
  const Steps steps(t, launches);
  const FirstAndSteady shown = first_and_steady_step(t, steps);
  if (shown.steady < 0) throw Error("this trace has no two steps with work, or does not say where steps begin");
  Scenes scenes;
  for (const int step : {shown.first, shown.steady}) {
    Timeline one = one_step(t, steps, step);
    one.title = step == 0 ? "first step" : fmt::format("step {} of {}", step + 1, steps.count());
    const std::string name = one.title;
    scenes.push_back(std::make_shared<const Scene>(Document{name, std::move(one), nullptr, {}, ""}, threads));
  }
  return scenes;
}

Scenes first_and_steady_scenes(const Scene& scene, unsigned threads, const std::atomic<bool>& unwanted) {
  if (!scene.document.simulated()) return steps_of_trace(scene, threads);
  auto [first, steady] = first_and_steady(*scene.document.step, &unwanted);
  Scenes scenes;
  for (StepTimeline* one : {&first, &steady}) {
    const std::string name = one->timeline.title;
    scenes.push_back(std::make_shared<const Scene>(document_of(std::move(*one)), threads));
  }
  return scenes;
}

}  // namespace

void MainWindow::build_view_menu() {
  auto* menu = new QMenu("&View", this);
  menuBar()->insertMenu(menuBar()->actions().last(), menu);
  const auto add = [&](const QString& text, const char* keys, auto function) {
    QAction* const action = menu->addAction(text);
    action->setShortcut(QKeySequence(keys));
    action->setCheckable(true);
    connect(action, &QAction::triggered, this, function);
    addAction(action);
    return action;
  };
  fabric_action_ = add("Load of links", "L", [this](bool on) { show_fabric(on); });
  fabric_action_->setToolTip("how full the fullest NIC, NVLink and uplinks are over the step");
  first_step_action_ = add("First step beside a steady one", "T", [this](bool on) { show_first_step(on); });
  for (TimelineWidget* w : {first_, second_})
    connect(w, &TimelineWidget::link_clicked, this, [this, w](Picoseconds time) { show_links(*w->scene(), time); });
}

void MainWindow::show_fabric(bool on) {
  const auto now = scene(0);
  if (on && now && !now->document.simulated()) {
    fabric_action_->setChecked(false);
    return say("the load of links is known of simulated steps alone");
  }
  fabric_action_->setChecked(on);
  work_.links.drop();
  Scenes unknown;
  std::copy_if(scenes_.begin(), scenes_.end(), std::back_inserter(unknown),
               [on](const auto& s) { return on && !s->knows_fabric(); });
  if (!unknown.empty()) return find_links(unknown);
  what_if_->prepare(threads_, on);
  for (TimelineWidget* w : {first_, second_}) {
    LayoutOptions o = w->options();
    o.fabric = on;
    w->set_options(o);
  }
  if (on && now && now->fabric().empty())
    say(shows_first_step()
            ? "the load of links is known of the predicted step alone: leave its first and steady one (T)"
            : "no link carries anything in this step");
}

// Finds the load of the links of some scenes, and then shows it.
void MainWindow::find_links(const Scenes& unknown) {
  const auto find = [unknown] {
    std::vector<std::vector<FabricLoad>> loads;
    for (const auto& s : unknown) loads.push_back(fabric_of(*s->document.step));
    return loads;
  };
  const auto show = [this, unknown](const std::vector<std::vector<FabricLoad>>& loads) {
    for (std::size_t i = 0; i < unknown.size(); ++i) unknown[i]->keep_fabric(loads[i]);
    show_fabric(fabric_action_->isChecked());
  };
  work_.links.run(find, show, [this](const std::string& why) { say(why); });
}

void MainWindow::show_links(const Scene& s, Picoseconds time) {
  QString html = QString("<h3>Links at %1</h3>").arg(QString::fromStdString(time_text(seconds(time))));
  for (const FabricLoad& load : s.fabric()) {
    html += "<p>";
    for (const std::string& line : load_at(load, time)) html += QString::fromStdString(line).toHtmlEscaped() + "<br>";
    html += QString::fromStdString(fmt::format("over the step: mean {}, peak {}", load_text(load, load.mean),
                                               load_text(load, load.peak))) +
            "</p>";
  }
  details_->setHtml(html +
                    "<p>A link's load counts the transfers that fill it more than other links of their way. Of "
                    "each kind the link is shown that is fullest in the mean over the step.</p>");
  panel_->setCurrentWidget(details_);
}

// Shows the first step of a run above a later one, once both are simulated, or what was shown before, as it was shown.
void MainWindow::show_first_step(bool on) {
  work_.steps.drop();
  if (!on) first_step_action_->setChecked(false);
  if (on == shows_first_step()) return;
  if (!on) {
    BeforeSteps before = std::exchange(before_steps_, {});
    replace_scenes(std::move(before.scenes));
    show_layout(before.view);
    return show_summary();
  }
  const auto refused = [this](const std::string& why) {
    first_step_action_->setChecked(false);
    say(why);
  };
  if (first_->scene() == nullptr) return refused("nothing is open");
  first_step_action_->setChecked(true);
  say("the first steps of the run are being simulated");
  const auto shown = unfiltered_ ? unfiltered_ : first_->shared_scene();
  work_.steps.run([shown, threads = threads_](
                      const std::atomic<bool>& unwanted) { return first_and_steady_scenes(*shown, threads, unwanted); },
                  [this](const Scenes& steps) { show_steps(steps); }, refused);
}

void MainWindow::show_steps(Scenes steps) {
  before_steps_ = {scenes_, view_as_it_is()};
  replace_scenes(std::move(steps));
  show_summary();
  compare(true);
  const bool simulated = scenes_[1]->document.simulated();
  for (const std::string& remark : simulated ? scenes_[1]->timeline().remarks : std::vector<std::string>{})
    say(statusBar()->currentMessage().toStdString() + "; " + remark);
}

// Shows other scenes in the place of those that are open; notes stay, and Details are the caller's to change.
void MainWindow::replace_scenes(Scenes scenes) {
  compare(false);
  forget_filters();
  scenes_ = std::move(scenes);
  critical_ = {};
  documents_->clear();
  for (const auto& s : scenes_)
    documents_->addItem(QString::fromStdString(s->document.name + " (" + s->timeline().source + ")"));
  first_->show_scene(scenes_[0]);
  first_->set_slowest_first(slowest_action_->isChecked());
  first_->set_notes(notes_);
  second_->show_scene(nullptr);
  group_by(grouping_->currentIndex());
  compare_action_->setEnabled(scenes_.size() > 1);
  critical_action_->setEnabled(scenes_[0]->document.simulated());
}

}  // namespace orrery
