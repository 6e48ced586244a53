#include "viz/window/cards.h"

#include <QFileInfo>
#include <QSettings>
#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "models/base/names.h"
#include "sim/advice/advice.h"
#include "sim/generate/generate.h"
#include "sim/generate/generated_steps.h"
#include "sim/print/text.h"
#include "sim/report/report_parts.h"
#include "viz/timeline/shown_name.h"
#include "viz/timeline/statistics.h"
#include "viz/timeline/steps.h"
#include "viz/window/palette.h"

namespace orrery {
namespace {

constexpr double kSmallestPart = 0.005;  // smallest share of the step time that the card lists
// greatest number of tasks of a step whose card also lists changes of the machine, as each change must be simulated
constexpr std::uint64_t kFewTasks = 100'000;
constexpr std::size_t kMostLines = 6;                     // greatest number of ops, or of ranks, that a card lists
constexpr std::size_t kLongestName = 37, kLastPart = 18;  // bytes of an op's name, and of its end, that a card shows
constexpr int kMostRecent = 8;                            // greatest number of files that are listed as opened before

QString html_of(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped(); }

QString figure_row(const std::string& name, const std::string& figure, const std::string& more) {
  return QString("<tr><td>%1</td><td align=right><b>&nbsp;%2&nbsp;</b></td><td>%3</td></tr>")
      .arg(html_of(name), html_of(figure), html_of(more));
}

// Returns a table row with a name, a figure and a bar whose length shows a share.
QString bar_row(const std::string& name, const std::string& figure, double share, const QColor& colour) {
  constexpr int kLongest = 160;  // length in pixels of the bar that shows a share of 1 (100 %)
  const int width = std::max(1, static_cast<int>(share * kLongest));
  return QString(
             "<tr><td>%1</td><td align=right>&nbsp;%2&nbsp;</td><td><table cellspacing=0 cellpadding=0><tr>"
             "<td width=%3 bgcolor=\"%4\">&nbsp;</td></tr></table></td></tr>")
      .arg(html_of(name), html_of(figure), QString::number(width), colour.name());
}

QString section(const QString& title, const QString& rows) {
  return rows.isEmpty() ? QString() : "<h4>" + title + "</h4><table cellspacing=0 cellpadding=1>" + rows + "</table>";
}

// Returns the colour in which the card shows a share of the step time: that of the corresponding kind of event.
QColor colour_of_time(TimeKind kind) {
  static const std::map<TimeKind, Kind> kKindOf = {
      {TimeKind::compute, Kind::forward},       {TimeKind::recompute, Kind::recompute},
      {TimeKind::exposed_tensor, Kind::tensor}, {TimeKind::exposed_context, Kind::context},
      {TimeKind::exposed_expert, Kind::expert}, {TimeKind::exposed_pipeline, Kind::pipeline},
      {TimeKind::exposed_data, Kind::data},     {TimeKind::offload, Kind::copy},
      {TimeKind::optimizer, Kind::optimizer}};
  const auto found = kKindOf.find(kind);
  return colour_of(found == kKindOf.end() ? Kind::wait : found->second);
}

QString figures_of(const Report& r) {
  const Scale step = time_scale(r.step_time_s);
  const bool interval = r.step_time_low_s < r.step_time_high_s;
  QString rows = figure_row("step time", time_text(r.step_time_s),
                            interval ? fmt::format("{} to {} in 8 of 10 runs", number(r.step_time_low_s, step),
                                                   with_unit(r.step_time_high_s, step))
                                     : "");
  rows += figure_row("tokens/s", grouped(r.tokens_per_s), grouped(r.tokens_per_s_per_gpu) + " per GPU");
  if (r.mfu > 0)
    rows += figure_row("MFU", percent_text(r.mfu), fmt::format("{:.0f} TFLOP/s per GPU", r.model_tflops_per_gpu));
  return rows + figure_row("memory", memory_text(static_cast<double>(r.memory.peak_device)), fit_text(r));
}

QString times_of(const Report& r) {
  QString rows;
  const Scale scale = time_scale(r.step_time_s);
  for (int k = 0; k < kTimeKinds; ++k) {
    const double share = r.step_time_s > 0 ? r.time_s[k] / r.step_time_s : 0;
    const auto kind = static_cast<TimeKind>(k);
    if (share < kSmallestPart) continue;
    std::string name(name_of(kind));
    std::replace(name.begin(), name.end(), '_', ' ');
    rows += bar_row(name, fmt::format("{}  {:.0f} %", with_unit(r.time_s[k], scale), 100 * share), share,
                    colour_of_time(kind));
  }
  return section("Where the time goes", rows);
}

// Returns a list of the changes of the machine or the batch that would save the most time per token.
QString levers_of(const Step& step) {
  const std::vector<Sensitivity> all = sensitivities(step.spec, step.prediction.profile);
  QString rows;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, all.size()); ++i) {
    if (all[i].faster > 0) rows += "<tr><td>" + html_of(lever_text(all[i])) + "</td></tr>";
  }
  return section("What would help most", rows);
}

