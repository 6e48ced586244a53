#include "sim/search_largest.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/error.h"
#include "models/names.h"
#include "sim/predict.h"
#include "sim/search.h"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 3> kSizes = {"micro_batch", "sequence", "layers"};
constexpr std::int64_t kMostLayers = 4096;      // spec_check.cpp
constexpr std::int64_t kMostSequences = 65536;  // of the spec's, in one

struct Largest {
  std::int64_t value = 0;  // 0: not even the smallest
  std::string strategy;
  Report report;
};

class Finder {
 public:
  Finder(const SearchCommandOptions& o, const Common& common)
      : o_(o), common_(common), open_(load_open_spec(o.spec, o.overrides)) {
    gpus_ = o.gpus.empty() ? open_.spec.gpus : o.gpus.front();
    if (!o.gpus.empty()) open_.spec.cluster.nodes = ceil_div(gpus_, std::max(1, open_.spec.cluster.gpus_per_node));
  }

  Largest run() {
    if (std::find(kSizes.begin(), kSizes.end(), o_.maximize) == kSizes.end())
      throw Error(fmt::format("--maximize: {}", unknown_name("size", o_.maximize, kSizes)));
    const std::vector<std::int64_t> sizes = candidates();
    std::size_t good = 0, step = 1;  // the first `good` sizes fit
    while (good < sizes.size() && fits(sizes[std::min(good + step, sizes.size()) - 1])) {
      good = std::min(good + step, sizes.size());
      step *= 2;
    }
    std::size_t bad = std::min(good + step, sizes.size() + 1);
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      (fits(sizes[middle - 1]) ? good : bad) = middle;
    }
    return largest_;
  }

 private:
  std::vector<std::int64_t> candidates() const {
    std::vector<std::int64_t> sizes;
    const Spec& spec = open_.spec;
    if (o_.maximize == "micro_batch") {
      for (std::int64_t b = 1; b <= spec.strategy.global_batch; ++b) {
        if (spec.strategy.global_batch % b == 0) sizes.push_back(b);
      }
    } else if (o_.maximize == "layers") {
      for (std::int64_t n = 1; n <= kMostLayers; ++n) sizes.push_back(n);
    } else {
      for (std::int64_t n = 1; n <= kMostSequences; ++n) sizes.push_back(n * spec.sequence);
    }
    return sizes;
  }

  bool fits(std::int64_t size) {
    OpenSpec open = open_;
    if (o_.maximize == "micro_batch") open.search.push_back({"micro_batch", {fmt::format("{}", size)}, "--maximize"});
    if (o_.maximize == "sequence") open.spec.sequence = size;
    if (o_.maximize == "layers") open.spec.model.layers = size;
    const Space space(open, gpus_);
    SearchOptions options{
        .most_memory = o_.max_memory(), .top = 1, .any = true, .threads = common_.threads, .stop = o_.stop};
    options.progress = [&](std::string_view line) {
      common_.progress(fmt::format("{} {}: {}", o_.maximize, size, line));
    };
    SearchResult result = search(space, profile_for(space.base(), o_.profile), options);
    if (result.best.empty()) return false;
    largest_ = {size, space.text_of(result.best.front().point), std::move(result.best.front().report)};
    return true;
  }

  const SearchCommandOptions& o_;
  const Common& common_;
  OpenSpec open_;
  std::int64_t gpus_ = 1;
  Largest largest_;
};

}  // namespace

Outcome largest_command(const SearchCommandOptions& o, const Common& common) {
  Largest found = Finder(o, common).run();
  const bool whole = found.value > 0 && (o.stop == nullptr || !*o.stop);
  if (common.json) {
    nlohmann::ordered_json j = {{"schema", "orrery.search/1"}, {"maximize", o.maximize}, {"value", found.value}};
    if (found.value > 0) j["name"] = found.strategy;
    if (found.value > 0) j["report"] = nlohmann::ordered_json::parse(to_json(found.report));
    return {j.dump(2) + '\n', whole ? 0 : 1};
  }
  if (found.value == 0) return {fmt::format("{}: not even the smallest fits\n", o.maximize), 1};
  return {
      fmt::format("largest {} that fits: {}\n  {}: {} of {} per GPU, step {}\n", o.maximize, found.value,
                  found.strategy, memory_text(static_cast<double>(found.report.memory.peak_device)),
                  memory_text(static_cast<double>(found.report.memory.capacity)), time_text(found.report.step_time_s)),
      whole ? 0 : 1};
}

}  // namespace orrery
