#include "sim/validate/compose.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/trace/warm_up.h"
#include "sim/engine/simulate.h"
#include "sim/print/table.h"
#include "sim/report/report_text.h"
#include "sim/runs/measured.h"
#include "sim/validate/validation.h"

namespace orrery {
namespace {

bool computes(const Plan& plan, TaskId t) { return !moves(plan.op_of(t)); }

template <class T>
T median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? T{} : values[(values.size() - 1) / 2];
}

// The median measured duration of a task, over all steps except those that warm up.
Picoseconds measured_duration(const RankRun& run, std::size_t task) {
  std::vector<Picoseconds> durations;
  for (std::size_t k = warm_up(run.steps.size()); k < run.steps.size(); ++k) {
    const MeasuredSpan& s = run.steps[k].spans[task];
    durations.push_back(s.ended - s.entered);
  }
  return median(std::move(durations));
}

template <class F>
std::vector<double> errors_of(const std::vector<Composed>& all, const F& f) {
  std::vector<double> errors;
  for (const Composed& c : all) {
    for (const ComposedRank& r : c.ranks) errors.push_back(std::abs(f(r)));
  }
  return errors;
}

// The predicted compute time of a rank that runs alone, so that no transfer slows its compute.
Seconds predicted_compute(const Prediction& p, std::uint32_t slot) {
  Picoseconds sum = 0;
  for (TaskId t = p.plan.classes[slot].begin; t < p.plan.classes[slot].end; ++t) {
    if (computes(p.plan, t)) sum += p.costs.timing.of(slot, p.plan.tasks[t].op).duration;
  }
  return seconds(sum);
}

Seconds measured_compute(const Plan& plan, const RankClass& slot, const RankRun& run) {
  Picoseconds sum = 0;
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    if (computes(plan, t)) sum += measured_duration(run, t - slot.begin);
  }
  return seconds(sum);
}

}  // namespace

double ComposedRank::memory_error() const {
  return relative_error(static_cast<double>(predicted_peak), static_cast<double>(measured_peak));
}

Trace compose(const Prediction& predicted, std::span<const RankRun> alone) {
  Plan plan = predicted.plan;  // a copy in which each task has its own op, so that each can have its own duration
  Timing timing = predicted.costs.timing;
  timing.row_of_slot.assign(plan.classes.size(), 0);
  timing.rows.assign(1, {});
  std::vector<Op> ops;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const std::uint32_t slot = plan.slot_of(t);
    OpTiming time = predicted.costs.timing.of(slot, plan.tasks[t].op);
    if (computes(plan, t)) time.duration = measured_duration(alone[slot], t - plan.classes[slot].begin);
    timing.rows[0].push_back(time);
    ops.push_back(plan.op_of(t));
    plan.tasks[t].op = t;
  }
  plan.ops = std::move(ops);
  Trace trace = simulate(plan, timing);
  trace.source = "composed";
  return trace;
}

Composed compare_composed(const Spec& spec, const Prediction& p, std::span<const RankRun> alone) {
  Composed c;
  c.name = spec.model.name;
  const Trace trace = compose(p, alone);
  c.report = composed_report(spec, p.plan, alone, trace, p.costs.notes);
  c.predicted_step = p.report.step_time_s;
  c.composed_step = c.report.step_time_s;
  for (std::uint32_t s = 0; s < p.plan.classes.size(); ++s) {
    c.ranks.push_back({p.plan.classes[s].name, predicted_compute(p, s),
                       measured_compute(p.plan, p.plan.classes[s], alone[s]), p.report.memory.ranks[s].memory.peak,
                       alone[s].memory.peak});
  }
  return c;
}

double worst_compute_error(const Composed& c) {
  double worst = 0;
  for (const ComposedRank& r : c.ranks) worst = std::max(worst, std::abs(r.compute_error()));
  return worst;
}

Section composed_section(const std::vector<Composed>& all) {
  Table t;
  t.columns = {{"spec", "", Align::left},
               {"rank", "", Align::left},
               {"compute predicted"},
               {"measured"},
               {"error", "%"},
               {"peak predicted"},
               {"measured"},
               {"error", "%"}};
  const auto percent = [](double x) { return fmt::format("{:+.1f}", 100 * x); };
  for (const Composed& c : all) {
    if (!c.failure.empty()) t.rows.push_back({c.name, "failed"});
    for (const ComposedRank& r : c.ranks)
      t.rows.push_back({c.name, r.name, time_text(r.predicted), time_text(r.measured), percent(r.compute_error()),
                        memory_text(static_cast<double>(r.predicted_peak)),
                        memory_text(static_cast<double>(r.measured_peak)), percent(r.memory_error())});
  }
  const std::vector<double> compute = errors_of(all, [](const ComposedRank& r) { return r.compute_error(); });
  const std::vector<double> memory = errors_of(all, [](const ComposedRank& r) { return r.memory_error(); });
  const auto plain = [](double x) { return fmt::format("{:.1f}", 100 * x); };
  const auto largest = [](const std::vector<double>& x) {
    return x.empty() ? 0 : *std::max_element(x.begin(), x.end());
  };
  t.rows.push_back({"median", "", "", "", plain(median(compute)), "", "", plain(median(memory))});
  t.rows.push_back({"worst", "", "", "", plain(largest(compute)), "", "", plain(largest(memory))});
  Section section{.title = "composed: compute and memory measured, communication modelled", .table = t};
  for (const Composed& c : all)
    section.after.push_back(c.failure.empty()
                                ? fmt::format("{}: step predicted {}, composed {} (not a measured step)", c.name,
                                              time_text(c.predicted_step), time_text(c.composed_step))
                                : failure_line(c.name, c.failure));
  return section;
}

std::string composed_table(const std::vector<Composed>& all, const Style& style) {
  return text_of(composed_section(all), style);
}

std::string to_json(const std::vector<Composed>& all) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array();
  for (const Composed& c : all) {
    if (!c.failure.empty()) {
      list.push_back({{"name", c.name}, {"error", c.failure}});
      continue;
    }
    ordered_json ranks = ordered_json::array();
    for (const ComposedRank& r : c.ranks)
      ranks.push_back({{"name", r.name},
                       {"compute_predicted_s", r.predicted},
                       {"compute_measured_s", r.measured},
                       {"compute_error", r.compute_error()},
                       {"peak_predicted_bytes", r.predicted_peak},
                       {"peak_measured_bytes", r.measured_peak},
                       {"memory_error", r.memory_error()}});
    list.push_back({{"name", c.name},
                    {"source", "composed"},
                    {"step_predicted_s", c.predicted_step},
                    {"step_composed_s", c.composed_step},
                    {"ranks", ranks},
                    {"report", ordered_json::parse(to_json(c.report))}});
  }
  return ordered_json{{"schema", "orrery.composed/1"}, {"specs", list}}.dump(2) + '\n';
}

}  // namespace orrery
