#include "viz/predicted/what_if.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/generate/generate.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

constexpr std::string_view kFreeData = "strategy.data=null";
const std::vector<std::string>& factors() {
  static const std::vector<std::string> values = {"0.25", "0.5", "1", "2", "4"};
  return values;
}

std::vector<std::string> strings(const std::vector<std::string_view>& views) { return {views.begin(), views.end()}; }

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleRow& row : schedule_rows()) names.emplace_back(row.name);
  return names;
}

std::string recompute_name(const Recompute& r) {
  if (r.layer) return "full";
  return r.attention ? "selective" : "none";
}

std::string tier_name(MemoryTier tier) { return std::string(row_of(tier).in_spec); }

std::vector<std::string> tier_names() {
  std::vector<std::string> names;
  for (const MemoryTierRow& row : kMemoryTiers) names.emplace_back(row.in_spec);
  return names;
}

std::string whole(std::int64_t value) { return std::to_string(value); }

std::vector<std::string> multiples_of(std::int64_t value) {
  std::vector<std::string> values;
  for (const std::int64_t divisor : {4, 2, 1}) {
    if (value % divisor == 0) values.push_back(whole(value / divisor));
  }
  for (const std::int64_t factor : {2, 4}) values.push_back(whole(value * factor));
  return values;
}

std::vector<Knob> knobs_of(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const std::vector<std::string> degrees = {"1", "2", "4", "8", "16"};
  const std::vector<std::string> tiers = tier_names();
  std::vector<Knob> knobs = {
      {"strategy.tensor", "tensor", degrees, whole(s.tensor)},
      {"strategy.pipeline", "pipeline", degrees, whole(s.pipeline)},
      {"strategy.context", "context", {"1", "2", "4", "8"}, whole(s.context)},
      {"strategy.expert", "expert", {"1", "2", "4", "8", "16", "32", "64"}, whole(s.expert)},
      {"strategy.virtual_stages", "virtual stages", {"1", "2", "4", "8"}, whole(s.virtual_stages)},
      {"strategy.schedule", "schedule", schedule_names(), s.schedule},
      {"strategy.sharding", "sharding", strings(sharding_names()), std::string(name_of(s.sharding))},
      {"strategy.micro_batch", "micro-batch", {"1", "2", "4", "8"}, whole(s.micro_batch)},
      {"strategy.global_batch", "global batch", multiples_of(s.global_batch), whole(s.global_batch)},
      {"strategy.recompute", "recompute", {"none", "selective", "full"}, recompute_name(s.recompute)},
      {"strategy.sequence_parallel", "sequence parallel", {"false", "true"}, s.sequence_parallel ? "true" : "false"},
      {"strategy.precision", "precision", strings(precision_names()), std::string(name_of(s.precision))},
      {"strategy.offload.optimizer", "optimizer offload", tiers, tier_name(s.offload.optimizer)},
      {"strategy.offload.activations", "activation offload", tiers, tier_name(s.offload.activations)},
      {"nvlink", "NVLink faster by", factors(), "1"},
      {"network", "network faster by", factors(), "1"}};
  for (Knob& k : knobs) {
    if (std::find(k.values.begin(), k.values.end(), k.value) == k.values.end()) k.values.push_back(k.value);
  }
  return knobs;
}

}  // namespace

WhatIf::WhatIf(std::string path, std::vector<std::string> overrides)
    : path_(std::move(path)), overrides_(std::move(overrides)), knobs_(knobs_of(load_spec(path_, overrides_))) {
  for (const Knob& k : knobs_) original_.push_back(k.value);
}

// Loads the spec with the current settings, but with one of them changed.
Spec WhatIf::with(std::size_t knob, const std::string& value) const {
  std::vector<std::string> overrides = overrides_;
  double nvlink = 1, network = 1;
  for (std::size_t i = 0; i < knobs_.size(); ++i) {
    const Knob& k = knobs_[i];
    const std::string& wanted = i == knob ? value : k.value;
    if (k.key == "nvlink") {
      nvlink = std::stod(wanted);
    } else if (k.key == "network") {
      network = std::stod(wanted);
    } else if (wanted != original_[i]) {
      overrides.push_back(k.key + "=" + wanted);
      if (k.key == "strategy.tensor" || k.key == "strategy.pipeline" || k.key == "strategy.context")
        overrides.emplace_back(kFreeData);
    }
  }
  Spec spec = load_spec(path_, overrides);
  spec.cluster.gpu.nvlink_GBps *= nvlink;
  spec.cluster.nic_Gbps *= network;
  return spec;
}

