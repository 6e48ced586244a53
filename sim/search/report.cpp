#include "sim/search/report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"
#include "sim/report/difference.h"
#include "sim/report/report_text.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

double above(const Report& best, const Report& other) { return other.step_time_s / best.step_time_s - 1; }

// The assumption on which the proof that a strategy is the best rests, in addition to the lower bounds; "" where there
// is none.
std::string_view assumption(const Space& space) {
  return space.leaves_device() ? "copies to the host and back by themselves make no step shorter" : "";
}

}  // namespace

std::string search_title(const Space& space) {
  const Spec& spec = space.base();
  return fmt::format("{} on {} x {}, {} sequences of {} tokens a step", spec.model.name,
                     grouped(static_cast<double>(space.gpus())), spec.cluster.gpu.name,
                     grouped(static_cast<double>(spec.strategy.global_batch)), spec.sequence);
}

std::string counts_line(const SearchResult& r) {
  const SearchCounts& c = r.counts;
  if (c.points < c.simulated)
    return fmt::format("stopped before all strategies were counted; {} simulated ({} did not fit, {} refused)",
                       c.simulated, c.did_not_fit, c.refused);
  return fmt::format(
      "{} strategies: {} {} ({} bounded one by one, the others in groups; {} of those have no room);"
      " {} simulated ({} given up as slower, {} did not fit, {} refused)",
      grouped(static_cast<double>(c.points)), grouped(static_cast<double>(c.points - c.simulated)),
      r.proven ? "left out by bounds" : "not simulated", grouped(static_cast<double>(c.bounded)),
      grouped(static_cast<double>(c.without_room)), c.simulated, c.late, c.did_not_fit, c.refused);
}

std::string nothing_line(const SearchResult& r) {
  return r.proven ? fmt::format("nothing fits: the leanest strategy needs at least {} per GPU",
                                memory_text(static_cast<double>(r.least_memory)))
                  : "interrupted before anything was found that fits";
}

std::vector<std::string> proof_lines(const Space& space, const SearchResult& r) {
  std::vector<std::string> lines;
  const std::string_view assumed = assumption(space);
  const std::string provided = assumed.empty() ? "" : fmt::format(", if {}", assumed);
  if (!r.contradiction.empty())
    lines.push_back(fmt::format("not proven: a lower bound is above what was simulated ({}); please report this spec",
                                r.contradiction));
  else if (!r.proven)
    lines.push_back(fmt::format(
        "interrupted: the best so far, not proven; no strategy can be more than {:.1f} % better", 100 * r.gap));
  else if (r.gap == 0)
    lines.push_back(fmt::format(
        "the best is proven: every strategy that was not simulated has a bound that is no better{}", provided));
  else
    lines.push_back(fmt::format(
        "proven within {:.4g} %: no strategy that was not simulated can be that much better than the best{}",
        100 * r.gap, provided));
  const std::vector<std::string_view> others = space.left_out();
  if (!others.empty()) lines.push_back(fmt::format("not among them: {}", fmt::join(others, ", ")));
  return lines;
}

Table strategies_table(const Space& space, const SearchResult& r) {
  double time = 0, memory = 0;
  for (const Found& f : r.best) {
    time = std::max(time, f.report.step_time_s);
    memory = std::max(memory, static_cast<double>(f.report.memory.peak_device));
  }
  const Scale seconds_scale = time_scale(time), bytes = memory_scale(memory);
  Table t{{{"strategy", "", Align::left},
           {"step", std::string(seconds_scale.unit)},
           {"time", "/ best"},
           {"tokens/s", "per GPU"},
           {"MFU", "%"},
           {"bubble", "%"},
           {"exposed", "comm %"},
           {"memory", std::string(bytes.unit)},
           {"bound", "/ step"}},
          {}};
  const bool vary = std::ranges::any_of(r.best, [](const Found& f) { return f.report.variation.has_value(); });
  if (vary) t.columns.push_back({"95 % below", std::string(seconds_scale.unit)});
  for (const Found& f : r.best) {
    const Report& x = f.report;
    t.rows.push_back({space.text_of(f.point), number(x.step_time_s, seconds_scale),
                      fmt::format("{:.3f}", x.step_time_s / r.best.front().report.step_time_s),
                      grouped(x.tokens_per_s_per_gpu), fmt::format("{:.1f}", 100 * x.mfu),
                      fmt::format("{:.1f}", 100 * x.bubble_fraction), fmt::format("{:.1f}", 100 * exposed_share(x)),
                      number(static_cast<double>(x.memory.peak_device), bytes),
                      fmt::format("{:.3f}", seconds(f.bound.time) / x.step_time_s)});
    if (vary) t.rows.back().push_back(x.variation ? number(x.variation->p95, seconds_scale) : "-");
  }
  return t;
}

