#pragma once

#include <QMainWindow>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "viz/timeline/filter.h"
#include "viz/window/background.h"
#include "viz/window/command_palette.h"
#include "viz/window/timeline_widget.h"
#include "viz/window/what_if_panel.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QProgressDialog;
class QSplitter;
class QTabWidget;
class QTableWidget;
class QTextBrowser;
class QToolBar;
class QAction;

namespace orrery {

class OverviewStrip;
class StatisticsPanel;

// The main window: one timeline, or two above each other when they are compared, and a panel with details of the
// clicked or selected events.
class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(QWidget* parent = nullptr);
  ~MainWindow() override;

  // Sets the options for spec files (model, cluster and strategy) that are opened from now on.
  void set_options(const SpecOptions& options) { options_ = options; }
  // Sets the number of threads that prepare traces for drawing.
  void set_threads(unsigned threads) { threads_ = threads; }
  void open(const std::vector<std::string>& paths);        // opens the files and returns when they are shown
  void open_later(const std::vector<std::string>& paths);  // opens the files in a thread; the user can cancel this
  void show_documents(std::vector<Document> documents);
  void finish_work();  // waits for steps, links and changes in the background, and shows them: for pictures and tests
  std::size_t documents() const { return scenes_.size(); }
  // Shows the window in a state given by one of the names in view_names(); throws Error for any other name.
  void show_view(const std::string& name);

  TimelineWidget* first() const { return first_; }
  TimelineWidget* second() const { return second_; }
  void find(const QString& text);
  void find_next(bool forward);
  bool shows_first_step() const { return !before_steps_.scenes.empty(); }
  WhatIfPanel* what_if() const { return what_if_; }
  void show_tab(QWidget* tab);
  void show_critical_path(bool shown);
  void compare(bool on);
  void show_fabric(bool on);      // shows how full the links of the cluster are over the step
  void show_first_step(bool on);  // compares the first step of a run with a later one, or stops to
  void group_by(int index);       // index: 1 + the index in kCoordinates by which ranks are grouped; 0: no grouping
  // Writes a picture or table in the format of the path's ending: png, svg, csv, json; throws Error.
  void export_to(const QString& path);

  // Returns the current state of the view, to be saved and applied to this or another trace.
  SavedView view_as_it_is() const;
  void apply(const SavedView& view);        // as it was saved, with its notes
  void show_layout(const SavedView& view);  // the same without notes
  void save_view(const QString& path);      // writes the view to a file; throws Error
  void add_note(const Note& note);
  void remove_note(int row);
  const std::vector<Note>& notes() const { return notes_; }
  StatisticsPanel* statistics() const { return statistics_; }
  // Shows only what passes the restriction and those before it, in lanes, statistics, area and search; undo_filter()
  // and redo_filter() take the last one back and do it again.
  void add_filter(const Filter& filter);
  void undo_filter();
  void redo_filter();
  QList<PaletteCommand> commands();  // everything that menus, tool bar, tabs and lists of the window offer
  bool notes_unsaved() const { return notes_ != kept_notes_; }
  // Pins the lanes whose name matches a pattern, none for ""; returns how many. Throws Error for an invalid pattern.
  std::size_t pin(const std::string& pattern);
  // Sets a pattern of lane names: in all inputs opened from now on, lanes that match it are pinned (kept at the top).
  void pin_what_opens(const std::string& pattern) { pin_opened_ = pattern; }

  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  bool may_drop_notes();  // whether the notes may be discarded; asks the user if some are unsaved
  void show_scenes(std::vector<std::shared_ptr<const Scene>> scenes);
  void replace_scenes(std::vector<std::shared_ptr<const Scene>> scenes);
  void show_links(const Scene& scene, Picoseconds time);
  void show_step(const std::shared_ptr<const Scene>& now);
  void show_summary(const QString& below = {});
  void find_links(const std::vector<std::shared_ptr<const Scene>>& unknown);
  void show_steps(std::vector<std::shared_ptr<const Scene>> steps);
  void opened(const Opening& opening);
  void stop_loading();
  void ask_for_files();
  void build_tool_bar();
  void build_menu();
  void build_cards();
  void build_notes();
  void build_finder(QToolBar* bar);
  void build_tools();
  void build_filters();
  void build_view_menu();
  void show_filtered();
  void forget_filters();
  void show_statistics();
  void show_palette();
  void connect_timelines();
  void follow(TimelineWidget* leader, TimelineWidget* follower);
  void ask_for_note(Note note);
  void show_notes();
  void show_details(const Scene& scene, EventId e);
  void show_memory(const Scene& scene, Picoseconds time, int process);
  void show_area(Picoseconds from, Picoseconds to);
  void show_differences();
  std::string prediction_text() const;
  void add_counterpart(const Scene& scene, EventId e, Details& details) const;
  std::shared_ptr<const Scene> scene(std::size_t i) const { return i < scenes_.size() ? scenes_[i] : nullptr; }
  void say(const std::string& text);

  SpecOptions options_;
  unsigned threads_ = 2;
  std::vector<std::string> inputs_;  // paths of the inputs that are open
  SpecOptions inputs_options_;
  // Whether the step shown was changed in the What-if panel, so that it no longer is the step of the inputs.
  bool step_changed_ = false;
  std::vector<Note> notes_, kept_notes_;  // the current notes, and the notes as they were last saved
  std::string pin_opened_;
  std::vector<std::shared_ptr<const Scene>> scenes_;
  // The scenes that are open, and how they were shown, while two steps of one are shown instead.
  struct BeforeSteps {
    std::vector<std::shared_ptr<const Scene>> scenes;
    SavedView view;
  };
  BeforeSteps before_steps_;
  bool compared_ = false;   // whether two scenes are shown above each other
  bool following_ = false;  // whether one of two compared timelines is being moved with the other
  Comparison comparison_;   // the first two scenes compared, while they are
  Matching back_;           // comparison_.matching in the other direction
  Search search_;
  CriticalPath critical_;
  TimelineWidget *first_, *second_;
  QSplitter* timelines_;
  QTabWidget* panel_;
  QTextBrowser* details_;
  QTableWidget *area_, *compare_, *notes_table_;
  WhatIfPanel* what_if_;
  QLineEdit* search_text_ = nullptr;
  QLabel* search_count_ = nullptr;
  QLineEdit* finder_ = nullptr;
  QLabel* found_lanes_ = nullptr;
  QComboBox *grouping_ = nullptr, *documents_ = nullptr;
  QAction *critical_action_ = nullptr, *compare_action_ = nullptr, *arrows_action_ = nullptr, *host_action_ = nullptr,
          *slowest_action_ = nullptr, *fabric_action_ = nullptr, *first_step_action_ = nullptr;
  OverviewStrip* overview_;
  StatisticsPanel* statistics_;
  QLabel* filter_text_ = nullptr;
  FilterHistory filters_;
  std::shared_ptr<const Scene> unfiltered_;  // the scene whose events are filtered; nullptr: all events are shown
  // The summary of the first scene, the load of links, and the first step beside a steady one, as they are simulated.
  struct Work {
    Background summary, links, steps;
  };
  Work work_;
  std::pair<std::weak_ptr<const Scene>, QString> more_;  // the last scene with summary_more(), and what that returned
  std::thread loader_;
  std::shared_ptr<std::atomic<bool>> cancelled_;  // flag that makes the loading thread stop
};

std::vector<std::string> view_names();

}  // namespace orrery
