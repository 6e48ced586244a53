#include "sim/advice/generation_search.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/load/open_spec.h"
#include "sim/advice/save_spec.h"
#include "sim/generate/compare_text.h"
#include "sim/generate/layout_search.h"
#include "sim/page/generations.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

GenerationObjective objective_of(const std::string& word) {
  const std::string& name = word == "time" ? std::string(kGenerationObjectives[0]) : word;
  const auto found = std::find(std::begin(kGenerationObjectives), std::end(kGenerationObjectives), name);
  if (found == std::end(kGenerationObjectives))
    throw Error(
        fmt::format("--objective: {}", unknown_name("objective of generated text", name, kGenerationObjectives)));
  return static_cast<GenerationObjective>(found - std::begin(kGenerationObjectives));
}

void refuse_options(const SearchCommandOptions& o) {
  const std::pair<const char*, bool> others[] = {{"--maximize", !o.maximize.empty()},
                                                 {"--against", !o.against.empty()},
                                                 {"--pareto", o.pareto},
                                                 {"--tokens", o.tokens > 0},
                                                 {"--deadline", o.deadline_days > 0},
                                                 {"--budget", o.budget_usd > 0},
                                                 {"--within", o.within > 0},
                                                 {"--max-gpus", o.max_gpus > 0},
                                                 {"--gpus", !o.gpus.empty()},
                                                 {"--cluster", !o.clusters.empty()},
                                                 {"--prices", !o.prices.file.empty()},
                                                 {"several processes", o.peers != nullptr}};
  for (const auto& [name, given] : others) {
    if (given)
      throw Error(
          fmt::format("{}: goes with training steps, and the spec generates text (workload: generate); leave "
                      "it out",
                      name));
  }
}

std::vector<ComparedGeneration> rows_of(const LayoutsFound& f, std::size_t top, std::int64_t gpus, bool experts) {
  std::vector<ComparedGeneration> rows;
  for (std::size_t i = 0; i < std::min(f.found.size(), top); ++i) {
    const GenerationLayout& l = f.found[i].layout;
    std::vector<std::string> labels = {fmt::format("{}", l.tensor), fmt::format("{}", l.pipeline),
                                       fmt::format("{}", l.data)};
    if (experts) labels.push_back(fmt::format("{}", l.expert));
    rows.push_back(
        {fmt::format("{}", fmt::join(l.settings, " ")), std::move(labels), l.batch, gpus, &f.found[i].report, {}});
  }
  return rows;
}

// Says over what the best was found: a search that has not stopped is proven for this, and for nothing more.
std::string tried_of(const LayoutsFound& f) {
  return f.batches_stated ? "all layouts with the stated batch"
                          : "all layouts with 1, 2, 4, ... sequences a data rank and the most that fit";
}

std::string summary_of(const LayoutsFound& f, std::string_view objective) {
  return fmt::format("{} predicted: {} fit, {} do not; {} are impossible; {} by {} of {}\n", f.predicted,
                     f.found.size(), f.too_large, f.refused, f.stopped ? "stopped: the best so far" : "the best",
                     objective, tried_of(f));
}

// The spec of the best layout, or the one that was searched where none fits.
Spec best_spec(const LayoutsFound& f, const SpecText& text, const SearchCommandOptions& o, const Spec& searched) {
  if (f.found.empty()) return searched;
  std::vector<std::string> overrides = o.overrides;
  const std::vector<std::string>& settings = f.found.front().layout.settings;
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  return parse_spec(text.text, text.path, overrides);
}

std::string found_json(const LayoutsFound& f, std::size_t top, const SpecText& text, const SearchCommandOptions& o,
                       std::string_view objective) {
  ordered_json list = ordered_json::array();
  for (std::size_t i = 0; i < std::min(f.found.size(), top); ++i) {
    std::vector<std::string> overrides = o.overrides;
    const std::vector<std::string>& settings = f.found[i].layout.settings;
    overrides.insert(overrides.end(), settings.begin(), settings.end());
    const Spec spec = parse_spec(text.text, text.path, overrides);
    list.push_back({{"settings", settings}, {"report", ordered_json::parse(to_json(spec, f.found[i].report))}});
  }
  const ordered_json root = {{"schema", "orrery.generation_search/1"},
                             {"objective", objective},
                             {"proven", !f.stopped},
                             {"proven_over", tried_of(f)},
                             {"predicted", f.predicted},
                             {"fitting", f.found.size()},
                             {"too_large", f.too_large},
                             {"impossible", f.refused},
                             {"results", list}};
  return root.dump(2) + '\n';
}

}  // namespace

Outcome generation_search(const SearchCommandOptions& o, const Common& common) {
  refuse_options(o);
  const GenerationObjective objective = objective_of(o.objective);
  const std::string_view name = kGenerationObjectives[static_cast<std::size_t>(objective)];
  const SpecText text = o.text.text.empty() ? read_spec_text(o.spec) : o.text;
  const LayoutsFound f = search_layouts(text, {.overrides = o.overrides,
                                               .profile = o.profile,
                                               .objective = objective,
                                               .max_memory = o.max_memory(),
                                               .threads = common.threads,
                                               .stop = o.stop,
                                               .progress = common.progress});
  if (f.found.empty() && f.predicted == 0 && !f.stopped) throw Error(f.refusal);
  const std::size_t top = std::max<std::size_t>(1, o.top);
  if (!o.save.empty() && !f.found.empty()) {
    std::vector<std::string> overrides = o.overrides;
    const std::vector<std::string>& settings = f.found.front().layout.settings;
    overrides.insert(overrides.end(), settings.begin(), settings.end());
    save_spec(o.save, {fmt::format("{}, by orrery search --objective {}", text.path, name)}, text, overrides);
  }
  Outcome outcome;
  outcome.status = f.found.empty() || f.stopped ? 1 : 0;
  if (common.json) outcome.text = found_json(f, top, text, o, name);
  if (common.json && !common.page) return outcome;
  std::vector<std::string> labels = {"tensor", "pipeline", "data"};
  const Spec any = parse_open_spec(text.text, text.path, o.overrides).spec;
  if (any.model.moe) labels.emplace_back("expert");
  const std::vector<ComparedGeneration> rows = rows_of(f, top, any.gpus, any.model.moe.has_value());
  const Table table = compared_table(rows, labels);
  if (!common.json) outcome.text = o.csv ? compared_csv(rows, labels) : print(table, "", common.style.columns);
  if (!common.json && !o.csv) outcome.text += "\n" + summary_of(f, name);
  if (common.page)
    outcome.page = found_generations_page({rows, table}, best_spec(f, text, o, any), {summary_of(f, name)},
                                          {text, o.overrides, {}, common.command, common.version});
  return outcome;
}

}  // namespace orrery
