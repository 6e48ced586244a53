// This file opens inputs, at once or in a thread, and shows them.
#include <QAction>
#include <QComboBox>
#include <QPointer>
#include <QProgressDialog>
#include <QTextBrowser>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/print/text.h"
#include "viz/draw/scene_cache.h"
#include "viz/window/cards.h"
#include "viz/window/main_window.h"

namespace orrery {
namespace {

std::vector<std::shared_ptr<const Scene>> scenes_of(std::vector<Document> documents, unsigned threads) {
  std::vector<std::shared_ptr<const Scene>> scenes;
  for (Document& d : documents) scenes.push_back(std::make_shared<const Scene>(std::move(d), threads));
  return scenes;
}

std::string size_text(const Timeline& t) {
  return fmt::format("{} events on {}", grouped(static_cast<double>(t.events())), lanes_text(t));
}

}  // namespace

MainWindow::~MainWindow() { stop_loading(); }

// Stops the loading thread; an input that is only partly read is dropped.
void MainWindow::stop_loading() {
  if (cancelled_) *cancelled_ = true;
  if (loader_.joinable()) loader_.join();
}

void MainWindow::open(const std::vector<std::string>& paths) {
  const Opening opening = opening_of(paths, options_);
  show_scenes(open_scenes(opening.inputs, opening.options, {}, threads_));
  opened(opening);
  for (const auto& s : scenes_) put_in_cache(*s);
  finish_work();
}

void MainWindow::finish_work() {
  work_.steps.finish();
  what_if_->finish_work();
  work_.links.finish();
  work_.summary.finish();
}

// Shows opened inputs. If the first input is a spec, the What-if panel can change it. A saved view is applied: the one
// given with the inputs, or else the one stored in the first input.
void MainWindow::opened(const Opening& opening) {
  inputs_ = opening.inputs;
  inputs_options_ = opening.options;
  step_changed_ = false;
  if (scenes_.empty()) return;
  what_if_->show_spec(scenes_[0]->document.simulated() ? inputs_[0] : std::string(), inputs_options_,
                      scenes_[0]->document.step.get());
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

// Replaces the first scene (an opened trace) by that of a simulated step; the same ranks and lanes stay in view.
void MainWindow::show_step(const std::shared_ptr<const Scene>& now) {
  show_first_step(false);
  compare(false);
  forget_filters();
  step_changed_ = true;
  if (scenes_.empty()) scenes_.emplace_back();
  scenes_[0] = now;
  critical_ = {};
  show_summary();
  LayoutOptions options = first_->options();
  options.pinned.clear();
  first_->show_scene(now);
  first_->set_options(options);
  first_->set_notes(notes_);
  if (critical_action_->isChecked()) show_critical_path(true);
  if (fabric_action_->isChecked()) show_fabric(true);
  say(size_text(now->timeline()));
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
  // The loading thread uses no widget directly, but posts calls to the event loop.
  loader_ = std::thread([this, dialog, cancelled, opening, threads = threads_] {
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
      *scenes = open_scenes(opening.inputs, opening.options, progress, threads);
    } catch (const Cancelled&) {
      error = "loading was cancelled";
    } catch (const std::exception& e) {
      error = e.what();
    }
    later([this, dialog = QPointer<QProgressDialog>(dialog), scenes, error, opening] {
      if (dialog) dialog->close();
      if (!error.empty()) return say(error);
      if (!may_drop_notes()) return say("kept what was open: its notes are in no file");
      show_scenes(*scenes);
      for (const std::string& path : opening.inputs) add_recent_file(QString::fromStdString(path));
      try {
        opened(opening);
      } catch (const Error& e) {
        say(e.what());
      }
    });
    for (const auto& s : *scenes) put_in_cache(*s);
  });
}

void MainWindow::show_documents(std::vector<Document> documents) {
  show_scenes(scenes_of(std::move(documents), threads_));
  finish_work();
}

void MainWindow::show_scenes(std::vector<std::shared_ptr<const Scene>> scenes) {
  if (scenes.empty()) return;
  before_steps_ = {};
  work_.steps.drop();
  first_step_action_->setChecked(false);
  notes_.clear();
  kept_notes_.clear();
  show_notes();
  std::vector<std::string> remarks;
  for (const auto& s : scenes)
    remarks.insert(remarks.end(), s->timeline().remarks.begin(), s->timeline().remarks.end());
  const bool network = shows_links(scenes[0]->document);
  replace_scenes(std::move(scenes));
  show_fabric(network);
  QString html;
  for (const std::string& r : remarks) html += "<li>" + QString::fromStdString(r).toHtmlEscaped() + "</li>";
  show_summary(html.isEmpty() ? html : "<h3>Remarks</h3><ul>" + html + "</ul>");
  if (!remarks.empty()) {
    say(fmt::format("{} remarks on what was opened: see Details", remarks.size()));
  } else {
    say(size_text(scenes_[0]->timeline()));
  }
}

}  // namespace orrery
