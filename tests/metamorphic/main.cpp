// Relations that must hold of random specs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tests/metamorphic/relations.h"
#include "tests/metamorphic/schema.h"

namespace orrery::test {
namespace {

struct Options {
  std::uint64_t count = 200, seed = 1, first = 0;
  std::vector<std::string> only, schedules;
  double seconds = 0;
  bool strict = false, refused = false, hashes = false, schema = false;
  std::string again;
};

constexpr std::uint64_t kMostTasks = 300'000;  // most tasks of a spec that is changed and simulated many times

struct Tally {
  std::uint64_t drawn = 0, valid = 0, slow = 0;
  double slowest = 0;
};

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Prints what two builds that predict alike print alike.
void print_hashes(std::uint64_t number, const Run& run) {
  const Report& r = run.report;
  fmt::print("{} {} {:.12g} {}\n", number, r.plan_hash, r.step_time_s, r.memory.peak);
}

void check_one(Checks& checks, const Options& options, std::uint64_t number, Tally& tally) {
  Draw draw(options.seed * 1'000'003 + number);
  Json spec = random_spec(draw, options.schedules);
  checks.number = number;
  const Run* run = checks.simulate(spec);
  if (run != nullptr && draw.chance(.12)) {
    const Json turned = with_a_switch_turned(draw, spec);
    if (const Run* other = checks.simulate(turned); other != nullptr) {
      spec = turned;
      run = other;
    }
  }
  if (run == nullptr && options.refused) fmt::print(stderr, "# {} refused: {}\n", number, checks.refusal);
  if (run == nullptr) return;
  ++tally.valid;
  if (options.hashes) return print_hashes(number, *run);
  if (run->report.simulation.tasks > kMostTasks) return sane(checks, {spec, *run, draw});
  for (const Relation& relation : relations()) {
    const bool drawn = draw.chance(relation.share);
    const bool asked = std::find(options.only.begin(), options.only.end(), relation.name) != options.only.end();
    if (options.only.empty() ? !drawn : !asked) continue;
    try {
      relation.function(checks, {spec, *run, draw});
    } catch (const std::exception& e) {
      checks.violated(relation.name, fmt::format("gives up: {}", e.what()), spec);
    }
  }
}

// Whether the options select a check: a check named in `only`, or every check if none is named.
bool takes(const Options& options, std::string_view name) {
  return options.only.empty() || std::find(options.only.begin(), options.only.end(), name) != options.only.end();
}

// Checks the specs of a file of violations: the relation that the member "check" names, or all where it is missing; on
// both of a pair, either of which may be the one that was drawn.
void check_again(Checks& checks, const std::string& path, Tally& tally) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    const Json violation = Json::parse(line);
    const std::string check = violation.value("check", "");
    const auto named = [&](const Relation& r) { return check.empty() || check == r.name; };
    if (std::ranges::none_of(relations(), named)) throw std::runtime_error(check + " is no relation");
    for (const char* which : {"spec", "other"}) {
      if (!violation.contains(which)) continue;
      const Json& spec = violation.at(which);
      if (spec.dump() == std::exchange(last, spec.dump())) continue;
      checks.number = tally.drawn++;
      Draw draw(checks.number);
      const Run* run = checks.simulate(spec);
      tally.valid += run != nullptr ? 1 : 0;
      for (const Relation& relation : relations()) {
        if (run != nullptr && named(relation)) relation.function(checks, {spec, *run, draw});
      }
      checks.forget();
    }
  }
}

void check_closed_forms(Checks& checks, const Options& options) {
  constexpr std::pair<std::string_view, void (*)(Checks&)> kForms[] = {
      {"bubbles", bubbles}, {"traffic", traffic}, {"every_gpu", every_gpu}, {"searched", searched}};
  for (const auto& [name, function] : kForms) {
    if (takes(options, name)) function(checks);
    checks.forget();
  }
}

void say(const Checks& checks, const Tally& tally, double seconds) {
  std::uint64_t sum = 0;
  std::string by_relation, furthest;
  for (const auto& [name, count] : checks.violations) {
    sum += count;
    by_relation += fmt::format(", {} {}", name, count);
  }
  for (const auto& [name, excess] : checks.furthest) furthest += fmt::format(", {} {:.1f} %", name, 100 * excess);
  fmt::print(stderr, "# {} specs, {} valid, {} simulations, {:.0f} s, slowest {:.1f} s (number {}): {} violations{}\n",
             tally.drawn, tally.valid, checks.simulated, seconds, tally.slowest, tally.slow, sum, by_relation);
  if (!furthest.empty()) fmt::print(stderr, "# searched orders went against monotony by{}\n", furthest.substr(1));
}

int run(const Options& options) {
  if (options.schema) return schema_violations(options.seed, options.count) == 0 ? 0 : 1;
  Checks checks(options.strict);
  Tally tally;
  const auto begin = Clock::now();
  if (!options.again.empty()) {
    check_again(checks, options.again, tally);
    say(checks, tally, since(begin));
    return checks.violations.empty() && tally.valid > 0 ? 0 : 1;
  }
  if (!options.hashes) check_closed_forms(checks, options);
  auto said = Clock::now();
  for (; tally.drawn < options.count && (options.seconds == 0 || since(begin) < options.seconds); ++tally.drawn) {
    const auto own = Clock::now();
    check_one(checks, options, options.first + tally.drawn, tally);
    checks.forget();
    if (since(own) > tally.slowest) {
      tally.slowest = since(own);
      tally.slow = options.first + tally.drawn;
    }
    if (since(said) < 30) continue;
    said = Clock::now();
    fmt::print(stderr, "# {} of {} specs, {} valid\n", tally.drawn + 1, options.count, tally.valid);
  }
  say(checks, tally, since(begin));
  return checks.violations.empty() && tally.valid > 0 ? 0 : 1;
}

}  // namespace
}  // namespace orrery::test

int main(int argc, char** argv) {
  orrery::test::Options options;
  CLI::App app{"Holds random specs to relations; a line of JSON for each that does not hold, and status 1"};
  app.add_option("--count", options.count, "specs to draw");
  app.add_option("--seed", options.seed, "which specs");
  app.add_option("--first", options.first, "number of the first spec, to run parts side by side or one again");
  app.add_option("--only", options.only, "relations to check, on every spec")->delimiter(',');
  app.add_option("--schedule", options.schedules, "pipelines of these schedules alone")->delimiter(',');
  app.add_option("--seconds", options.seconds, "draw no more specs after so long");
  app.add_option("--again", options.again, "draw none: check the specs of a file of violations")
      ->check(CLI::ExistingFile);
  app.add_flag("--strict", options.strict, "no slack for orders that are searched");
  app.add_flag("--hashes", options.hashes, "print the plan's hash, step time and peak memory of each spec, check none");
  app.add_flag("--schema", options.schema, "hold specs to the JSON Schema of specs, simulate none");
  app.add_flag("--refused", options.refused, "say why specs were refused");
  CLI11_PARSE(app, argc, argv);
  return orrery::test::run(options);
}