// Returns how the step's time is split between two models, with what each waits for.
QString models_of(const Report& r) {
  QString rows, limits;
  for (std::size_t i = 0; i < r.models.size(); ++i) {
    const ModelTime& m = r.models[i];
    const double time = std::accumulate(m.time_s.begin(), m.time_s.end(), 0.0);
    rows += bar_row(m.name, fmt::format("{}  {:.0f} %", time_text(time), 100 * time / r.step_time_s),
                    time / r.step_time_s, colour_of_phase(i));
    limits += "<br>" + html_of(fmt::format("{}: {}", m.name, m.limit));
  }
  return rows.isEmpty() ? QString() : section("Whose time it is", rows) + "<p>in shares of the step" + limits + "</p>";
}

// Returns the figures of a generated text, and what its prompts and its tokens wait for.
QString generation_summary(const Step& step, const std::atomic<bool>& unwanted) {
  const GenerationReport g = predict_batch(step.spec, step.prediction.profile, &unwanted);
  QString rows = figure_row("first token", time_text(g.first_token_s),
                            fmt::format("after prompts of {} tokens", step.spec.generation->input));
  if (g.token_s > 0)
    rows += figure_row("each token", time_text(g.token_s),
                       fmt::format("{} tokens/s a sequence", grouped(1 / g.token_s)) +
                           (g.bandwidth_share > 0 ? ", " + percent_text(g.bandwidth_share) + " of the memory bandwidth"
                                                  : std::string()));
  rows += figure_row("all", time_text(g.total_s), grouped(g.tokens_per_s) + " tokens/s");
  rows += figure_row("memory", memory_text(static_cast<double>(g.memory.sum())), fit_text(g.memory));
  QString html = "<table cellspacing=0 cellpadding=1>" + rows + "</table>";
  const double decode = std::max(0.0, g.total_s - g.first_token_s);
  html += section("Phases",
                  bar_row("prefill", time_text(g.first_token_s), g.first_token_s / g.total_s, colour_of_phase(0)) +
                      bar_row("decode", time_text(decode), decode / g.total_s, colour_of_phase(1)));
  const std::string cut = cut_remark(step.spec, shown_passes(step.spec));
  return html + "<p>limited by<br>" + html_of(limit_text(g)).replace("; ", "<br>") + "</p>" +
         (cut.empty() ? QString() : "<p>" + html_of(cut) + "</p>");
}

bool simulates_more(const Step& step) {
  return step.spec.generation || step.prediction.report.simulation.tasks <= kFewTasks;
}

QString step_summary(const Step& step, const QString& more) {
  const Report& r = step.prediction.report;
  QString html =
      "<h3>" + html_of(step.spec.model.name) + "</h3><p>" +
      html_of(fmt::format("{} x {}; {}", step.spec.gpus, step.spec.cluster.gpu.name, strategy_text(step.spec))) +
      "</p>";
  const QString rest = more.isEmpty() && simulates_more(step) ? "<p>more is being simulated</p>" : more;
  if (step.spec.generation) return html + rest;
  html += "<table cellspacing=0 cellpadding=1>" + figures_of(r) + "</table>";
  html += times_of(r);
  html += models_of(r);
  if (!r.limit.empty()) html += "<p>limited by " + html_of(r.limit) + "</p>";
  return html + rest;
}

// Returns a table of the ranks, with the share of the trace's time in which each computes; ranks that never compute are
// left out.
QString ranks_of(const Scene& scene) {
  const Timeline& t = scene.timeline();
  std::vector<AreaRow> sums = area_statistics(t, scene.prepared->areas, 0, t.end);
  std::erase_if(sums, [](const AreaRow& row) { return row.sums.compute == 0; });
  QString rows;
  for (std::size_t i = 0; i < std::min(kMostLines, sums.size()); ++i) {
    const double share = static_cast<double>(sums[i].sums.compute) / static_cast<double>(t.end);
    rows += bar_row(t.processes[sums[i].process].name, fmt::format("{:.0f} %", 100 * share), share,
                    colour_of(Kind::forward));
  }
  if (sums.size() > kMostLines)
    rows += QString("<tr><td>and %1 more</td></tr>").arg(static_cast<int>(sums.size() - kMostLines));
  return section("Time in which each rank computes", rows);
}

QString longest_ops_of(const Timeline& t) {
  std::vector<Picoseconds> by_label(t.labels.size(), 0);
  const bool hosts = is_of_hosts(t);
  for (EventId e = 0; e < t.events(); ++e) {
    const Kind kind = t.kind(e);
    if ((hosts || kind != Kind::host) && kind != Kind::wait) by_label[t.label[e]] += t.ends[e] - t.begins[e];
  }
  Picoseconds all = 0;
  for (const Picoseconds time : by_label) all += time;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < by_label.size(); ++i) {
    if (by_label[i] > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return by_label[a] > by_label[b]; });
  QString rows;
  for (std::size_t i = 0; i < std::min(kMostLines, order.size()); ++i) {
    const double share = static_cast<double>(by_label[order[i]]) / static_cast<double>(all);
    std::string name = shown_name(t.labels[order[i]]);
    // The ends of kernels' names tell them apart.
    if (name.size() > kLongestName && is_printable(name.substr(name.size() - kLastPart)))
      name = fmt::format("{}...{}", first_characters(name, kLongestName - kLastPart),
                         name.substr(name.size() - kLastPart));
    rows += bar_row(name, fmt::format("{:.0f} %", 100 * share), share, colour_of(t.labels[order[i]].kind));
  }
  return section("Ops that take the most time", rows);
}

}  // namespace

