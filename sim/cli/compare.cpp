#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/advice/machines.h"
#include "sim/advice/run_cost.h"
#include "sim/cli/commands.h"
#include "sim/generate/compare_text.h"
#include "sim/page/compare.h"
#include "sim/page/generations.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"
#include "sim/report/report_text.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

// A key of the spec that --vary names, and the values to try for it.
struct Axis {
  std::string key;
  std::vector<std::string> values;
};

// One row of the comparison: a spec with one value of each varied key, and the predicted result.
struct Case {
  std::string spec;
  std::shared_ptr<const SpecText> text;  // text of the spec; nullptr if the file cannot be read
  std::vector<std::string> values;       // values of the varied keys, in the order of the keys
  std::vector<std::string> overrides;
  std::string name;
  std::vector<Origin> origins;  // all values of the spec, with where each comes from
  std::optional<Report> report;
  std::optional<GenerationReport> generated;  // instead of `report`, where the spec generates text
  std::int64_t batch = 0, gpus = 1;           // of the text: sequences together, and GPUs
  std::optional<RunCost> cost;                // time and cost of a training run of --tokens tokens
  std::exception_ptr failure;
  std::string reason;  // reason why the combination is impossible, "" if it is possible
};

// Splits a list at the commas that are outside brackets: "a,[b,c],d" has the items "a", "[b,c]" and "d".
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth <= 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

Axis parse_axis(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(fmt::format("--vary: '{}' is not key=value,value; e.g. strategy.tensor=1,2,4", text));
  }
  return {text.substr(0, equals), split_list(std::string_view(text).substr(equals + 1))};
}

std::string last_word(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// Returns the word for a varied key in names and tables: its last word, or all of it where another key ends with the
// same.
std::string label_of(const Axis& axis, const std::vector<Axis>& axes) {
  const std::string word = last_word(axis.key);
  const auto same = std::ranges::count_if(axes, [&](const Axis& other) { return last_word(other.key) == word; });
  return same > 1 ? axis.key : word;
}

std::string stem(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.substr(0, file.rfind('.'));
}

std::shared_ptr<const SpecText> text_of_spec(const std::string& spec) {
  try {
    return std::make_shared<const SpecText>(read_spec_text(spec));
  } catch (const Error&) {  // the error will be reported when the spec is predicted
    return nullptr;
  }
}

std::vector<Case> make_cases(const CompareOptions& options, const std::vector<Axis>& axes) {
  std::vector<Case> cases;
  for (const std::string& spec : options.specs) {
    cases.push_back({.spec = spec, .text = text_of_spec(spec), .overrides = options.overrides, .name = stem(spec)});
  }
  for (const Axis& axis : axes) {
    std::vector<Case> longer;
    for (const Case& c : cases) {
      for (const std::string& value : axis.values) {
        longer.push_back(c);
        longer.back().values.push_back(value);
        longer.back().overrides.push_back(axis.key + '=' + value);
        longer.back().name += fmt::format(" {}={}", label_of(axis, axes), value);
      }
    }
    cases = std::move(longer);
  }
  return cases;
}

void predict_case(Case& c, const CompareOptions& options, const PriceList& prices) {
  try {
    const Spec spec = c.text ? parse_spec(c.text->text, c.text->path, c.overrides) : load_spec(c.spec, c.overrides);
    c.origins = spec.origins;
    if (spec.generation) {
      c.generated = predict_generation(spec, profile_for(spec, options.profile));
      c.batch = spec.generation->batch;
      c.gpus = spec.gpus;
      return;
    }
    c.report = predict_report(spec, profile_for(spec, options.profile));
    c.cost = run_cost(spec, options.tokens, c.report->tokens_per_s, c.report->step_time_s, prices);
  } catch (const Error& error) {
    c.failure = std::current_exception();
    c.reason = error.what();
  } catch (...) {
    c.failure = std::current_exception();
  }
}

// Predicts all rows of the comparison (specs with values of the varied keys) on several threads: each thread takes the
// next row until none is left, and stores the result in the row.
void predict_all(std::vector<Case>& cases, const CompareOptions& options, const Common& common) {
  const PriceList prices = load_prices(options.prices);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size(); i = next++) {
      common.progress(fmt::format("{} of {}: {}", i + 1, cases.size(), cases[i].name));
      predict_case(cases[i], options, prices);
    }
  };
  std::vector<std::jthread> workers;
  const std::size_t count = std::min<std::size_t>(common.threads, cases.size());
  for (std::size_t i = 1; i < count; ++i) workers.emplace_back(work);
  work();
}

void throw_failures(const std::vector<Case>& cases, bool varied) {
  const bool any = std::any_of(cases.begin(), cases.end(), [](const Case& c) { return c.report || c.generated; });
  for (const Case& c : cases) {
    const bool row = varied && any && !c.reason.empty();
    if (c.failure && !row) std::rethrow_exception(c.failure);
  }
}

