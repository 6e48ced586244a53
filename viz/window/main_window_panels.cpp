// This file fills the panel on the right, which has details of the clicked, selected or compared events.
#include <QAction>
#include <QTabWidget>
#include <QTableWidget>
#include <QTextBrowser>
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "sim/print/text.h"
#include "sim/validate/validation.h"
#include "viz/read/measured_step.h"
#include "viz/window/main_window.h"
#include "viz/window/palette.h"
#include "viz/window/statistics_panel.h"

namespace orrery {
namespace {

constexpr std::size_t kMostAlive = 12;  // greatest number of buffers in memory that are listed for the time clicked
constexpr int kMostDifferences = 500;
constexpr double kSame = 0.0005;         // two times that differ by less of the longer one are shown as the same
constexpr std::size_t kMostRanks = 256;  // greatest number of ranks listed for a selected range of time
constexpr std::size_t kMostOnPath = 15;  // greatest number of ops listed for the critical path

QTableWidgetItem* text_item(const QString& text) {
  auto* item = new QTableWidgetItem(text);
  item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable);
  return item;
}

QTableWidgetItem* number_item(const std::string& text) {
  QTableWidgetItem* item = text_item(QString::fromStdString(text));
  item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  return item;
}

QString cell(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped(); }

QString details_html(const std::string& title, const Details& details) {
  QString html = "<h3>" + cell(title) + "</h3><table cellpadding=2>";
  for (const auto& [name, value] : details)
    html += "<tr><td><b>" + cell(name) + "</b></td><td>" + cell(value) + "</td></tr>";
  return html + "</table>";
}

// Returns whether a process has work or memory to sum up: the host of a profiler's trace has neither.
bool has_area(const Timeline& t, std::uint32_t process) {
  const Process& p = t.processes[process];
  return memory_of(p) != nullptr || std::any_of(p.tracks.begin(), p.tracks.end(),
                                                [&](std::uint32_t track) { return has_work(t, t.tracks[track]); });
}

// A column in the table of ranks that is shown for a selected range of time; only kinds of events that occur on some
// rank have a column.
struct AreaColumn {
  std::string name;
  std::function<std::string(const AreaRow&)> text;
};

AreaColumn time_column(std::string name, std::function<Picoseconds(const AreaRow&)> of) {
  return {std::move(name), [of = std::move(of)](const AreaRow& row) { return time_text(seconds(of(row))); }};
}

Picoseconds exposed_of(const AreaRow& row) {
  Picoseconds sum = 0;
  for (std::size_t k = 0; k < kKinds; ++k) sum += communicates(static_cast<Kind>(k)) ? row.sums.exposed[k] : 0;
  return sum;
}

Picoseconds hidden_of(const AreaRow& row) {
  Picoseconds sum = 0;
  for (std::size_t k = 0; k < kKinds; ++k) sum += communicates(static_cast<Kind>(k)) ? row.sums.busy[k] : 0;
  return sum - exposed_of(row);
}

std::vector<AreaColumn> area_columns(const std::vector<AreaRow>& rows) {
  std::vector<AreaColumn> columns = {
      time_column("compute", [](const AreaRow& r) { return r.sums.compute; }),
      time_column("exposed", exposed_of),
      time_column("hidden", hidden_of),
      time_column("bubble", [](const AreaRow& r) { return r.sums.idle; }),
      {"peak", [](const AreaRow& r) { return r.memory.bytes > 0 ? memory_text(r.memory.bytes) : ""; }}};
  for (std::size_t k = 0; k < kKinds; ++k) {
    const auto kind = static_cast<Kind>(k);
    if (std::all_of(rows.begin(), rows.end(), [&](const AreaRow& r) { return r.sums.busy[k] == 0; })) continue;
    const std::string name(name_of(kind));
    if (computes(kind) || kind == Kind::copy)
      columns.push_back(time_column(name, [k](const AreaRow& r) { return r.sums.busy[k]; }));
    if (!communicates(kind)) continue;
    columns.push_back(time_column(name + " exposed", [k](const AreaRow& r) { return r.sums.exposed[k]; }));
    columns.push_back(
        time_column(name + " hidden", [k](const AreaRow& r) { return r.sums.busy[k] - r.sums.exposed[k]; }));
  }
  return columns;
}

// Adds the operator of the host that launched a kernel, with the sizes of its inputs, and how long before the kernel's
// begin the host had launched it.
void add_launch(const Scene& s, EventId e, Details& details) {
  const Timeline& t = s.timeline();
  if (t.kind(e) == Kind::host) return;
  const auto [call, op] = s.launch_of(e);
  if (op != kNoEvent) {
    const std::string shape = shape_of(t, op);
    details.emplace_back("operator", shape.empty() ? t.name(op) : fmt::format("{}: {}", t.name(op), shape));
  }
  if (call != kNoEvent)
    details.emplace_back(
        "launched",
        fmt::format("{} before, by {}", time_text(seconds(std::max<Picoseconds>(0, t.begins[e] - t.ends[call]))),
                    t.name(call)));
}

// Returns whether a detail is a field that every event of a Chrome trace has, and that the title and the first rows say
// in words.
bool said_in_words(const std::pair<std::string, std::string>& detail) {
  static constexpr std::array<std::string_view, 6> kFields = {"ph", "name", "pid", "tid", "ts", "dur"};
  return std::find(kFields.begin(), kFields.end(), detail.first) != kFields.end();
}

StepTimeline step_timeline(const Document& d) { return {d.step, d.timeline, d.event_of_task}; }

// Returns a text about the time on the critical path, by kind and by op, the longest first. If an op on the path gets
// shorter, the step gets shorter by as much, until another path is the longest.
QString path_html(const Timeline& t, const std::vector<EventId>& path) {
  std::array<Picoseconds, kKinds> by_kind{};
  struct OfLabel {
    Picoseconds time = 0;
    std::int64_t count = 0;
    std::uint32_t label = 0;
  };
  std::map<std::uint32_t, OfLabel> by_label;
  for (const EventId e : path) {
    const Picoseconds time = t.ends[e] - t.begins[e];
    by_kind[static_cast<std::size_t>(t.kind(e))] += time;
    OfLabel& of = by_label[t.label[e]];
    of = {of.time + time, of.count + 1, t.label[e]};
  }
  Details kinds, ops;
  for (std::size_t k = 0; k < kKinds; ++k) {
    if (by_kind[k] > 0) kinds.emplace_back(name_of(static_cast<Kind>(k)), time_text(seconds(by_kind[k])));
  }
  const Picoseconds tasks = std::accumulate(by_kind.begin(), by_kind.end(), Picoseconds{0});
  if (tasks < t.end)
    // The rest of the critical path is time in which the path waits for the host to launch a task
    // (sim/report/critical_path.h).
    kinds.emplace_back("host's launches", time_text(seconds(t.end - tasks)));
  kinds.emplace_back("step", time_text(seconds(t.end)));
  std::vector<OfLabel> order;
  for (const auto& [label, of] : by_label) order.push_back(of);
  std::stable_sort(order.begin(), order.end(), [](const OfLabel& a, const OfLabel& b) { return a.time > b.time; });
  order.resize(std::min(order.size(), kMostOnPath));
  for (const OfLabel& of : order)
    ops.emplace_back(t.labels[of.label].name, fmt::format("{}, {} ({})", time_text(seconds(of.time)),
                                                          of.count == 1 ? "once" : fmt::format("{} times", of.count),
                                                          name_of(t.labels[of.label].kind)));
  return details_html(fmt::format("Critical path: {} tasks", path.size()), kinds) + details_html("Ops on it", ops);
}

}  // namespace