std::string lanes_text(const Timeline& t) {
  return fmt::format("{} lane{}", t.tracks.size(), t.tracks.size() == 1 ? "" : "s");
}

bool has_more(const Scene& scene) { return scene.document.simulated() && simulates_more(*scene.document.step); }

QString summary_more(const Scene& scene, const std::atomic<bool>& unwanted) {
  const Step& step = *scene.document.step;
  const QString more = step.spec.generation ? generation_summary(step, unwanted) : levers_of(step);
  return more.isEmpty() ? QString("<p></p>") : more;
}

QString summary_card(const Scene& scene, const QString& more) {
  if (scene.document.simulated()) return step_summary(*scene.document.step, more);
  const Timeline& t = scene.timeline();
  QString html = "<h3>" + html_of(scene.document.name) + "</h3><table cellspacing=0 cellpadding=1>";
  const Launches none;
  if (const Steps steps(t, none); steps.marked())
    html += figure_row("step", time_text(seconds(steps.mean_time())),
                       steps.count() > 1 ? fmt::format("mean of {}", steps.count()) : "");
  html += figure_row("length", time_text(seconds(t.end)), t.source);
  html += figure_row("events", grouped(static_cast<double>(t.events())), "on " + lanes_text(t));
  return html + "</table>" + ranks_of(scene) + longest_ops_of(t);
}

QString welcome_card(const QStringList& recent) {
  QString html =
      "<h3>Nothing is open</h3><p><a href=\"open:\">Open</a> a spec (YAML, config.json), a trace (Chrome JSON, Kineto, "
      "gzipped or not) or a report, or drop it here.</p>";
  if (!recent.isEmpty()) {
    html += "<h4>Opened before</h4><p>";
    for (const QString& path : recent)
      html += "<a href=\"recent:" + path.toHtmlEscaped() + "\">" + QFileInfo(path).fileName().toHtmlEscaped() +
              "</a> &nbsp; " + path.toHtmlEscaped() + "<br>";
    html += "</p>";
  }
  return html + "<p>Press ? for all keys.</p>";
}

QString keys_card() {
  struct Row {
    const char *keys, *what;
  };
  static constexpr Row kRows[] = {{"W, S", "zoom in, out"},
                                  {"Ctrl + wheel", "zoom at the cursor"},
                                  {"A, D", "go left, right; Shift + drag too"},
                                  {"0", "show everything"},
                                  {"click", "details of a bar, or what memory holds"},
                                  {"F", "show the clicked bar large"},
                                  {". and ,", "next and previous event of its lane"},
                                  {"drag", "sums of an area, by rank"},
                                  {"Esc", "forget what is clicked or dragged"},
                                  {"strip at the top", "click or drag: go to that time"},
                                  {"click a name", "fold a rank, pin a lane"},
                                  {"N", "a note"},
                                  {"Ctrl + K", "any command, by its letters"},
                                  {"I, X", "only, or without, the clicked op; right click: ranks, times"},
                                  {"Ctrl + Z, Ctrl + Shift + Z", "undo a filter, do it again"},
                                  {"Ctrl + F, Ctrl + G", "find, find the next"},
                                  {"Ctrl + P", "pin lanes by a pattern"},
                                  {"L", "how full links are over a simulated step"},
                                  {"T", "the first step beside a steady one"},
                                  {"Ctrl + O, Ctrl + S, Ctrl + E", "open, save the view, export"},
                                  {"F1", "the summary again"},
                                  {"?", "this list"}};
  QString rows;
  for (const Row& r : kRows) rows += QString("<tr><td><b>%1</b>&nbsp;&nbsp;</td><td>%2</td></tr>").arg(r.keys, r.what);
  return "<h3>Keys</h3><table>" + rows + "</table>";
}

QStringList recent_files() {
  QStringList files = QSettings("orrery", "orrery-view").value("recent").toStringList();
  files.removeIf([](const QString& path) { return !QFileInfo::exists(path); });
  return files;
}

void add_recent_file(const QString& path) {
  QSettings settings("orrery", "orrery-view");
  QStringList files = settings.value("recent").toStringList();
  const QString whole = QFileInfo(path).absoluteFilePath();
  files.removeAll(whole);
  files.prepend(whole);
  while (files.size() > kMostRecent) files.removeLast();
  settings.setValue("recent", files);
}

}  // namespace orrery
