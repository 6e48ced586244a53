// This file brings the window into the states that the option --view names.
#include <QStatusBar>
#include <QTabWidget>
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "viz/window/main_window.h"
#include "viz/window/statistics_panel.h"

namespace orrery {
namespace {

// Shows the lanes of the first `count` processes, and each other process as one row.
void open_processes(TimelineWidget& w, std::size_t count, bool counters) {
  LayoutOptions o = w.options();
  const std::size_t all = w.scene()->timeline().processes.size();
  for (std::uint32_t p = 0; p < all; ++p) {
    if (p < count) {
      o.closed.erase(p);
    } else {
      o.closed.insert(p);
    }
  }
  o.counters = counters;
  w.set_options(o);
}

// Returns the longest communication event in the middle half of the timeline; it is selected in the window state
// "details" (option --view).
EventId telling_event(const Timeline& t) {
  EventId best = kNoEvent;
  for (EventId e = 0; e < t.events(); ++e) {
    if (!communicates(t.kind(e)) || t.begins[e] < t.end / 4 || t.ends[e] > t.end / 4 * 3) continue;
    if (best == kNoEvent || t.ends[e] - t.begins[e] > t.ends[best] - t.begins[best]) best = e;
  }
  return best;
}

void show_timeline(MainWindow&) {}
void show_lanes(MainWindow& w) { open_processes(*w.first(), 64, true); }
void show_pipeline(MainWindow& w) { open_processes(*w.first(), 0, false); }
void show_critical(MainWindow& w) {
  open_processes(*w.first(), 0, false);
  w.show_critical_path(true);
}
void show_area(MainWindow& w) {
  const Picoseconds end = w.first()->scene()->timeline().end;
  w.first()->set_area(end / 4, end / 2);
}
void show_details(MainWindow& w) {
  const EventId e = telling_event(w.first()->scene()->timeline());
  open_processes(*w.first(), 64, false);
  w.first()->select(e);
  w.first()->focus_on_selection();
}
// Shows the first process with its memory counter, marks the time of the counter's peak, and lists the buffers that the
// process holds at that time.
void show_memory_peak(MainWindow& w) {
  open_processes(*w.first(), 1, true);
  const Timeline& t = w.first()->scene()->timeline();
  const Counter* const memory = t.processes.empty() ? nullptr : memory_of(t.processes[0]);
  if (memory == nullptr) throw Error("--view memory: this input says nothing of memory");
  const Picoseconds time = memory_peak(*memory, 0, t.end).time;
  w.first()->mark(time);
  Q_EMIT w.first()->time_clicked(time, 0);
}
void show_compare(MainWindow& w) {
  if (w.documents() < 2)
    throw Error("--view compare: needs two inputs; traces whose names differ by a rank alone are one input");
  w.compare(true);
}

void show_links(MainWindow& w) {
  if (!w.first()->scene()->document.simulated())
    throw Error("--view links: their load is known of simulated steps alone");
  w.show_fabric(true);
}
void show_first_step(MainWindow& w) {
  w.show_first_step(true);
  w.finish_work();
  if (!w.shows_first_step()) throw Error("--view first-step: " + w.statusBar()->currentMessage().toStdString());
}

void show_op_statistics(MainWindow& w) { w.show_tab(w.statistics()); }

constexpr std::size_t kShownStrategies = 40;
void show_what_if(MainWindow& w) {
  w.what_if()->try_all_now(kShownStrategies);
  w.show_tab(w.what_if());
}

struct NamedView {
  std::string_view name;
  void (*show)(MainWindow&);
};
constexpr NamedView kViews[] = {
    {"timeline", show_timeline},  {"lanes", show_lanes},     {"pipeline", show_pipeline},
    {"critical", show_critical},  {"area", show_area},       {"details", show_details},
    {"memory", show_memory_peak}, {"compare", show_compare}, {"statistics", show_op_statistics},
    {"what-if", show_what_if},    {"links", show_links},     {"first-step", show_first_step}};

}  // namespace

std::vector<std::string> view_names() {
  std::vector<std::string> names;
  for (const NamedView& v : kViews) names.emplace_back(v.name);
  return names;
}

void MainWindow::show_view(const std::string& name) {
  for (const NamedView& v : kViews) {
    if (v.name != name) continue;
    v.show(*this);
    return finish_work();
  }
  throw Error(fmt::format("--view: unknown view {}; known: {}", name, fmt::join(view_names(), ", ")));
}

}  // namespace orrery