std::vector<Choice> WhatIf::choices(std::size_t knob) const {
  std::vector<Choice> result;
  for (const std::string& value : knobs_[knob].values) {
    Choice choice{value, ""};
    try {
      with(knob, value);
    } catch (const Error& e) {
      choice.reason = e.what();
    }
    result.push_back(std::move(choice));
  }
  return result;
}

void WhatIf::set(std::size_t knob, const std::string& value) {
  with(knob, value);
  knobs_[knob].value = value;
}

std::vector<Candidate> candidates(const std::string& path, std::size_t most, const SpecOptions& options) {
  std::vector<Candidate> result;
  for (const int tensor : {1, 2, 4, 8}) {
    for (const int pipeline : {1, 2, 4, 8, 16}) {
      for (const ShardingRow& row : sharding_rows()) {
        if (!row.suggested && sharding_of(row) != Sharding::none) continue;
        const std::string sharding(row.name);
        for (const char* recompute : {"none", "full"}) {
          if (result.size() == most) return result;
          Candidate c{options.overrides, tensor, pipeline, sharding, recompute};
          for (const std::string& key :
               {fmt::format("strategy.tensor={}", tensor), fmt::format("strategy.pipeline={}", pipeline),
                fmt::format("strategy.sharding={}", sharding), fmt::format("strategy.recompute={}", recompute),
                std::string(kFreeData)})
            c.overrides.push_back(key);
          try {
            const bool text = load_spec(path, c.overrides).generation.has_value();
            // A generated text has no gradients and nothing to recompute: these strategies would be the same.
            if (text && (sharding_of(row) != Sharding::none || c.recompute != "none")) continue;
            result.push_back(std::move(c));
          } catch (const Error&) {  // left out: the spec's rules do not allow this combination
          }
        }
      }
    }
  }
  return result;
}

std::string name_of(const Candidate& c) {
  return fmt::format("tensor {}, pipeline {}, {}, recompute {}", c.tensor, c.pipeline, c.sharding, c.recompute);
}

bool better(const Tried& a, const Tried& b) {
  const auto worth = [](const Tried& t) { return std::tuple(!t.error.empty(), !t.fits, t.step_s); };
  return worth(a) < worth(b);
}

// Predicts a spec that generates text: the time of all of a batch, and the memory at the longest context.
static Tried tried_text(const Spec& spec, Tried tried, Profile profile, const std::atomic<bool>* stop) {
  const GenerationReport report = predict_batch(spec, std::move(profile), stop);
  tried.step_s = report.total_s;
  tried.gpu_hours = report.total_s * static_cast<double>(spec.gpus) / 3600;
  tried.memory = report.memory.sum();
  tried.capacity = report.memory.allowed;
  tried.fits = report.memory.fits();
  return tried;
}

Tried try_candidate(const std::string& path, const Candidate& candidate, const SpecOptions& options,
                    const std::atomic<bool>* stop) {
  Tried tried{candidate, 0, 0, 0, 0, 0, true, ""};
  try {
    const Spec spec = load_spec(path, candidate.overrides);
    Profile profile = profile_for(spec, options.profile);
    if (spec.generation) return tried_text(spec, std::move(tried), std::move(profile), stop);
    const Report report = predict(spec, std::move(profile), false, stop).report;
    tried.step_s = report.step_time_s;
    tried.gpu_hours = report.gpu_hours;
    tried.mfu = report.mfu;
    tried.memory = report.memory.peak_device;
    tried.capacity = report.memory.capacity;
    tried.fits = report.memory.fits;
  } catch (const Error& e) {
    tried.error = e.what();
  }
  return tried;
}

}  // namespace orrery