std::vector<std::string> why_lines(const Space& space, const SearchResult& r) {
  std::vector<std::string> lines;
  for (std::size_t i = 1; i < r.best.size(); ++i) {
    std::vector<std::string> parts;
    for (const Loss& loss : losses(r.best[0].report, r.best[i].report)) parts.push_back(text_of(loss));
    lines.push_back(fmt::format("{:+.1f} %  {}: {}", 100 * above(r.best[0].report, r.best[i].report),
                                space.text_of(r.best[i].point),
                                parts.empty() ? "no single cause" : fmt::format("{}", fmt::join(parts, "; "))));
  }
  return lines;
}

std::string search_text(const Space& space, const SearchResult& r, const Style& style) {
  std::string text = heading(search_title(space), style) + '\n';
  const auto add = [&](const std::string& line) { text += fmt::format("  {}\n", line); };
  add(counts_line(r));
  if (r.best.empty()) {
    add(nothing_line(r));
    return text;
  }
  for (const std::string& line : proof_lines(space, r)) add(line);
  text += '\n' + print(strategies_table(space, r), "  ", style.columns);
  text += fmt::format("\n  limited by {}\n", r.best.front().report.limit);
  const std::vector<std::string> why = why_lines(space, r);
  if (!why.empty()) text += fmt::format("\n{}\n", heading("  why the others are slower", style));
  for (const std::string& line : why) add(line);
  return text;
}

std::string repeat_text(const Space& space, const Point& point, const std::string& profile) {
  std::string text = "orrery simulate SPEC";
  if (!profile.empty()) text += fmt::format(" --profile '{}'", profile);
  for (const std::string& option : space.overrides_of(point)) text += fmt::format(" --set '{}'", option);
  return text;
}

std::string search_json(const Space& space, const SearchResult& r) {
  const SearchCounts& c = r.counts;
  ordered_json j = {{"schema", "orrery.search/1"},
                    {"model", space.base().model.name},
                    {"gpus", space.gpus()},
                    {"proven", r.proven},
                    {"gap", r.gap},
                    {"assumed", assumption(space)},
                    {"points", c.points},
                    {"bounded", c.bounded},
                    {"pruned", c.points - std::min(c.points, c.simulated)},
                    {"without_room", c.without_room},
                    {"simulated", c.simulated},
                    {"did_not_fit", c.did_not_fit},
                    {"refused", c.refused},
                    {"left_out", space.left_out()},
                    {"strategies", ordered_json::array()}};
  for (const Found& f : r.best) {
    ordered_json row = {{"name", space.text_of(f.point)},
                        {"overrides", space.overrides_of(f.point)},
                        {"bound_s", seconds(f.bound.time)},
                        {"bound_bytes", f.bound.memory},
                        {"slower", above(r.best.front().report, f.report)},
                        {"losses", ordered_json::array()}};
    for (const Loss& loss : losses(r.best.front().report, f.report))
      row["losses"].push_back({{"kind", name_of(loss.kind)}, {"seconds", loss.seconds}, {"transfer", loss.transfer}});
    row["report"] = ordered_json::parse(to_json(f.report));
    row["report"]["simulation"].erase("wall_s");  // removes the wall-clock time, which differs from run to run
    j["strategies"].push_back(std::move(row));
  }
  return j.dump(2) + '\n';
}

std::string search_csv(const Space& space, const SearchResult& r) {
  std::string text = "gpus,strategy,step_time_s,tokens_per_s,mfu,bubble_fraction,peak_device_bytes,bound_s\n";
  for (const Found& f : r.best) {
    text += fmt::format("{},\"{}\",{},{},{},{},{},{}\n", space.gpus(), space.text_of(f.point), f.report.step_time_s,
                        f.report.tokens_per_s, f.report.mfu, f.report.bubble_fraction, f.report.memory.peak_device,
                        seconds(f.bound.time));
  }
  return text;
}

}  // namespace orrery