void MainWindow::show_details(const Scene& s, EventId e) {
  const Timeline& t = s.timeline();
  Details d = {{"kind", std::string(name_of(t.kind(e)))}};
  if (!s.document.simulated()) {
    d.emplace_back("begins", time_text(seconds(t.begins[e])));
    d.emplace_back("lasts", time_text(seconds(t.ends[e] - t.begins[e])));
  } else if (&s == scenes_[0].get() && !critical_.slack.empty() && critical_.slack[e] >= 0) {
    d.emplace_back("slack",
                   critical_.slack[e] == 0 ? "none: on the critical path" : time_text(seconds(critical_.slack[e])));
  }
  add_launch(s, e, d);
  add_counterpart(s, e, d);
  const std::size_t members = members_of(t, e).size();
  if (members > 1) d.emplace_back("members shown", std::to_string(members));
  Details all = details_of(t, e);
  if (!s.document.simulated())
    std::stable_partition(all.begin(), all.end(), [](const auto& detail) { return !said_in_words(detail); });
  d.insert(d.end(), all.begin(), all.end());
  details_->setHtml(details_html(t.name(e), d));
  statistics_->choose(t.name(e), t.labels[t.label[e]].phase);
  if (panel_->currentWidget() != statistics_) panel_->setCurrentWidget(details_);
}

