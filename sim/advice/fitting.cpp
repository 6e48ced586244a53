#include "sim/advice/fitting.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/partition/rank_groups.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

constexpr std::size_t kShown = 3;
constexpr std::size_t kPairs = 40;  // greatest number of pairs of changes to simulate

using Overrides = std::vector<std::string>;

// Adds a change of the spec that doubles one parallel degree and halves the data-parallel degree, if the data-parallel
// degree is even.
void add_twice(std::vector<Overrides>& changes, const Strategy& s, std::string_view key, std::int64_t degree) {
  if (s.data % 2 == 0)
    changes.push_back({fmt::format("strategy.{}={}", key, 2 * degree), fmt::format("strategy.data={}", s.data / 2)});
}

// Changes of the spec by one technique each, those that cost the least time first: sharding of optimizer states,
// gradients and weights comes before recomputation and offload.
std::vector<Overrides> small_changes(const Spec& spec) {
  const Strategy& s = spec.strategy;
  std::vector<Overrides> changes;
  for (const char* sharding : {"zero1", "zero2", "fsdp"})
    changes.push_back({fmt::format("strategy.sharding={}", sharding)});
  if (s.micro_batch % 2 == 0) changes.push_back({fmt::format("strategy.micro_batch={}", s.micro_batch / 2)});
  changes.push_back({"strategy.recompute=selective"});
  changes.push_back({"strategy.recompute=full"});
  if (s.tensor > 1 && !s.sequence_parallel) changes.push_back({"strategy.sequence_parallel=true"});
  add_twice(changes, s, "tensor", s.tensor);
  add_twice(changes, s, "pipeline", s.pipeline);
  if (has_experts(spec)) changes.push_back({fmt::format("strategy.expert={}", 2 * s.expert)});
  add_twice(changes, s, "context", s.context);
  changes.push_back({"strategy.offload.activations=cpu"});
  changes.push_back({"strategy.offload.optimizer=cpu"});
  changes.push_back({"strategy.offload.optimizer=cpu", "strategy.offload.gradients=cpu"});
  return changes;
}

bool same_key(const Overrides& a, const Overrides& b) {
  const auto key_of = [](const std::string& set) { return set.substr(0, set.find('=')); };
  return std::any_of(a.begin(), a.end(), [&](const std::string& x) {
    return std::any_of(b.begin(), b.end(), [&](const std::string& y) { return key_of(x) == key_of(y); });
  });
}

Overrides joined(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Overrides more_nodes(const Spec& spec, std::int64_t times) {
  return {fmt::format("cluster.nodes={}", times * spec.cluster.nodes), fmt::format("gpus={}", times * spec.gpus),
          fmt::format("strategy.data={}", times * spec.strategy.data)};
}

// Simulates changes of a spec and keeps those that fit in memory, until there are enough to print.
class Tries {
 public:
  Tries(const SpecText& text, const Overrides& overrides, const std::string& profile)
      : text_(text), overrides_(overrides), profile_(profile) {}

  // Simulates the step with a change of the spec; returns whether the step then fits in memory.
  bool fits(const Overrides& change) {
    Overrides all = overrides_;
    all.insert(all.end(), change.begin(), change.end());
    try {
      const Spec spec = parse_spec(text_.text, text_.path, all);
      const Report report = predict_report(spec, profile_for(spec, profile_));
      if (report.memory.fits) found.push_back({change, report.step_time_s, report.memory.peak_device});
      return report.memory.fits;
    } catch (const Error&) {  // the spec's rules forbid the changed spec
      return false;
    }
  }
  bool enough() const { return found.size() >= kShown; }

  std::vector<FittingChange> found;

 private:
  const SpecText& text_;
  const Overrides& overrides_;
  const std::string& profile_;
};

}  // namespace

std::vector<FittingChange> fitting_changes(const SpecText& text, const Overrides& overrides,
                                           const std::string& profile) {
  const Spec spec = parse_spec(text.text, text.path, overrides);
  Tries tries(text, overrides, profile);
  std::vector<Overrides> short_of;  // changes that do not make the step fit in memory by themselves
  for (const Overrides& change : small_changes(spec)) {
    if (!tries.enough() && !tries.fits(change)) short_of.push_back(change);
  }
  std::size_t pairs = 0;
  for (std::size_t sum = 1; sum < 2 * short_of.size() && !tries.enough(); ++sum) {
    for (std::size_t i = 0; 2 * i < sum && !tries.enough() && pairs < kPairs; ++i) {
      if (sum - i >= short_of.size() || same_key(short_of[i], short_of[sum - i])) continue;
      ++pairs;
      tries.fits(joined(short_of[i], short_of[sum - i]));
    }
  }
  for (const std::int64_t times : {2, 4, 8}) {
    if (!tries.enough()) tries.fits(more_nodes(spec, times));
  }
  return std::move(tries.found);
}

Table fitting_table(const std::vector<FittingChange>& changes, double step_s) {
  Table table{.columns = {{"change", "", Align::left}, {"step", ""}, {"", ""}, {"fullest GPU", ""}}, .rows = {}};
  for (const FittingChange& c : changes) {
    std::string set;
    for (const std::string& s : c.set) set += fmt::format("{}--set {}", set.empty() ? "" : " ", s);
    table.rows.push_back({set, time_text(c.step_s), fmt::format("{:+.1f} %", 100 * (c.step_s / step_s - 1)),
                          memory_text(static_cast<double>(c.peak))});
  }
  return table;
}

std::string fitting_text(const std::vector<FittingChange>& changes, double step_s, const Style& style) {
  if (changes.empty()) return "";
  return heading("the smallest changes that fit", style) + "\n" +
         print(fitting_table(changes, step_s), "  ", style.columns);
}

}  // namespace orrery
