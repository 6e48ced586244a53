#include "sim/generate/layout_search.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/open_spec.h"
#include "sim/engine/simulate.h"
#include "sim/generate/largest_batch.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

bool states(const Spec& spec, std::string_view key) {
  return std::any_of(spec.origins.begin(), spec.origins.end(),
                     [&](const Origin& o) { return o.key == key && is_given(o); });
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> list;
  for (std::int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) list.push_back(d);
  }
  return list;
}

// The values to try for a key: the stated one, or all of `otherwise`.
std::vector<std::int64_t> values_of(const Spec& spec, std::string_view key, std::int64_t stated,
                                    std::vector<std::int64_t> otherwise) {
  return states(spec, key) ? std::vector{stated} : std::move(otherwise);
}

// All layouts with one sequence a data rank, or with the stated batch.
std::vector<GenerationLayout> layouts_of(const Spec& spec) {
  const Strategy& s = spec.strategy;
  std::vector<GenerationLayout> list;
  for (const std::int64_t tensor : values_of(spec, "strategy.tensor", s.tensor, divisors(spec.gpus))) {
    for (const std::int64_t pipeline : values_of(spec, "strategy.pipeline", s.pipeline, divisors(spec.gpus))) {
      if (spec.gpus % (tensor * pipeline) != 0 || pipeline > spec.model.layers) continue;
      const std::int64_t data = spec.gpus / (tensor * pipeline);
      const std::vector<std::int64_t> experts =
          spec.model.moe ? values_of(spec, "strategy.expert", s.expert, divisors(tensor > 1 ? tensor : data))
                         : std::vector<std::int64_t>{1};
      for (const std::int64_t expert : experts)
        list.push_back(
            {tensor, pipeline, data, expert, states(spec, "generate.batch") ? spec.generation->batch : data});
    }
  }
  return list;
}

std::vector<std::string> settings_of(const GenerationLayout& l, bool experts) {
  std::vector<std::string> list = {fmt::format("strategy.tensor={}", l.tensor),
                                   fmt::format("strategy.pipeline={}", l.pipeline),
                                   fmt::format("strategy.data={}", l.data), fmt::format("generate.batch={}", l.batch)};
  if (experts) list.push_back(fmt::format("strategy.expert={}", l.expert));
  return list;
}

double figure_of(const FoundLayout& f, GenerationObjective objective) {
  switch (objective) {
    case GenerationObjective::throughput:
      return -f.report.tokens_per_s;
    case GenerationObjective::first_token:
      return f.report.first_token_s;
    case GenerationObjective::each_token:
      return f.report.token_s;
  }
  return 0;
}

// The spec with its stated values, which need not be possible together with the defaults of the others.
Spec open_generation(const SpecText& text, const LayoutSearchOptions& options) {
  OpenSpec open = parse_open_spec(text.text, text.path, options.overrides);
  if (!open.search.empty())
    throw Error(
        fmt::format("{}: {}: a list of values is searched for training steps only; state one value or leave it "
                    "out",
                    open.search.front().from, open.search.front().key));
  return std::move(open.spec);
}

class LayoutSearch {
 public:
  LayoutSearch(const SpecText& text, const LayoutSearchOptions& options)
      : text_(text), o_(options), spec_(open_generation(text, options)) {}

  LayoutsFound run() {
    if (o_.objective == GenerationObjective::each_token && spec_.generation && spec_.generation->output < 2)
      throw Error(
          fmt::format("{}: generate.output: 1: there is no further token, whose time could be least", text_.path));
    const std::vector<GenerationLayout> layouts = layouts_of(spec_);
    result_.batches_stated = states(spec_, "generate.batch");
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < layouts.size() && !stopped(); i = next++) {
        o_.progress(fmt::format("layout {} of {}", i + 1, layouts.size()));
        try_batches(layouts[i]);
      }
    };
    {
      std::vector<std::jthread> workers;
      for (unsigned i = 1; i < std::min<std::size_t>(o_.threads, layouts.size()); ++i) workers.emplace_back(work);
      work();
    }
    // Layouts of equal figures keep the order of their settings, which does not depend on the threads.
    std::sort(result_.found.begin(), result_.found.end(), [&](const FoundLayout& a, const FoundLayout& b) {
      const double x = figure_of(a, o_.objective), y = figure_of(b, o_.objective);
      return x != y ? x < y : a.layout.settings < b.layout.settings;
    });
    result_.stopped = stopped();
    return std::move(result_);
  }

 private:
  bool stopped() const { return o_.stop != nullptr && *o_.stop; }

  // Predicts a layout with the stated batch, or with 1, 2, 4, ... sequences a data rank, the most that fit, and the
  // most of these that fill all stages evenly.
  void try_batches(GenerationLayout layout) {
    const std::optional<std::int64_t> largest = predict(layout, std::nullopt);
    if (!largest || result_.batches_stated) return;
    for (std::int64_t batch = 2 * layout.data; batch < *largest && !stopped(); batch *= 2) {
      layout.batch = batch;
      predict(layout, largest);
    }
    const std::int64_t filling = layout.data * layout.pipeline;
    layout.batch = *largest / filling * filling;
    if (layout.batch > layout.data && layout.batch < *largest && !stopped()) predict(layout, largest);
    layout.batch = *largest;
    if (layout.batch > layout.data && !stopped()) predict(layout, largest);
  }

  Bytes allowed(const GeneratedMemory& m) const {
    return o_.max_memory > 0 ? std::min(m.allowed, o_.max_memory) : m.allowed;
  }

  // Predicts one layout and notes it; returns its largest batch, which is looked for unless it is given, and nothing if
  // the layout is impossible.
  std::optional<std::int64_t> predict(GenerationLayout layout, std::optional<std::int64_t> largest) {
    layout.settings = settings_of(layout, spec_.model.moe.has_value());
    std::vector<std::string> overrides = o_.overrides;
    overrides.insert(overrides.end(), layout.settings.begin(), layout.settings.end());
    try {
      const Spec spec = parse_spec(text_.text, text_.path, overrides);
      const Profile profile = profile_for(spec, o_.profile);
      GenerationReport report = predict_batch(spec, profile, o_.stop);
      const Bytes most = allowed(report.memory);
      report.largest_batch = largest ? *largest : largest_batch(spec, profile, most, o_.stop);
      largest = report.largest_batch;
      const std::lock_guard lock(mutex_);
      ++result_.predicted;
      if (report.memory.sum() > most)
        ++result_.too_large;
      else
        result_.found.push_back({std::move(layout), std::move(report)});
      return largest;
    } catch (const Error& e) {
      const std::lock_guard lock(mutex_);
      ++result_.refused;
      if (result_.refusal.empty() || e.what() < result_.refusal) result_.refusal = e.what();
    } catch (const Stopped&) {  // what was found so far stays
    }
    return std::nullopt;
  }

  const SpecText& text_;
  const LayoutSearchOptions& o_;
  const Spec spec_;
  std::mutex mutex_;
  LayoutsFound result_;
};

}  // namespace

LayoutsFound search_layouts(const SpecText& text, const LayoutSearchOptions& options) {
  return LayoutSearch(text, options).run();
}

}  // namespace orrery