void MainWindow::show_memory(const Scene& s, Picoseconds time, int process) {
  if (process < 0) return;
  const Process& p = s.timeline().processes[static_cast<std::size_t>(process)];
  const Counter* memory = memory_of(p);
  if (memory == nullptr || memory->times.empty()) return;
  Details d;
  const std::ptrdiff_t sample = std::max<std::ptrdiff_t>(0, sample_at(*memory, time));
  for (std::size_t i = 0; i < memory->series.size(); ++i)
    d.emplace_back(memory->series[i],
                   memory_text(memory->values[static_cast<std::size_t>(sample) * memory->series.size() + i]));
  if (p.reserved > 0) d.emplace_back("reserved at most", memory_text(static_cast<double>(p.reserved)));
  if (p.capacity > 0) d.emplace_back("capacity", memory_text(static_cast<double>(p.capacity)));
  QString html = details_html(fmt::format("{} at {}", p.name, time_text(seconds(time))), d);
  if (s.document.simulated()) {
    html += "<h4>Alive</h4>";
    for (const std::string& line :
         alive_at(step_timeline(s.document), static_cast<std::uint32_t>(process), time, kMostAlive))
      html += cell(line) + "<br>";
  }
  details_->setHtml(html);
  panel_->setCurrentWidget(details_);
}

// Shows a table about a selected range of time, with a row for each rank (if there are more than kMostRanks, for those
// that compute most): total compute, exposed and hidden communication, idle time (bubble) and peak memory, and then the
// time of each kind of work.
void MainWindow::show_area(Picoseconds from, Picoseconds to) {
  if (to <= from || first_->scene() == nullptr) return;
  const Scene& s = *first_->scene();
  auto rows = area_statistics(s.timeline(), s.prepared->areas, from, to);
  std::erase_if(rows, [&](const AreaRow& row) { return !has_area(s.timeline(), row.process); });
  const std::size_t ranks = rows.size();
  if (ranks > kMostRanks) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const AreaRow& a, const AreaRow& b) { return a.sums.compute > b.sums.compute; });
    rows.resize(kMostRanks);
  }
  const std::vector<AreaColumn> columns = area_columns(rows);
  QStringList names = {"rank"};
  for (const AreaColumn& c : columns) names << QString::fromStdString(c.name);
  area_->setColumnCount(static_cast<int>(names.size()));
  area_->setHorizontalHeaderLabels(names);
  area_->setRowCount(static_cast<int>(rows.size()));
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
    const AreaRow& row = rows[static_cast<std::size_t>(i)];
    area_->setItem(i, 0, text_item(QString::fromStdString(s.timeline().processes[row.process].name)));
    for (int c = 1; c < names.size(); ++c)
      area_->setItem(i, c, number_item(columns[static_cast<std::size_t>(c - 1)].text(row)));
  }
  area_->resizeColumnsToContents();
  if (panel_->currentWidget() != statistics_) panel_->setCurrentWidget(area_);
  const std::string left_out =
      ranks > kMostRanks ? fmt::format("; the table has the {} of {} ranks that computed most", kMostRanks, ranks) : "";
  say(fmt::format("{} from {} to {}{}", time_text(seconds(to - from)), time_text(seconds(from)), time_text(seconds(to)),
                  left_out));
}

// Shows where the second of two compared traces took longer (+) or shorter (-) than the first: classes of ops first, in
// bold, then ops.
void MainWindow::show_differences() {
  const Timeline &a = scenes_[0]->timeline(), &b = scenes_[1]->timeline();
  const std::vector<Difference>& rows = comparison_.rows;
  const int count = std::min<int>(kMostDifferences, static_cast<int>(rows.size()));
  compare_->setRowCount(count);
  for (int i = 0; i < count; ++i) {
    const Difference& d = rows[static_cast<std::size_t>(i)];
    const std::string change = d.count_a == 0   ? "second only"
                               : d.count_b == 0 ? "first only"
                               : d.a > 0        ? fmt::format("{:+.1f}", 100 * d.more() / d.a)
                                                : "";
    compare_->setItem(i, 0, text_item(QString::fromStdString(d.shown)));
    compare_->setItem(i, 1, number_item(d.count_a > 0 ? time_text(d.a) : ""));
    compare_->setItem(i, 2, number_item(d.count_b > 0 ? time_text(d.b) : ""));
    const bool same = std::abs(d.more()) < kSame * std::max(d.a, d.b);
    compare_->setItem(i, 3, number_item(same ? "0" : (d.more() < 0 ? "-" : "+") + time_text(std::abs(d.more()))));
    compare_->setItem(i, 4, number_item(same ? "0" : change));
    compare_->item(i, 3)->setForeground(same ? colours::kFaintInk : colour_of_change(d.more() > 0 ? 1 : -1));
    for (int c = 0; d.whole_class && c < compare_->columnCount(); ++c) compare_->item(i, c)->setFont(canvas_font(true));
    compare_->item(i, 0)->setToolTip(QString::fromStdString(
        fmt::format("{}\n{:.4g} in the first, {:.4g} in the second", d.name, d.count_a, d.count_b)));
  }
  compare_->resizeColumnsToContents();
  panel_->setCurrentWidget(compare_);
  EventId working = 0;
  for (EventId e = 0; e < b.events(); ++e) working += works(b, e) ? 1 : 0;
  say(fmt::format("{} (second) against {} (first): {} of {} events matched by {}; {}", b.title, a.title,
                  comparison_.matching.matched, working,
                  comparison_.matching.by_name ? "name" : "step, class, shape and stream", prediction_text()));
}

