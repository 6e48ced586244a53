// Prints the predictions of published steps: a line for each step, then a summary.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/print/table.h"
#include "sim/print/text.h"
#include "sim/published/predict.h"

namespace orrery {
namespace {

std::string signed_percent(double share) { return fmt::format("{:+.1f}", 100 * share); }
std::string gib(double bytes) { return fmt::format("{:.1f}", bytes / kGiB); }

struct Compared {
  std::string predicted, measured, error;
};

Compared compared(double predicted, const std::optional<double>& measured, std::string (*print)(double)) {
  if (!measured) return {print(predicted), "-", "-"};
  return {print(predicted), print(*measured), signed_percent(predicted / *measured - 1)};
}

std::string memory_verdict(const PublishedCase& c) {
  if (c.row.out_of_memory) return c.fits ? "out of memory, NOT called" : "out of memory, called";
  if (c.row.composed) return c.fits ? "" : "called out of memory; never ran as a whole";
  return c.fits ? "" : "called OUT OF MEMORY, but ran";
}

void add_rows(Table& t, const PublishedCase& c) {
  const auto add = [&](const std::string& name, double predicted, const std::optional<double>& measured, bool whole) {
    const Compared time = compared(predicted, measured, time_text);
    const Compared memory = whole ? compared(c.peak_memory_bytes, c.row.peak_memory_bytes, gib) : Compared{};
    const std::string verdict = memory_verdict(c);
    t.rows.push_back({name, time.predicted, time.measured, time.error, memory.predicted, memory.measured, memory.error,
                      verdict.empty() ? c.limit : verdict + "; " + c.limit});
  };
  if (c.row.forward_s) add(c.row.id + " forward", c.forward_s, c.row.forward_s, false);
  if (c.row.backward_s) add(c.row.id + " backward", c.backward_s, c.row.backward_s, false);
  if (c.row.step_time_s || c.row.out_of_memory || c.row.peak_memory_bytes)
    add(c.row.id, c.step_time_s, c.row.step_time_s, true);
}

Table rows_table(const std::vector<PublishedCase>& cases, bool doubtful) {
  Table t;
  t.columns = {{"row", "", Align::left}, {"step", "predicted"}, {"", "measured"}, {"error", "%"},
               {"memory", "predicted"},  {"GiB", "measured"},   {"error", "%"},   {"limited by", "", Align::left}};
  for (const PublishedCase& c : cases) {
    if (c.reason.empty() && c.row.doubtful.empty() != doubtful) add_rows(t, c);
  }
  return t;
}

Table unsupported_table(const std::vector<PublishedCase>& cases) {
  Table t;
  t.columns = {{"not supported", "", Align::left}, {"why", "", Align::left}};
  for (const PublishedCase& c : cases) {
    if (!c.reason.empty()) t.rows.push_back({c.row.id, c.reason});
  }
  return t;
}

Table summary_table(const std::string& title, const std::vector<ErrorSummary>& list, bool null_model) {
  Table t;
  t.columns = {{title, "", Align::left},
               {"rows", ""},
               {"bias", "%"},
               {"median", "%"},
               {"mean", "%"},
               {"p90", "%"},
               {"worst", "%"}};
  if (null_model) t.columns.push_back({"null model", "mean %"});
  for (const ErrorSummary& s : list) {
    t.rows.push_back({s.source, fmt::format("{}", s.rows), signed_percent(s.bias), percent_number(s.median),
                      percent_number(s.mean), percent_number(s.p90), percent_number(s.worst)});
    if (null_model) t.rows.back().push_back(percent_number(s.null_mean));
  }
  return t;
}

Table bubbles_table(const std::vector<PublishedCase>& cases) {
  Table t;
  t.columns = {{"bubble, without launches and transfers", "", Align::left},
               {"predicted", "%"},
               {"measured", "%"},
               {"difference", "points"}};
  for (const PublishedCase& c : cases) {
    if (!c.reason.empty() || !c.row.bubble_fraction) continue;
    t.rows.push_back({c.row.id, percent_number(c.bubble_fraction), percent_number(*c.row.bubble_fraction),
                      signed_percent(c.bubble_fraction - *c.row.bubble_fraction)});
  }
  return t;
}

Table regret_table(const std::vector<PublishedCase>& cases) {
  Table t;
  t.columns = {{"picking the fastest layout", "", Align::left},
               {"grids", ""},
               {"regret", "mean %"},
               {"", "worst %"},
               {"right", "%"}};
  for (const GridRegret& r : regrets(cases)) {
    t.rows.push_back({r.source, fmt::format("{}", r.grids), percent_number(r.mean), percent_number(r.worst),
                      percent_number(r.right)});
  }
  return t;
}

// Lines on how often it was predicted rightly whether a step fits in memory: for published steps that ran out of
// memory, and for those that did not.
std::vector<std::string> fit_lines(const std::vector<PublishedCase>& cases) {
  int called = 0, missed = 0, wrong = 0, ran = 0;
  for (const PublishedCase& c : cases) {
    if (!c.reason.empty()) continue;
    if (c.row.out_of_memory) {
      ++(c.fits ? missed : called);
    } else if (!c.row.composed) {
      ++ran;
      wrong += c.fits ? 0 : 1;
    }
  }
  const Coverage in = coverage(cases);
  return {fmt::format("80 % interval: {} of {} measured steps in it, doubtful ones included", in.inside, in.rows),
          fmt::format("out of memory: {} of {} rows called so; {} of {} rows that ran called so too", called,
                      called + missed, wrong, ran)};
}

nlohmann::ordered_json row_json(const PublishedCase& c) {
  nlohmann::ordered_json row = {{"id", c.row.id}, {"source", c.row.source}};
  if (!c.row.doubtful.empty()) row["doubtful"] = c.row.doubtful;
  if (!c.reason.empty()) {
    row["not_supported"] = c.reason;
    return row;
  }
  const auto add = [&](const char* key, double predicted, const std::optional<double>& measured) {
    if (measured) row[key] = {{"predicted", predicted}, {"measured", *measured}, {"error", predicted / *measured - 1}};
  };
  add("step_time_s", c.step_time_s, c.row.step_time_s);
  row["step_time_low_s"] = c.step_time_low_s;
  row["step_time_high_s"] = c.step_time_high_s;
  add("forward_s", c.forward_s, c.row.forward_s);
  add("backward_s", c.backward_s, c.row.backward_s);
  add("peak_memory_bytes", c.peak_memory_bytes, c.row.peak_memory_bytes);
  if (c.row.bubble_fraction)
    row["bubble_fraction"] = {{"predicted", c.bubble_fraction},
                              {"measured", *c.row.bubble_fraction},
                              {"difference", c.bubble_fraction - *c.row.bubble_fraction}};
  if (c.row.peak_memory_bytes) row["peak_memory_kind"] = c.row.memory_kind;
  row["fits"] = {{"predicted", c.fits}};
  if (!c.row.composed) row["fits"]["measured"] = !c.row.out_of_memory;
  for (int k = 0; k < kTimeKinds; ++k) row["time_s"][std::string(name_of(static_cast<TimeKind>(k)))] = c.time_s[k];
  for (int k = 0; k < kCategories; ++k) row["at_peak"][std::string(name_of(static_cast<Category>(k)))] = c.at_peak[k];
  row["limit"] = c.limit;
  return row;
}

nlohmann::ordered_json summary_json(const char* key, const std::vector<ErrorSummary>& list) {
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  for (const ErrorSummary& s : list) {
    result.push_back({{key, s.source},
                      {"rows", s.rows},
                      {"bias", s.bias},
                      {"median", s.median},
                      {"mean", s.mean},
                      {"p90", s.p90},
                      {"worst", s.worst},
                      {"null_model_mean", s.null_mean}});
  }
  return result;
}

}  // namespace

std::vector<Section> published_sections(const std::vector<PublishedCase>& cases) {
  const auto errors = [&](Judged what, bool doubtful) { return summarize(misses(cases, what, doubtful)); };
  const auto techniques = summarize_by_technique(misses(cases, Judged::step, false));
  return {{"Steps", {}, rows_table(cases, false), {}},
          {"Doubtful rows", {}, rows_table(cases, true), {}},
          {"Not supported", {}, unsupported_table(cases), {}},
          {"Errors of the step time", {}, summary_table("step time", errors(Judged::step, false), true), {}},
          {"Errors of single layers", {}, summary_table("layer time", errors(Judged::layer, false), false), {}},
          {"Errors of the peak memory", {}, summary_table("peak memory", errors(Judged::memory, false), false), {}},
          {"Errors by what steps use", {}, summary_table("step time of rows with", techniques, true), {}},
          {"Pipeline bubbles", {}, bubbles_table(cases), {}},
          {"Errors of bubbles", {}, summary_table("bubble, points of 100", errors(Judged::bubble, false), false), {}},
          {"Doubtful step times", {}, summary_table("doubtful: step time", errors(Judged::step, true), true), {}},
          {"Stalled steps (in sample: the wait of a micro-batch was fitted to them)",
           {},
           summary_table("stalled: step time", errors(Judged::stalled, true), false),
           {}},
          {"Memory of stalled steps",
           {},
           summary_table("stalled: peak memory", errors(Judged::stalled_memory, true), false),
           {}},
          {"Doubtful memory", {}, summary_table("doubtful: peak memory", errors(Judged::memory, true), false), {}},
          {"Choice of the fastest layout", {}, regret_table(cases), {}},
          {"Intervals, and what fits", fit_lines(cases), {}, {}}};
}

std::string published_text(const std::vector<PublishedCase>& cases, const Style& style) {
  std::string text;
  const std::vector<Section> sections = published_sections(cases);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const Section& s = sections[i];
    if (i == 1 && !s.table.rows.empty()) text += "doubtful rows\n";
    if (!s.table.rows.empty()) text += print(s.table, "", style.columns) + '\n';
    for (const std::string& line : s.lines) text += line + '\n';
  }
  return text;
}

