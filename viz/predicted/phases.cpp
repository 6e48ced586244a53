#include "viz/predicted/phases.h"

#include <algorithm>

#include "models/generation/generation_plan.h"
#include "sim/generate/generated_steps.h"
#include "viz/timeline/bands.h"

namespace orrery {
namespace {

// Returns the bands of a process's compute lane.
std::vector<Band> bands_of(const Timeline& t, std::uint32_t process) {
  for (const std::uint32_t track : t.processes[process].tracks) {
    if (t.tracks[track].level == 0 && t.tracks[track].name == name_of(LaneKind::compute))
      return bands_of(t, t.tracks[track]);
  }
  return {};
}

}  // namespace

Phases::Phases(const Spec& spec, const Plan& plan) : plan_(plan), second_(spec.second.has_value()) {
  if (second_) names_ = {std::string(trained_name(spec.second->role)), std::string(name_of(spec.second->role))};
  if (!spec.generation) return;
  names_ = {"prefill", "decode"};
  const std::vector<GenerationPass> passes = generation_passes(*spec.generation);
  for (std::int64_t i = 0; i < plan.micro_batches; ++i) {
    const GenerationPass& pass = passes.at(static_cast<std::size_t>(i / spec.strategy.micro_batches()));
    passes_.push_back(names_of(spec, {pass}).front());
    decodes_.push_back(pass.answers(*spec.generation));
  }
}

void add_cache_use(const Step& step, Timeline& t) {
  const Spec& spec = step.spec;
  const std::vector<std::vector<Bytes>> bytes =
      cache_use(spec, step.prediction.plan, generation_passes(*spec.generation));
  for (std::uint32_t p = 0; p < t.processes.size(); ++p) {
    Counter used{kCacheCounter, {"in use"}, {}, {}};
    for (const Band& band : bands_of(t, p)) {
      const std::int64_t pass = std::max(0, band.micro_batch) / spec.strategy.micro_batches();
      used.times.push_back(band.begin);
      used.values.push_back(static_cast<double>(bytes[p].at(static_cast<std::size_t>(pass))));
    }
    t.processes[p].counters.push_back(std::move(used));
  }
}

}  // namespace orrery
