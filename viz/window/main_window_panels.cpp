// What the panel at the right says of what was clicked, selected or compared.
#include <QAction>
#include <QTabWidget>
#include <QTableWidget>
#include <QTextBrowser>
#include <algorithm>

#include <fmt/format.h>

#include "sim/text.h"
#include "viz/replayed.h"
#include "viz/window/main_window.h"
#include "viz/window/palette.h"

namespace orrery {
namespace {

constexpr std::size_t kMostAlive = 12;  // buffers that a click lists
constexpr int kMostDifferences = 500;

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

StepTimeline step_timeline(const Document& d) { return {d.step, d.timeline, d.event_of_task}; }

}  // namespace

void MainWindow::show_details(const Scene& s, EventId e) {
  const Timeline& t = s.timeline();
  Details d = details_of(t, e);
  d.insert(d.begin(), {"kind", std::string(name_of(t.kind(e)))});
  if (!s.document.simulated()) {
    d.insert(d.begin() + 1, {"lasts", time_text(seconds(t.ends[e] - t.begins[e]))});
    d.insert(d.begin() + 1, {"begins", time_text(seconds(t.begins[e]))});
  } else if (&s == scenes_[0].get() && !critical_.slack.empty() && critical_.slack[e] >= 0) {
    d.emplace_back("slack",
                   critical_.slack[e] == 0 ? "none: on the critical path" : time_text(seconds(critical_.slack[e])));
  }
  const std::size_t members = members_of(t, e).size();
  if (members > 1) d.emplace_back("members shown", std::to_string(members));
  details_->setHtml(details_html(t.name(e), d));
  panel_->setCurrentWidget(details_);
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

void MainWindow::show_area(Picoseconds from, Picoseconds to) {
  if (to <= from || first_->scene() == nullptr) return;
  const Scene& s = *first_->scene();
  const auto rows = area_statistics(s.timeline(), s.prepared->areas, from, to);
  area_->setRowCount(static_cast<int>(rows.size()));
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
    const AreaRow& row = rows[static_cast<std::size_t>(i)];
    Picoseconds exposed = 0, hidden = 0;
    QStringList groups;
    for (int k = 0; k < kKinds; ++k) {
      const auto index = static_cast<std::size_t>(k);
      if (!communicates(static_cast<Kind>(k)) || row.sums.busy[index] == 0) continue;
      exposed += row.sums.exposed[index];
      hidden += row.sums.busy[index] - row.sums.exposed[index];
      groups << QString::fromStdString(fmt::format("{}: {} exposed, {} hidden", name_of(static_cast<Kind>(k)),
                                                   time_text(seconds(row.sums.exposed[index])),
                                                   time_text(seconds(row.sums.busy[index] - row.sums.exposed[index]))));
    }
    area_->setItem(i, 0, text_item(QString::fromStdString(s.timeline().processes[row.process].name)));
    const Picoseconds times[] = {row.sums.compute, exposed, hidden, row.sums.idle};
    for (int c = 0; c < 4; ++c) area_->setItem(i, c + 1, number_item(time_text(seconds(times[c]))));
    area_->setItem(i, 5, number_item(memory_text(row.memory.bytes)));
    for (int c = 0; c < 6; ++c) area_->item(i, c)->setToolTip(groups.join("\n"));
  }
  area_->resizeColumnsToContents();
  panel_->setCurrentWidget(area_);
  say(fmt::format("{} from {} to {}", time_text(seconds(to - from)), time_text(seconds(from)), time_text(seconds(to))));
}

void MainWindow::show_differences() {
  const Timeline &a = scenes_[0]->timeline(), &b = scenes_[1]->timeline();
  const auto rows = differences(a, b);
  const int count = std::min<int>(kMostDifferences, static_cast<int>(rows.size()));
  compare_->setRowCount(count);
  for (int i = 0; i < count; ++i) {
    const Difference& d = rows[static_cast<std::size_t>(i)];
    compare_->setItem(
        i, 0,
        text_item(QString::fromStdString(d.name) + " (" + QString::fromStdString(std::string(name_of(d.kind))) + ")"));
    compare_->setItem(i, 1, number_item(time_text(seconds(d.a))));
    compare_->setItem(i, 2, number_item(time_text(seconds(d.b))));
    compare_->setItem(i, 3, number_item((d.more() < 0 ? "-" : "+") + time_text(seconds(std::abs(d.more())))));
    compare_->setItem(
        i, 4,
        number_item(d.a > 0 ? fmt::format("{:+.1f}", 100 * static_cast<double>(d.more()) / static_cast<double>(d.a))
                            : "new"));
    compare_->item(i, 3)->setForeground(colour_of_change(d.more() > 0 ? 1 : -1));
  }
  compare_->resizeColumnsToContents();
  panel_->setCurrentWidget(compare_);
  PredictionError e = prediction_error(a, b);
  e.engine = replayed_engine_error(scenes_[0]->document, scenes_[1]->document, matching_).value_or(e.engine);
  say(fmt::format("{} against {}: {} of {} events matched; step {:+.1f} %, cost error {:.1f} %, engine error {:+.1f} %",
                  a.title, b.title, matching_.matched, a.events(), 100 * e.step, 100 * e.cost, 100 * e.engine));
}

void MainWindow::show_critical_path(bool shown) {
  critical_action_->setChecked(shown);
  const auto s = scene(0);
  if (!shown || !s || !s->document.simulated() || first_->scene() != s.get()) return first_->set_path({});
  if (critical_.path.empty()) critical_ = critical_path_of(step_timeline(s->document));
  first_->set_path(critical_.path);
  const auto& t = s->timeline();
  std::array<Picoseconds, kKinds> by_kind{};
  for (const EventId e : critical_.path) by_kind[static_cast<std::size_t>(t.kind(e))] += t.ends[e] - t.begins[e];
  Details d;
  for (int k = 0; k < kKinds; ++k) {
    if (by_kind[static_cast<std::size_t>(k)] > 0)
      d.emplace_back(name_of(static_cast<Kind>(k)), time_text(seconds(by_kind[static_cast<std::size_t>(k)])));
  }
  d.emplace_back("step", time_text(seconds(t.end)));
  details_->setHtml(
      details_html(fmt::format("Critical path: {} tasks", critical_.path.size()), d) +
      "<p>Click an event for its slack: how much longer it could take without the step taking longer.</p>");
}

}  // namespace orrery
