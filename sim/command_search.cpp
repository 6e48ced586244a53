#include "sim/command_search.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/error.h"
#include "models/names.h"
#include "sim/predict.h"
#include "sim/search_largest.h"
#include "sim/search_machines.h"
#include "sim/search_report.h"

namespace orrery {
namespace {

constexpr std::string_view kObjectives[] = {"time", "cost", "memory"};

// A machine to search on, and what was found.
struct SearchCase {
  OpenSpec open;
  std::int64_t gpus = 0;
  std::optional<Space> space;
  Profile profile;
  SearchResult result;
  Machine machine;
};

bool stopped(const SearchCommandOptions& o) { return o.stop != nullptr && *o.stop; }

SearchOptions options_for(const SearchCommandOptions& o, const Common& common) {
  SearchOptions options;
  options.objective = o.objective == "memory" ? SearchObjective::memory : SearchObjective::time;
  options.most_memory = o.max_memory();
  options.top = std::max<std::size_t>(1, o.top);
  options.within = o.within / 100;
  options.threads = common.threads;
  options.stop = o.stop;
  options.progress = common.progress;
  return options;
}

// The spec on every machine that was asked for, with as many nodes as its GPUs need.
std::vector<SearchCase> machines_of(const SearchCommandOptions& o) {
  const OpenSpec given = load_open_spec(o.spec, o.overrides);
  std::vector<std::string> nodes = o.clusters;
  if (nodes.empty()) nodes.emplace_back();
  std::vector<std::int64_t> gpus = o.gpus;
  if (gpus.empty()) gpus.push_back(given.spec.gpus);
  std::vector<SearchCase> cases;
  for (const std::string& node : nodes) {
    for (const std::int64_t n : gpus) {
      if (n < 1) throw Error(fmt::format("--gpus: {} is not at least 1", n));
      if (o.max_gpus > 0 && n > o.max_gpus) continue;
      SearchCase c{.open = given, .gpus = n};
      Cluster& cluster = c.open.spec.cluster;
      if (!node.empty()) cluster = find_cluster(node, 1);
      if (!node.empty() || !o.gpus.empty()) cluster.nodes = ceil_div(n, std::max(1, cluster.gpus_per_node));
      cases.push_back(std::move(c));
    }
  }
  if (cases.empty()) throw Error(fmt::format("--max-gpus: {} leaves no machine of those asked for", o.max_gpus));
  return cases;
}

void search_case(SearchCase& c, const SearchCommandOptions& o, const Common& common, const PriceList& prices) {
  c.space.emplace(c.open, c.gpus);
  c.profile = profile_for(c.space->base(), o.profile);
  c.result = search(*c.space, c.profile, options_for(o, common));
  c.machine = make_machine(*c.space, c.result, prices, o.tokens);
}

// What a machine is chosen by: the run's time, or what it costs to rent.
double value_of(const Machine& m, const SearchCommandOptions& o) {
  if (o.objective == "cost") return m.usd_per_Mtoken.value_or(1e300);
  return 1 / (m.tokens_per_s * m.goodput);
}

bool is_within(const Machine& m, const SearchCommandOptions& o) {
  if (m.strategy.empty()) return false;
  if (o.deadline_days > 0 && m.days > o.deadline_days) return false;
  return o.budget_usd <= 0 || (m.cloud_usd && *m.cloud_usd <= o.budget_usd);
}

const SearchCase* choose(const std::vector<SearchCase>& cases, const SearchCommandOptions& o) {
  const SearchCase* best = nullptr;
  for (const SearchCase& c : cases) {
    if (!is_within(c.machine, o)) continue;
    if (best == nullptr || value_of(c.machine, o) < value_of(best->machine, o)) best = &c;
  }
  return best;
}

void check_options(const SearchCommandOptions& o) {
  if (std::find(std::begin(kObjectives), std::end(kObjectives), o.objective) == std::end(kObjectives))
    throw Error(fmt::format("--objective: {}", unknown_name("objective", o.objective, kObjectives)));
  if ((o.deadline_days > 0 || o.budget_usd > 0) && o.tokens <= 0)
    throw Error("--deadline, --budget: need --tokens, the length of the run");
}

// The strategy named by --against, as a row beside the others.
std::string against_text(const SearchCase& c, const SearchCommandOptions& o) {
  if (o.against.empty() || c.result.best.empty()) return "";
  std::vector<std::string> overrides = o.overrides;
  overrides.push_back(fmt::format("gpus={}", c.gpus));
  overrides.insert(overrides.end(), o.against.begin(), o.against.end());
  Spec spec = load_spec(o.spec, overrides);
  const Report report = predict(spec, c.profile).report;
  const Report& best = c.result.best.front().report;
  std::string text = fmt::format("\n  the given strategy: {}, {:+.1f} %, {}{}", time_text(report.step_time_s),
                                 100 * (report.step_time_s / best.step_time_s - 1),
                                 memory_text(static_cast<double>(report.memory.peak_device)),
                                 report.memory.fits ? "" : ", does not fit");
  for (const Loss& loss : losses(best, report)) text += "; " + text_of(loss);
  return text + '\n';
}

// Faster strategies need more memory: the best in ever less of it.
std::string pareto_text(const SearchCase& c, const SearchCommandOptions& o, const Common& common) {
  constexpr int kMost = 8;
  constexpr double kLess = 0.95;  // of the memory of the one before
  std::string text = "\n  time against memory\n";
  SearchOptions options = options_for(o, common);
  options.top = 1;
  SearchResult r = c.result;
  for (int i = 0; i < kMost && !r.best.empty() && !stopped(o); ++i) {
    const Found& f = r.best.front();
    text += fmt::format("  {:>9}  {:>9}  {}\n", time_text(f.report.step_time_s),
                        memory_text(static_cast<double>(f.report.memory.peak_device)), c.space->text_of(f.point));
    options.most_memory = static_cast<Bytes>(kLess * static_cast<double>(f.report.memory.peak_device));
    r = search(*c.space, c.profile, options);
  }
  return text;
}

std::string json_of(const std::vector<SearchCase>& cases, const SearchCase* best,
                    const std::vector<Sensitivity>& helps) {
  using nlohmann::ordered_json;
  const SearchCase& shown = best != nullptr ? *best : cases.front();
  ordered_json j = ordered_json::parse(search_json(*shown.space, shown.result, helps));
  std::vector<Machine> machines;
  for (const SearchCase& c : cases) machines.push_back(c.machine);
  j["machines"] = ordered_json::parse(machines_json(machines));
  j["chosen"] = best != nullptr ? ordered_json(best - cases.data()) : ordered_json(nullptr);
  return j.dump(2) + '\n';
}

}  // namespace

Outcome search_command(const SearchCommandOptions& o, const Common& common) {
  check_options(o);
  if (!o.maximize.empty()) return largest_command(o, common);
  const PriceList prices = load_prices(o.prices);
  std::vector<SearchCase> cases = machines_of(o);
  for (SearchCase& c : cases) {
    if (!stopped(o)) search_case(c, o, common, prices);
  }
  cases.erase(std::remove_if(cases.begin(), cases.end(), [](const SearchCase& c) { return !c.space; }), cases.end());
  if (cases.empty()) throw Error("interrupted before the search began", 1);
  const SearchCase* best = choose(cases, o);
  const bool proven = !stopped(o) && best != nullptr;
  const SearchCase& shown = best != nullptr ? *best : cases.front();
  std::vector<Sensitivity> helps;
  if (proven && !o.csv) helps = sensitivities(*shown.space, shown.profile, shown.result.best.front());
  const int status = proven ? 0 : 1;
  std::vector<Machine> machines;
  for (const SearchCase& c : cases) machines.push_back(c.machine);
  const bool table = cases.size() > 1 || o.tokens > 0;
  if (common.json) return {json_of(cases, best, helps), status};
  if (o.csv) return {table ? machines_csv(machines) : search_csv(*shown.space, shown.result), status};
  std::string text;
  if (table) text += machines_text(machines, prices, o.tokens, common.style) + '\n';
  if (best == nullptr && cases.size() > 1) text += "  no machine is within the limits\n";
  text += search_text(*shown.space, shown.result, helps, common.style) + against_text(shown, o);
  if (o.pareto && proven) text += pareto_text(shown, o, common);
  return {text, status};
}

}  // namespace orrery