std::string to_json(const std::vector<Case>& cases) {
  ordered_json list = ordered_json::array();
  for (const Case& c : cases) {
    ordered_json row = {{"name", c.name}};
    if (c.report) {
      row["report"] = ordered_json::parse(orrery::to_json(*c.report));
      if (c.cost->days) row["days"] = *c.cost->days;
      if (c.cost->cloud_usd) row["cloud_usd"] = *c.cost->cloud_usd;
      if (c.cost->owned_usd) row["owned_usd"] = *c.cost->owned_usd;
    } else
      row["error"] = c.reason;
    list.push_back(std::move(row));
  }
  return list.dump(2) + '\n';
}

// Tokens per second of the fastest row that fits in memory, or of the fastest row of all if none fits.
double best_rate(const std::vector<Case>& cases) {
  double best = 0, fitting = 0;
  for (const Case& c : cases) {
    if (!c.report) continue;
    best = std::max(best, c.report->tokens_per_s);
    if (c.report->memory.fits) fitting = std::max(fitting, c.report->tokens_per_s);
  }
  return fitting > 0 ? fitting : best;
}

struct Scales {
  Scale time, memory;
  double best = 0;
};

std::vector<std::string> figures(const Report& r, const Scales& scales) {
  const auto device = static_cast<double>(r.memory.peak_device);
  return {number(r.step_time_s, scales.time),
          fmt::format("{:.2f}", scales.best / r.tokens_per_s),
          grouped(r.tokens_per_s_per_gpu),
          fmt::format("{:.1f}", 100 * r.mfu),
          fmt::format("{:.1f}", 100 * r.bubble_fraction),
          fmt::format("{:.1f}", 100 * exposed_share(r)),
          number(device, scales.memory),
          r.memory.fits ? "yes" : "NO: " + lack_text(r.memory)};
}

// The share of a step that belongs to a frozen model beside the one that trains, in %; "-" for a step of one model.
std::string frozen_figure(const Report& r) {
  if (r.models.size() < 2) return "-";
  const TimeSplit& time = r.models[1].time_s;
  return fmt::format("{:.1f}", 100 * std::accumulate(time.begin(), time.end(), 0.0) / r.step_time_s);
}

// Days, rent and owner's cost (millions of dollars) of a training run as texts for a row of the table; "-" where a
// figure is not known.
std::vector<std::string> run_figures(const RunCost& cost) {
  const auto figure = [](const std::optional<double>& v, double unit) {
    return v ? fmt::format("{:.4g}", *v / unit) : "-";
  };
  return {figure(cost.days, 1), figure(cost.cloud_usd, 1e6), figure(cost.owned_usd, 1e6)};
}

std::string quoted_cell(const std::string& text) {
  std::string doubled;
  for (const char c : text) doubled += c == '"' ? "\"\"" : std::string(1, c);
  return '"' + doubled + '"';
}

// The comparison as CSV. The row of an impossible combination of values holds only the reason why it is impossible.
std::string csv_text(const std::vector<Case>& cases, const std::vector<Axis>& axes) {
  std::string text = "spec";
  for (const Axis& axis : axes) text += ',' + quoted_cell(axis.key);
  text +=
      ",step_time_s,step_time_low_s,step_time_high_s,tokens_per_s,mfu,bubble_fraction,exposed_fraction,"
      "peak_device_bytes,fits,days,cloud_usd,owned_usd,reason\n";
  const auto cell = [](const std::optional<double>& v) { return v ? fmt::format("{}", *v) : std::string(); };
  for (const Case& c : cases) {
    text += quoted_cell(c.spec);
    for (const std::string& value : c.values) text += ',' + quoted_cell(value);
    if (c.report) {
      const Report& r = *c.report;
      text +=
          fmt::format(",{},{},{},{},{},{},{},{},{},{},{},{},\n", r.step_time_s, r.step_time_low_s, r.step_time_high_s,
                      r.tokens_per_s, r.mfu, r.bubble_fraction, exposed_share(r), r.memory.peak_device, r.memory.fits,
                      cell(c.cost->days), cell(c.cost->cloud_usd), cell(c.cost->owned_usd));
    } else {
      text += ",,,,,,,,,,,,," + quoted_cell(c.reason) + "\n";
    }
  }
  return text;
}

