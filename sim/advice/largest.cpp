#include "sim/advice/largest.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/names.h"
#include "sim/advice/save_found.h"
#include "sim/advice/targets.h"
#include "sim/page/search.h"
#include "sim/parallel/peers.h"
#include "sim/predict/predict.h"
#include "sim/search/report.h"
#include "sim/search/search.h"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 3> kSizes = {"micro_batch", "sequence", "layers"};
// The longest sequence that is tried, as a multiple of the sequence length in the spec.
constexpr std::int64_t kMostSequences = 65536;

struct Largest {
  std::int64_t value = 0;  // the largest size that fits in memory; 0: not even the smallest fits
  std::string strategy, repeat;
  Report report;
  bool stopped = false;
};

// Micro-batches, sequence lengths or numbers of layers to try, in ascending order. If a strategy fits in memory for one
// of the values, one fits for every smaller value of the list for which there is any strategy.
using Row = std::vector<std::int64_t>;

class Finder {
 public:
  Finder(const SearchCommandOptions& o, const Common& common) : o_(o), common_(common) {
    together(o.peers, [&] { spec_ = parse_open_spec(o.text.text, o.text.path, o.overrides).spec; });
  }

  Largest run() {
    if (std::find(kSizes.begin(), kSizes.end(), o_.maximize) == kSizes.end())
      throw Error(fmt::format("--maximize: {}", unknown_name("size", o_.maximize, kSizes)));
    std::vector<Row> rows = candidates();
    for (auto row = rows.rbegin(); row != rows.rend() && largest_.value == 0 && !largest_.stopped; ++row) {
      const auto first =
          std::partition_point(row->begin(), row->end(), [&](std::int64_t size) { return !has_strategies(size); });
      climb(Row(first, row->end()));
    }
    return largest_;
  }

  const Spec& spec() const { return spec_; }  // the spec whose micro-batch, sequence or layers are maximized

 private:
  std::vector<Row> candidates() const {
    std::vector<Row> rows;
    if (o_.maximize == "micro_batch") {
      for (std::int64_t b = 1; b <= spec_.strategy.global_batch; ++b) {
        if (spec_.strategy.global_batch % b == 0) rows.push_back({b});
      }
    } else if (o_.maximize == "layers") {
      const std::int64_t gpus = o_.gpus.empty() ? spec_.gpus : o_.gpus.front();
      rows.emplace_back();
      for (std::int64_t n = 1; n <= kMostLayers; ++n) {
        if (n > 1 && gpus % (n + 2) == 0)
          // A model of n layers may have n + 2 pipeline stages (rule: pipeline_rules in models/load/check.cpp). If the
          // GPUs can be divided so, n layers may fit in memory where n - 1 do not, and a new list begins.
          rows.emplace_back();
        rows.back().push_back(n);
      }
    } else {
      rows.emplace_back();
      for (std::int64_t n = 1; n <= kMostSequences; ++n) rows.back().push_back(n * spec_.sequence);
    }
    return rows;
  }

  Space space_of(std::int64_t size) const {
    const std::string key = o_.maximize == "micro_batch"      ? "strategy.micro_batch"
                            : o_.maximize == "layers"         ? "model.layers"
                            : spec_.images || spec_.documents ? "sequence.length"
                                                              : "sequence";
    SearchTarget target = targets_of(o_, {fmt::format("{}={}", key, size)}).front();
    return {std::move(target.open), target.gpus};
  }

  bool has_strategies(std::int64_t size) const {
    const Space space = space_of(size);
    const std::vector<RankLayout> layouts = space.layouts();
    return std::any_of(layouts.begin(), layouts.end(), [&](const RankLayout& l) { return space.count(l) > 0; });
  }

  void climb(const Row& sizes) {
    // good: how many sizes of the list (micro-batches, sequences or layers), counted from the smallest, are known to
    // fit in memory
    std::size_t good = 0, step = 1;
    while (good < sizes.size() && !largest_.stopped && fits(sizes[std::min(good + step, sizes.size()) - 1])) {
      good = std::min(good + step, sizes.size());
      step *= 2;
    }
    std::size_t bad = std::min(good + step, sizes.size() + 1);
    while (bad - good > 1 && !largest_.stopped) {
      const std::size_t middle = good + (bad - good) / 2;
      (fits(sizes[middle - 1]) ? good : bad) = middle;
    }
  }

  bool fits(std::int64_t size) {
    const Space space = space_of(size);
    SearchOptions options{
        .most_memory = o_.max_memory(), .top = 1, .any = true, .threads = common_.threads, .stop = o_.stop};
    options.peers = o_.peers;
    options.progress = [&](std::string_view line) {
      common_.progress(fmt::format("{} {}: {}", o_.maximize, size, line));
    };
    SearchResult result = search(space, profile_for(space.base(), o_.profile), options);
    largest_.stopped = result.stopped;
    if (result.best.empty()) return false;
    const Found& best = result.best.front();
    if (!o_.save.empty()) save_found(o_, space, best.point);
    largest_ = {size, space.text_of(best.point), repeat_text(space, best.point, o_.profile), best.report,
                result.stopped};
    return true;
  }

  const SearchCommandOptions& o_;
  const Common& common_;
  Spec spec_;
  Largest largest_;
};

}  // namespace

namespace {

std::string json_of(const Largest& found, const SearchCommandOptions& o, bool whole) {
  nlohmann::ordered_json j = {
      {"schema", "orrery.search/1"}, {"maximize", o.maximize}, {"value", found.value}, {"proven", whole}};
  if (found.value > 0) j["name"] = found.strategy;
  if (found.value > 0) j["report"] = nlohmann::ordered_json::parse(to_json(found.report));
  return j.dump(2) + '\n';
}

// The lines that report the largest size found; the first is also the title of the HTML page.
std::vector<std::string> lines_of(const Largest& found, const SearchCommandOptions& o, bool whole) {
  if (found.value == 0 && found.stopped) return {"interrupted before anything was found that fits"};
  if (found.value == 0) return {fmt::format("{}: no size fits", o.maximize)};
  return {
      fmt::format("{} {} that fits: {}", whole ? "largest" : "interrupted: the largest so far", o.maximize,
                  found.value),
      fmt::format("  {}: {} of {} per GPU, step {}", found.strategy,
                  memory_text(static_cast<double>(found.report.memory.peak_device)),
                  memory_text(static_cast<double>(found.report.memory.capacity)), time_text(found.report.step_time_s))};
}

}  // namespace

Outcome largest_command(const SearchCommandOptions& o, const Common& common) {
  Finder finder(o, common);
  const Largest found = finder.run();
  const bool whole = found.value > 0 && !found.stopped;
  const std::vector<std::string> lines = lines_of(found, o, whole);
  Outcome outcome{"", whole ? 0 : 1};
  if (common.json) {
    outcome.text = json_of(found, o, whole);
  } else {
    outcome.text = fmt::format("{}\n", fmt::join(lines, "\n"));
    if (found.value > 0) outcome.text += how_to_repeat(o, found.repeat, common.style);
  }
  if (common.page)
    outcome.page = largest_page(lines.front(), finder.spec(), found.value > 0 ? &found.report : nullptr, lines,
                                {o.text, o.overrides, {}, common.command, common.version});
  return outcome;
}

}  // namespace orrery