std::string published_json(const std::vector<PublishedCase>& cases) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), grids = nlohmann::ordered_json::array();
  for (const PublishedCase& c : cases) rows.push_back(row_json(c));
  for (const GridRegret& r : regrets(cases)) {
    grids.push_back(
        {{"source", r.source}, {"grids", r.grids}, {"mean", r.mean}, {"worst", r.worst}, {"right", r.right}});
  }
  const Coverage in = coverage(cases);
  const nlohmann::ordered_json whole = {
      {"schema", "orrery.published/1"},
      {"rows", rows},
      {"step_time", summary_json("source", summarize(misses(cases, Judged::step, false)))},
      {"step_time_by_technique", summary_json("technique", summarize_by_technique(misses(cases, Judged::step, false)))},
      {"layer_time", summary_json("source", summarize(misses(cases, Judged::layer, false)))},
      {"peak_memory", summary_json("source", summarize(misses(cases, Judged::memory, false)))},
      {"bubble_fraction", summary_json("source", summarize(misses(cases, Judged::bubble, false)))},
      {"doubtful_step_time", summary_json("source", summarize(misses(cases, Judged::step, true)))},
      {"stalled_step_time", summary_json("source", summarize(misses(cases, Judged::stalled, true)))},
      {"stalled_peak_memory", summary_json("source", summarize(misses(cases, Judged::stalled_memory, true)))},
      {"doubtful_peak_memory", summary_json("source", summarize(misses(cases, Judged::memory, true)))},
      {"grid_regret", grids},
      {"interval", {{"inside", in.inside}, {"rows", in.rows}}}};
  return whole.dump(2) + '\n';
}

}  // namespace orrery
