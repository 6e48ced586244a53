#include "sim/advice/search_options.h"

#include <algorithm>
#include <optional>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/load/load_spec.h"
#include "sim/advice/advice.h"
#include "sim/advice/generation_search.h"
#include "sim/advice/largest.h"
#include "sim/advice/machines.h"
#include "sim/advice/save_found.h"
#include "sim/advice/targets.h"
#include "sim/page/search.h"
#include "sim/parallel/peers.h"
#include "sim/predict/predict.h"
#include "sim/report/difference.h"
#include "sim/search/front.h"
#include "sim/search/report.h"

namespace orrery {
namespace {

constexpr std::string_view kObjectives[] = {"time", "cost", "memory"};

// A machine that was searched for strategies, and the result of its search.
struct SearchCase {
  SearchTarget target;
  std::optional<Space> space;
  Profile profile;
  SearchResult result;
  Machine machine;
};

SearchOptions options_for(const SearchCommandOptions& o, const Common& common) {
  SearchOptions options;
  options.objective = o.objective == "memory" ? SearchObjective::memory : SearchObjective::time;
  options.most_memory = o.max_memory();
  options.top = std::max<std::size_t>(1, o.top);
  options.within = o.within / 100;
  options.threads = common.threads;
  options.stop = o.stop;
  options.peers = o.peers;
  options.progress = common.progress;
  return options;
}

// The reason why a machine exceeds the user's limits (--deadline, --budget), "" if it does not. If no strategy fits in
// the machine's memory, make_machine() has stated that reason already.
std::string beyond_limits(const Machine& m, const SearchCommandOptions& o) {
  if (o.deadline_days > 0 && m.cost.days > o.deadline_days)
    return fmt::format("{:.{}f} days, above --deadline {:.4g}", *m.cost.days, *m.cost.days < 1 ? 3 : 1,
                       o.deadline_days);
  if ((o.objective == "cost" || o.budget_usd > 0) && !m.cost.usd_per_Mtoken)
    return "no price to rent it is known; give one by --prices";
  if (o.budget_usd > 0 && *m.cost.cloud_usd > o.budget_usd)
    return fmt::format("{:.0f} $ of rent, above --budget {:.0f}", *m.cost.cloud_usd, o.budget_usd);
  return "";
}

// How far to search the strategies on a machine: until some strategy fits in memory, or until the best one is proven.
enum class Effort : std::uint8_t { first_strategy, whole };

void search_case(SearchCase& c, Effort effort, const SearchCommandOptions& o, const Common& common,
                 const PriceList& prices) {
  SearchOptions options = options_for(o, common);
  options.any = effort == Effort::first_strategy;
  SearchResult result = search(*c.space, c.profile, options);
  result.wall_s += c.result.wall_s;
  // The result of a search that was stopped before it found a strategy does not replace an earlier result that has one.
  const bool knows_less = result.stopped && result.best.empty() && !c.result.best.empty();
  if (!knows_less) c.result = std::move(result);
  c.result.stopped |= knows_less;
  c.machine = make_machine(*c.space, c.result, prices, o.tokens);
  if (effort == Effort::first_strategy && !c.result.proven) c.machine.reached = Reached::not_searched;
  if (c.machine.excluded.empty()) c.machine.excluded = beyond_limits(c.machine, o);
}

std::vector<SearchCase> make_cases(std::vector<SearchTarget> targets, const SearchCommandOptions& o) {
  std::vector<SearchCase> cases;
  cases.reserve(targets.size());
  together(o.peers, [&] {
    for (SearchTarget& target : targets) {
      SearchCase& c = cases.emplace_back(SearchCase{.target = std::move(target)});
      c.space.emplace(c.target.open, c.target.gpus);
      c.profile = profile_for(c.space->base(), o.profile);
      c.machine.name = machine_name(c.target.open.spec.cluster);
      c.machine.gpus = c.target.gpus;
    }
  });
  return cases;
}

// Searches every machine. If there are several, the search first looks on each machine for any strategy that fits, and
// only then completes the search of each, so that a search that the user stops has an answer for all machines.
void search_all(std::vector<SearchCase>& cases, const SearchCommandOptions& o, const Common& common,
                const PriceList& prices) {
  std::vector<Effort> efforts = {Effort::whole};
  if (cases.size() > 1) efforts.insert(efforts.begin(), Effort::first_strategy);
  for (const Effort effort : efforts) {
    for (SearchCase& c : cases) {
      if (!c.result.proven) search_case(c, effort, o, common, prices);
      if (c.result.stopped) return;
    }
  }
}

// The figure by which machines are compared, the lowest being the best: memory, rent per token, or time per token,
// failures included.
double value_of(const Machine& m, const SearchCommandOptions& o) {
  if (o.objective == "memory") return static_cast<double>(m.memory);
  if (o.objective == "cost") return *m.cost.usd_per_Mtoken;
  return 1 / (m.tokens_per_s * m.cost.goodput);
}

const SearchCase* choose(const std::vector<SearchCase>& cases, const SearchCommandOptions& o) {
  const SearchCase* best = nullptr;
  for (const SearchCase& c : cases) {
    if (!c.machine.excluded.empty()) continue;
    if (best == nullptr || value_of(c.machine, o) < value_of(best->machine, o)) best = &c;
  }
  return best;
}

// The strategy given by --against, to be compared with the best one found.
struct Rival {
  Report report;
  std::vector<Loss> losses;
};

std::optional<Rival> rival_of(const SearchCase& c, const SearchCommandOptions& o) {
  if (o.against.empty() || c.result.best.empty()) return std::nullopt;
  std::vector<std::string> overrides = c.target.open.overrides;
  overrides.insert(overrides.end(), o.against.begin(), o.against.end());
  Rival rival{predict(parse_spec(o.text.text, o.text.path, overrides), c.profile).report, {}};
  rival.losses = losses(c.result.best.front().report, rival.report);
  return rival;
}

double slower(const Rival& rival, const SearchCase& c) {
  return rival.report.step_time_s / c.result.best.front().report.step_time_s - 1;
}

std::string text_of(const Rival& rival, const SearchCase& c) {
  std::string text =
      fmt::format("\n  the given strategy: {}, {:+.1f} %, {}{}", time_text(rival.report.step_time_s),
                  100 * slower(rival, c), memory_text(static_cast<double>(rival.report.memory.peak_device)),
                  rival.report.memory.fits ? "" : ", does not fit");
  for (const Loss& loss : rival.losses) text += "; " + text_of(loss);
  return text + '\n';
}

FrontRow front_row(const SearchCase& c, const Found& found) {
  FrontRow row{c.machine.name, c.machine.gpus, c.space->text_of(found.point), c.space->overrides_of(found.point)};
  row.step_s = found.report.step_time_s;
  row.tokens_per_s = found.report.tokens_per_s;
  row.memory = found.report.memory.peak_device;
  if (c.machine.cost.usd_per_Mtoken)
    row.usd_per_Mtoken = *c.machine.cost.usd_per_Mtoken * c.machine.tokens_per_s / row.tokens_per_s;
  return row;
}

// Adds to the Pareto front of step time and memory the best strategy of a machine for each of ever smaller memory
// limits, until no strategy fits. Returns whether that end was reached.
bool add_to_front(const SearchCase& c, const SearchCommandOptions& o, const Common& common,
                  std::vector<FrontRow>& front) {
  constexpr std::size_t kMost = 64;
  front.push_back(front_row(c, c.result.best.front()));
  SearchOptions options = options_for(o, common);
  options.top = 1;
  for (std::size_t n = 1; n < kMost; ++n) {
    options.most_memory = static_cast<Bytes>(kFrontStep * static_cast<double>(front.back().memory));
    const SearchResult r = search(*c.space, c.profile, options);
    if (r.stopped) return false;
    if (r.best.empty()) return true;
    front.push_back(front_row(c, r.best.front()));
  }
  return false;
}

// The results of a search on one or several machines.
struct Findings {
  std::vector<SearchCase> cases;
  const SearchCase* best = nullptr;  // the machine with the best strategy; nullptr: no machine can be chosen
  std::optional<Advice> advice;
  std::optional<Rival> rival;
  std::vector<FrontRow> front;
  // whether strategies may exist that need less memory than the last one of the Pareto front (`front`)
  bool front_cut = false;

