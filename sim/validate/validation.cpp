#include "sim/validate/validation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/print/table.h"
#include "sim/report/report_text.h"
#include "sim/validate/replay.h"

namespace orrery {
namespace {

// The error of the predicted peak memory (predicted / measured - 1) of the rank on which it is largest.
double memory_error(const MemoryReport& predicted, const MemoryReport& measured) {
  double worst = 0;
  for (std::size_t r = 0; r < predicted.ranks.size() && r < measured.ranks.size(); ++r) {
    const double e = relative_error(static_cast<double>(predicted.ranks[r].memory.peak),
                                    static_cast<double>(measured.ranks[r].memory.peak));
    if (std::abs(e) > std::abs(worst)) worst = e;
  }
  return worst;
}

double spread_of(std::vector<Picoseconds> times) {
  if (times.size() > 1) times.erase(times.begin());
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return static_cast<double>(times[n * 3 / 4] - times[n / 4]) / static_cast<double>(times[n / 2]);
}

// The median time of the steps in which no task was timed (which slows a step), on the rank where that is longest.
Seconds unmarked_step(std::span<const RankRun> runs) {
  Seconds longest = 0;
  for (const RankRun& run : runs) {
    std::vector<Picoseconds> steps = run.unmarked;
    if (steps.empty()) continue;
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    longest = std::max(longest, seconds(*middle));
  }
  return longest;
}

std::string off_by(double share) { return fmt::format("{:+.1f} %", 100 * share); }

double median_of(std::vector<double> values) {
  for (double& v : values) v = std::abs(v);
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

double worst_of(const std::vector<double>& values) {
  double worst = 0;
  for (const double v : values) worst = std::max(worst, std::abs(v));
  return worst;
}

constexpr std::size_t kKindsShown = 12;

}  // namespace

std::vector<KindError> kind_errors(const Prediction& p, const Trace& measured) {
  std::map<std::string, KindError> kinds;
  for (TaskId t = 0; t < p.plan.task_count(); ++t) {
    const Op& op = p.plan.op_of(t);
    KindError& k = kinds[moves(op) ? transfer_kind(op) : shape_of(op.work, p.plan.element_bytes).kind];
    ++k.count;
    k.predicted += seconds(p.trace.spans[t].ended - p.trace.spans[t].matched);
    k.measured += seconds(measured.spans[t].ended - measured.spans[t].matched);
  }
  std::vector<KindError> list;
  for (auto& [name, k] : kinds) {
    k.kind = name;
    list.push_back(k);
  }
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.measured > b.measured; });
  return list;
}

double cost_error(const std::vector<KindError>& kinds) {
  double off = 0, all = 0;
  for (const KindError& k : kinds) {
    off += std::abs(k.predicted - k.measured);
    all += k.measured;
  }
  return all > 0 ? off / all : 0;
}

Validation validate(const Spec& spec, const Prediction& p, std::span<const RankRun> runs, bool on_gpus) {
  Validation v;
  const std::vector<Picoseconds> times = step_times(runs);
  const Trace trace = measured_trace(p.plan, runs, median_step(times));
  v.name = spec.model.name;
  v.predicted = p.report;
  v.measured = measured_report(spec, p.plan, runs, trace, on_gpus);
  v.kinds = kind_errors(p, trace);
  v.cost_error = cost_error(v.kinds);
  v.replayed = seconds(period_of(p.plan, replay(p.plan, trace)).length());
  v.unmarked = unmarked_step(runs);
  v.spread = spread_of(times);
  v.step_error = relative_error(v.predicted.step_time_s, v.measured.step_time_s);
  v.engine_error = relative_error(v.replayed, v.measured.step_time_s);
  v.memory_error = memory_error(v.predicted.memory, v.measured.memory);
  return v;
}