// Adds to an event's details its counterpart in the other of two compared traces, and the change from the first trace
// to the second.
void MainWindow::add_counterpart(const Scene& scene, EventId e, Details& details) const {
  if (!compare_action_->isChecked() || scenes_.size() < 2) return;
  const bool first = &scene == scenes_[0].get();
  const EventId other = (first ? comparison_.matching.there : comparison_.matching.back)[e];
  const Timeline &here = scene.timeline(), &there = scenes_[first ? 1 : 0]->timeline();
  const char* const where = first ? "in the second" : "in the first";
  if (other == kNoEvent) return details.emplace_back(where, "no match"), void();
  const auto own = static_cast<double>(here.ends[e] - here.begins[e]);
  const auto theirs = static_cast<double>(there.ends[other] - there.begins[other]);
  const double before = first ? own : theirs, after = first ? theirs : own;
  details.emplace_back(where, fmt::format("{}: {}", there.name(other), time_text(theirs * 1e-12)));
  if (before > 0) details.emplace_back("second against first", fmt::format("{:+.1f} %", 100 * (after / before - 1)));
}

// Returns the text that the panel shows for two compared timelines. If the first is a prediction and the second a
// measured trace of the same plan, the text says whose error the difference is: that of the tasks' durations, and that
// of the step time which is simulated with the measured durations. As everywhere, + means that the second is longer.
std::string MainWindow::prediction_text() const {
  const Document& first = scenes_[0]->document;
  const Timeline& b = scenes_[1]->timeline();
  const auto before = static_cast<double>(comparison_.step_a), after = static_cast<double>(comparison_.step_b);
  const std::string step =
      fmt::format("a step is {}, {:+.1f} %", time_text(after * 1e-12), before > 0 ? 100 * (after / before - 1) : 0);
  if (!first.simulated() || scenes_[1]->document.simulated() || b.source == "simulated") return step;
  if (!comparison_.matching.by_name) return step;  // the trace is of another program, which does not name our tasks
  const auto& slots = first.step->prediction.plan.classes;
  if (std::any_of(slots.begin(), slots.end(), [](const RankClass& s) { return s.multiplicity > 1; }))
    return step + "; open the spec with --unfold to see whose error it is";
  const MeasuredTasks tasks = tasks_of(first.step->prediction.plan, b);
  if (!tasks.why_not.empty()) return fmt::format("{}; whose error it is cannot be told: {}", step, tasks.why_not);
  const PredictionError e = prediction_error(first.step->prediction, tasks.trace);
  // The errors are predicted over measured, but here the measurement is the second.
  return fmt::format(
      "measured step {:+.1f} %, durations of ops {:.1f} % off, measured step against its replay {:+.1f} %",
      100 * (1 / (1 + e.step) - 1), 100 * e.cost, 100 * (1 / (1 + e.engine) - 1));
}

void MainWindow::show_critical_path(bool shown) {
  critical_action_->setChecked(shown);
  const auto s = scene(0);
  if (!shown || !s || !s->document.simulated() || first_->scene() != s.get()) return first_->set_path({});
  if (critical_.path.empty()) critical_ = critical_path_of(step_timeline(s->document));
  first_->set_path(critical_.path);
  details_->setHtml(
      "<p>Click an event for its slack: how much longer it could take without the step taking "
      "longer.</p>" +
      path_html(s->timeline(), critical_.path));
}

}  // namespace orrery