  const SearchCase& shown() const { return best != nullptr ? *best : cases.front(); }
  std::vector<Machine> machines() const {
    std::vector<Machine> list;
    for (const SearchCase& c : cases) list.push_back(c.machine);
    return list;
  }
  // The names of the machines that the search had not reached when it was stopped.
  std::vector<std::string> not_searched() const {
    std::vector<std::string> names;
    for (const SearchCase& c : cases) {
      if (c.machine.reached == Reached::not_searched)
        names.push_back(fmt::format("{} x {}", c.machine.gpus, c.machine.name));
    }
    return names;
  }
};

std::string not_searched_text(const Findings& f) {
  const std::vector<std::string> names = f.not_searched();
  if (names.empty()) return "";
  return fmt::format("\n  stopped before these machines were searched: {}\n", fmt::join(names, ", "));
}

std::string json_of(const Findings& f) {
  using nlohmann::ordered_json;
  const SearchCase& shown = f.shown();
  ordered_json j = ordered_json::parse(search_json(*shown.space, shown.result));
  j.update(ordered_json::parse(advice_json(f.advice.value_or(Advice{}))));
  if (f.rival)
    j["against"] = {{"report", ordered_json::parse(to_json(f.rival->report))}, {"slower", slower(*f.rival, shown)}};
  if (f.rival) j["against"]["report"]["simulation"].erase("wall_s");
  if (!f.front.empty()) {
    j["pareto"] = ordered_json::parse(front_json(f.front));
    j["pareto_cut"] = f.front_cut;
  }
  j["machines"] = ordered_json::parse(machines_json(f.machines()));
  j["not_searched"] = f.not_searched();
  j["chosen"] = f.best != nullptr ? ordered_json(f.best - f.cases.data()) : ordered_json(nullptr);
  return j.dump(2) + '\n';
}

std::string repeat_text_of(const SearchCase& c, const SearchCommandOptions& o) {
  return repeat_text(*c.space, c.result.best.front().point, o.profile);
}

std::string text_of(const Findings& f, const SearchCommandOptions& o, const PriceList& prices, const Style& style) {
  const SearchCase& shown = f.shown();
  std::string text;
  if (f.cases.size() > 1 || o.tokens > 0) text += machines_text(f.machines(), prices, style) + '\n';
  text += search_text(*shown.space, shown.result, style);
  text += not_searched_text(f);
  if (f.advice) text += advice_text(*f.advice, style);
  if (f.best == nullptr && !shown.result.best.empty())
    text += fmt::format("\n  no machine is within the limits; the first: {}\n", shown.machine.excluded);
  if (!shown.result.best.empty()) text += '\n' + how_to_repeat(o, repeat_text_of(shown, o), style);
  if (f.rival) text += text_of(*f.rival, shown);
  if (!f.front.empty()) text += front_text(f.front, f.front_cut, style);
  return text;
}

// The cost and the time of a million tokens on each machine with a known price, for the plot on the HTML page.
std::vector<ScatterPoint> priced(const Findings& f) {
  std::vector<ScatterPoint> points;
  for (std::size_t i = 0; i < f.cases.size(); ++i) {
    const Machine& m = f.cases[i].machine;
    if (!m.strategy.empty() && m.cost.usd_per_Mtoken)
      points.push_back({*m.cost.usd_per_Mtoken, 1e6 / (m.tokens_per_s * m.cost.goodput), 0,
                        fmt::format("{} x {}: {}", m.gpus, m.name, m.strategy),
                        fmt::format("{} x {}", m.gpus, m.name)});
  }
  return points;
}

std::string page_of_findings(const Findings& f, const SearchCommandOptions& o, const PriceList& prices,
                             const Common& common) {
  const SearchCase& shown = f.shown();
  SearchPage page{*shown.space, shown.result};
  if (f.cases.size() > 1 || o.tokens > 0) page.machines = machines_sections(f.machines(), prices);
  if (f.advice) page.advice = advice_sections(*f.advice);
  page.priced = priced(f);
  page.front = f.front;
  page.front_cut = f.front_cut;
  if (const std::vector<std::string> names = f.not_searched(); !names.empty())
    page.remarks.push_back(fmt::format("Stopped before these machines were searched: {}", fmt::join(names, ", ")));
  if (f.best == nullptr && !shown.result.best.empty())
    page.remarks.push_back(fmt::format("No machine is within the limits; the first: {}", shown.machine.excluded));
  if (f.rival) page.remarks.push_back(text_of(*f.rival, shown));
  if (!shown.result.best.empty()) page.repeat = repeat_text_of(shown, o);
  return search_page(page, {o.text, o.overrides, {}, common.command, common.version});
}

std::string log_of(const Findings& f, const SearchCommandOptions& o, const Common& common) {
  double s = 0;
  for (const SearchCase& c : f.cases) s += c.result.wall_s;
  const std::string processes = o.peers != nullptr ? fmt::format("{} processes of ", o.peers->size()) : "";
  return fmt::format("searched for {} with {}{} thread{}\n{}", time_text(s), processes, common.threads,
                     common.threads == 1 ? "" : "s", o.csv ? not_searched_text(f) : "");
}

void check_maximize(const SearchCommandOptions& o) {
  const std::pair<const char*, bool> others[] = {{"--objective", o.objective != "time"},
                                                 {"--against", !o.against.empty()},
                                                 {"--pareto", o.pareto},
                                                 {"--csv", o.csv},
                                                 {"--tokens", o.tokens > 0},
                                                 {"--deadline", o.deadline_days > 0},
                                                 {"--budget", o.budget_usd > 0},
                                                 {"--prices", !o.prices.file.empty()},
                                                 {"--within", o.within > 0},
                                                 {"several --gpus", o.gpus.size() > 1},
                                                 {"several --cluster", o.clusters.size() > 1}};
  for (const auto& [name, given] : others) {
    if (given) throw Error(fmt::format("--maximize: finds one size on one machine; {} does not go with it", name));
  }
}

void check_options(const SearchCommandOptions& o, const Common& common) {
  if (std::find(std::begin(kObjectives), std::end(kObjectives), o.objective) == std::end(kObjectives))
    throw Error(fmt::format("--objective: {}", unknown_name("objective", o.objective, kObjectives)));
  if ((o.deadline_days > 0 || o.budget_usd > 0) && o.tokens <= 0)
    throw Error("--deadline, --budget: need --tokens, the length of the run");
  if (o.csv && (common.json || o.pareto || !o.against.empty()))
    throw Error("--csv: has a row of each strategy or machine, and no place for --json, --pareto and --against");
  if (!o.maximize.empty()) check_maximize(o);
}

// Throws Error if machines are to be chosen by rent, but no machine has a known rent.
void check_prices(const std::vector<SearchTarget>& targets, const SearchCommandOptions& o, const PriceList& prices) {
  if (o.objective != "cost" && o.budget_usd <= 0) return;
  for (const SearchTarget& t : targets) {
    const Price* price = prices.find(t.open.spec.cluster.gpu.id);
    if (price != nullptr && price->cloud) return;
  }
  throw Error(fmt::format("--objective cost, --budget: no price to rent {} is known; give one by --prices",
                          targets.front().open.spec.cluster.gpu.id));
}

}  // namespace

Outcome search_command(const SearchCommandOptions& given, const Common& common) {
  SearchCommandOptions o = given;
  bool generates = false;
  together(o.peers, [&] {
    o.text = read_spec_text(o.spec);
    generates = parse_open_spec(o.text.text, o.text.path, o.overrides).spec.generation.has_value();
  });
  if (generates) return generation_search(o, common);
  check_options(o, common);
  if (!o.maximize.empty()) return largest_command(o, common);
  PriceList prices;
  std::vector<SearchTarget> targets;
  together(o.peers, [&] {
    prices = load_prices(o.prices);
    targets = targets_of(o);
    check_prices(targets, o, prices);
  });
  Findings f;
  f.cases = make_cases(std::move(targets), o);
  search_all(f.cases, o, common, prices);
  const bool none = std::all_of(f.cases.begin(), f.cases.end(), [](const auto& c) { return !c.result.reason.empty(); });
  if (none) throw Error(f.cases.front().result.reason);
  f.best = choose(f.cases, o);
  const bool stopped = std::any_of(f.cases.begin(), f.cases.end(), [](const auto& c) { return c.result.stopped; });
  const bool proven = !stopped && f.best != nullptr;
  const SearchCase& shown = f.shown();
  // All processes that search together compute the advice, because any one of them may be the only one left to print
  // it.
  if (proven && (!o.csv || common.page)) f.advice = advice(*shown.space, shown.profile, shown.result, common.threads);
  f.rival = rival_of(shown, o);
  for (const SearchCase& c : f.cases) {
    if (o.pareto && proven && c.machine.excluded.empty() && !add_to_front(c, o, common, f.front)) f.front_cut = true;
  }
  f.front = front_of(std::move(f.front));
  if (!shown.result.best.empty()) save_found(o, *shown.space, shown.result.best.front().point);
  const int status = proven ? 0 : 1;
  const std::string log = log_of(f, o, common);
  const bool machines = f.cases.size() > 1 || o.tokens > 0;
  Outcome outcome{"", status, log};
  if (common.json)
    outcome.text = json_of(f);
  else if (o.csv)
    outcome.text = machines ? machines_csv(f.machines()) : search_csv(*shown.space, shown.result);
  else
    outcome.text = text_of(f, o, prices, common.style);
  if (common.page) outcome.page = page_of_findings(f, o, prices, common);
  return outcome;
}

}  // namespace orrery
