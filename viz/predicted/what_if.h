#pragma once

#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "viz/predicted/step.h"

namespace orrery {

// A value to which a setting may be changed. reason: the message of the spec's check if it forbids the change now; ""
// if the change is possible.
struct Choice {
  std::string value, reason;
};

// One setting of a spec that the user can change. key: the spec's key, or "nvlink" or "network" for factors of link
// speeds.
struct Knob {
  std::string key, title;
  std::vector<std::string> values;
  std::string value;  // the current value of the setting
};

// A spec file with the changes that the user makes to its settings. When the user changes the tensor- or
// pipeline-parallel degree, the spec's data-parallel degree is adjusted, so that the spec stays valid.
class WhatIf {
 public:
  // overrides: values for keys of the file, applied before the user's changes. Throws the errors of load_spec().
  explicit WhatIf(std::string path, std::vector<std::string> overrides = {});

  const std::vector<Knob>& knobs() const { return knobs_; }
  std::vector<Choice> choices(std::size_t knob) const;
  // Changes a setting. If the value is not allowed, throws the spec's Error and changes nothing.
  void set(std::size_t knob, const std::string& value);
  Spec spec() const { return with(knobs_.size(), ""); }

 private:
  Spec with(std::size_t knob, const std::string& value) const;

  std::string path_;
  std::vector<std::string> overrides_;
  std::vector<Knob> knobs_;
  // the settings' values in the spec file; a setting that still has this value needs no override
  std::vector<std::string> original_;
};

// A parallelism strategy that is to be simulated.
struct Candidate {
  // Settings such as "strategy.tensor=4", applied after the overrides that the user gave with the file.
  std::vector<std::string> overrides;
  int tensor = 1, pipeline = 1;
  std::string sharding, recompute;
};
std::string name_of(const Candidate& candidate);  // a name such as "tensor 4, pipeline 2, zero1, recompute full"
// Returns the first `most` valid combinations, in a fixed order, of a tensor-parallel degree up to 8, a
// pipeline-parallel degree up to 16, one of the common shardings, and no or full recomputation.
std::vector<Candidate> candidates(const std::string& path, std::size_t most, const SpecOptions& options = {});

// The result of simulating one strategy. step_s: of a generated text, the seconds of all of a batch.
struct Tried {
  Candidate candidate;
  double step_s = 0, gpu_hours = 0, mfu = 0;
  Bytes memory = 0, capacity = 0;
  bool fits = true;
  std::string error;  // reason why the simulation failed, in which case all figures are 0
};
// Returns whether `a` is a better strategy than `b`: strategies that fit in memory come first, among them the fastest;
// strategies that could not be simulated come last.
bool better(const Tried& a, const Tried& b);
Tried try_candidate(const std::string& path, const Candidate& candidate, const SpecOptions& options = {},
                    const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