std::vector<Section> validation_sections(const Validation& v) {
  Table t;
  t.columns = {{v.name, "", Align::left}, {"predicted"}, {"measured"}, {"error"}, {"", "", Align::left}};
  const Report &p = v.predicted, &m = v.measured;
  t.rows.push_back({"step", time_text(p.step_time_s), time_text(m.step_time_s), off_by(v.step_error),
                    fmt::format("the run's own spread {:.1f} %", 100 * v.spread)});
  if (v.unmarked > 0) t.rows.push_back({"step without timed tasks", "", time_text(v.unmarked), "", ""});
  t.rows.push_back({"engine", time_text(v.replayed), time_text(m.step_time_s), off_by(v.engine_error),
                    "measured durations played again"});
  t.rows.push_back({"bubble", percent_text(p.bubble_fraction), percent_text(m.bubble_fraction), ""});
  t.rows.push_back({"exposed communication", percent_text(exposed_share(p)), percent_text(exposed_share(m)), ""});
  t.rows.push_back({"peak memory", memory_text(static_cast<double>(p.memory.peak)),
                    memory_text(static_cast<double>(m.memory.peak)), off_by(v.memory_error)});
  Table k;
  k.columns = {{"kind of op", "", Align::left}, {"tasks"}, {"predicted"}, {"measured"}, {"error"}};
  for (std::size_t i = 0; i < std::min(kKindsShown, v.kinds.size()); ++i) {
    const KindError& e = v.kinds[i];
    k.rows.push_back(
        {e.kind, fmt::format("{}", e.count), time_text(e.predicted), time_text(e.measured), off_by(e.error())});
  }
  return {{v.name, {}, t, {}}, {"", {}, k, {fmt::format("all kinds, without sign: {:.1f} %", 100 * v.cost_error)}}};
}

std::string validation_text(const Validation& v, const Style& style) {
  const std::vector<Section> sections = validation_sections(v);
  return print(sections[0].table, "", style.columns) + '\n' + text_of(sections[1], style);
}

Section validation_section(const std::vector<Validation>& all) {
  Table t;
  t.columns = {{"spec", "", Align::left}, {"predicted"},  {"measured"}, {"spread", "%"}, {"step", "%"}, {"ops", "%"},
               {"engine", "%"},           {"memory", "%"}};
  std::vector<double> step, ops, engine, memory, spread;
  const auto percent = [](double x) { return fmt::format("{:+.1f}", 100 * x); };
  for (const Validation& v : all) {
    if (!v.failure.empty()) {
      t.rows.push_back({v.name, "failed"});
      continue;
    }
    t.rows.push_back({v.name, time_text(v.predicted.step_time_s), time_text(v.measured.step_time_s),
                      fmt::format("{:.1f}", 100 * v.spread), percent(v.step_error),
                      fmt::format("{:.1f}", 100 * v.cost_error), percent(v.engine_error), percent(v.memory_error)});
    step.push_back(v.step_error);
    ops.push_back(v.cost_error);
    engine.push_back(v.engine_error);
    memory.push_back(v.memory_error);
    spread.push_back(v.spread);
  }
  const auto row = [&](const std::string& name, double (*f)(const std::vector<double>&)) {
    const auto text = [&](const std::vector<double>& values) { return fmt::format("{:.1f}", 100 * f(values)); };
    t.rows.push_back({name, "", "", text(spread), text(step), text(ops), text(engine), text(memory)});
  };
  row("median", [](const std::vector<double>& x) { return median_of(x); });
  row("worst", [](const std::vector<double>& x) { return worst_of(x); });
  Section section{.title = "predicted against measured", .table = t};
  for (const Validation& v : all) {
    if (!v.failure.empty()) section.after.push_back(failure_line(v.name, v.failure));
  }
  return section;
}

std::string validation_table(const std::vector<Validation>& all, const Style& style) {
  return text_of(validation_section(all), style);
}

std::string failure_line(const std::string& name, const std::string& failure) {
  return fmt::format("{} failed: {}", name, failure);
}

std::string to_json(const std::vector<Validation>& all) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array();
  for (const Validation& v : all) {
    if (!v.failure.empty()) {
      list.push_back({{"name", v.name}, {"error", v.failure}});
      continue;
    }
    ordered_json kinds = ordered_json::array();
    for (const KindError& k : v.kinds) {
      kinds.push_back({{"kind", k.kind},
                       {"count", k.count},
                       {"predicted_s", k.predicted},
                       {"measured_s", k.measured},
                       {"error", k.error()}});
    }
    list.push_back({{"name", v.name},
                    {"step_error", v.step_error},
                    {"engine_error", v.engine_error},
                    {"cost_error", v.cost_error},
                    {"memory_error", v.memory_error},
                    {"spread", v.spread},
                    {"replayed_s", v.replayed},
                    {"unmarked_step_s", v.unmarked},
                    {"kinds", kinds},
                    {"predicted", ordered_json::parse(to_json(v.predicted))},
                    {"measured", ordered_json::parse(to_json(v.measured))}});
  }
  return ordered_json{{"schema", "orrery.validation/1"}, {"specs", list}}.dump(2) + '\n';
}

}  // namespace orrery