Table table_of(const std::vector<Case>& cases, const std::vector<Axis>& axes, bool names, bool run) {
  double time = 0, memory = 0;
  for (const Case& c : cases) {
    if (!c.report) continue;
    time = std::max(time, c.report->step_time_s);
    memory = std::max(memory, static_cast<double>(c.report->memory.peak_device));
  }
  const Scales scales{time_scale(time), memory_scale(memory), best_rate(cases)};
  Table t;
  if (names) t.columns.push_back({"spec", "", Align::left});
  for (const Axis& axis : axes) t.columns.push_back({label_of(axis, axes), "", Align::left});
  const std::size_t labels = t.columns.size();
  for (const Column& column :
       {Column{"step", std::string(scales.time.unit)}, Column{"time", "/ best"}, Column{"tokens/s", "per GPU"},
        Column{"MFU", "%"}, Column{"bubble", "%"}, Column{"exposed", "comm %"},
        Column{"memory", std::string(scales.memory.unit)}, Column{"fits", "", Align::left}}) {
    t.columns.push_back(column);
  }
  const bool frozen =
      std::any_of(cases.begin(), cases.end(), [](const Case& c) { return c.report && !c.report->models.empty(); });
  if (frozen) t.columns.insert(t.columns.end() - 2, {"frozen", "model %"});
  if (run) t.columns.insert(t.columns.end() - 1, {{"run", "days"}, {"rent", "M$"}, {"owned", "M$"}});
  for (const Case& c : cases) {
    std::vector<std::string> row;
    if (names) row.push_back(stem(c.spec));
    row.insert(row.end(), c.values.begin(), c.values.end());
    std::vector<std::string> rest(t.columns.size() - labels, "-");
    if (c.report) {
      rest = figures(*c.report, scales);
      if (frozen) rest.insert(rest.end() - 2, frozen_figure(*c.report));
      if (const std::vector<std::string> last = run_figures(*c.cost); run)
        rest.insert(rest.end() - 1, last.begin(), last.end());
    } else
      rest.back() = c.reason;
    row.insert(row.end(), rest.begin(), rest.end());
    t.rows.push_back(row);
  }
  return t;
}

// The comparison of specs that generate text. Throws Error if others train.
Outcome compared_generations(const std::vector<Case>& cases, const std::vector<Axis>& axes, bool names,
                             const CompareOptions& options, const Common& common) {
  for (const Case& c : cases) {
    if (c.report)
      throw Error(fmt::format("{}: trains, and others generate text (workload: generate); compare one kind", c.name));
  }
  if (options.tokens > 0) throw Error("--tokens: is the length of a training run, and the specs generate text");
  std::vector<std::string> labels;
  if (names) labels.emplace_back("spec");
  // The rows have a column `batch` in any case.
  for (const Axis& axis : axes) labels.push_back(axis.key == "generate.batch" ? axis.key : label_of(axis, axes));
  std::vector<ComparedGeneration> rows;
  ordered_json list = ordered_json::array();
  for (const Case& c : cases) {
    ComparedGeneration row = {c.name, {}, c.batch, c.gpus, c.generated ? &*c.generated : nullptr, c.reason};
    if (names) row.labels.push_back(stem(c.spec));
    row.labels.insert(row.labels.end(), c.values.begin(), c.values.end());
    rows.push_back(std::move(row));
    ordered_json item = {{"name", c.name}};
    if (c.generated)
      item["report"] =
          ordered_json::parse(orrery::to_json(parse_spec(c.text->text, c.text->path, c.overrides), *c.generated));
    else
      item["error"] = c.reason;
    if (common.json) list.push_back(std::move(item));
  }
  const Table table = compared_table(rows, labels);
  Outcome outcome{common.json   ? list.dump(2) + '\n'
                  : options.csv ? compared_csv(rows, labels)
                                : print(table, "", common.style.columns)};
  if (!common.page) return outcome;
  std::vector<ComparedSpec> specs;
  for (const Case& c : cases) specs.push_back({c.name, nullptr, c.reason, c.origins});
  outcome.page = compared_generations_page({rows, table}, specs, common.command, common.version);
  return outcome;
}

std::string page_of_cases(const std::vector<Case>& cases, const Table& table, const Common& common) {
  ComparePage page{.table = table, .command = common.command, .version = common.version};
  for (const Case& c : cases) page.specs.push_back({c.name, c.report ? &*c.report : nullptr, c.reason, c.origins});
  return compare_page(page);
}

}  // namespace

Outcome compare_command(const CompareOptions& options, const Common& common) {
  std::vector<Axis> axes;
  for (const std::string& text : options.vary) axes.push_back(parse_axis(text));
  std::vector<Case> cases = make_cases(options, axes);
  predict_all(cases, options, common);
  throw_failures(cases, !axes.empty());
  const bool names = axes.empty() || options.specs.size() > 1;
  if (std::any_of(cases.begin(), cases.end(), [](const Case& c) { return c.generated.has_value(); }))
    return compared_generations(cases, axes, names, options, common);
  const Table table = table_of(cases, axes, names, options.tokens > 0);
  Outcome outcome{common.json   ? to_json(cases)
                  : options.csv ? csv_text(cases, axes)
                                : print(table, "", common.style.columns)};
  if (common.page) outcome.page = page_of_cases(cases, table, common);
  return outcome;
}

}  // namespace orrery
