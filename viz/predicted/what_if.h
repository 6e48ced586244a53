#pragma once

#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "viz/predicted/step.h"

namespace orrery {

// A value that a knob may take, and the reason why it cannot be chosen now: the spec's Error, "" if it can.
struct Choice {
  std::string value, reason;
};

// One setting of a spec that the user can change. key: the spec's key; "nvlink" and "network" are factors of link
// speeds.
struct Knob {
  std::string key, title;
  std::vector<std::string> values;
  std::string value;  // current value
};

// A spec file and the user's changes to it. Every change keeps the spec valid: the file's data-parallel degree is
// adjusted, so that tensor and pipeline degrees can be changed.
class WhatIf {
 public:
  // overrides: values for keys of the file, applied before any knob. Throws what load_spec throws.
  explicit WhatIf(std::string path, std::vector<std::string> overrides = {});

  const std::vector<Knob>& knobs() const { return knobs_; }
  std::vector<Choice> choices(std::size_t knob) const;
  // Sets a knob. Throws the spec's Error, and changes nothing, where the value is not allowed.
  void set(std::size_t knob, const std::string& value);
  Spec spec() const { return with(knobs_.size(), ""); }

 private:
  Spec with(std::size_t knob, const std::string& value) const;

  std::string path_;
  std::vector<std::string> overrides_;
  std::vector<Knob> knobs_;
  std::vector<std::string> original_;  // values in the file; knobs with these values need no override
};

// A strategy to try.
struct Candidate {
  std::vector<std::string> overrides;  // for example "strategy.tensor=4"; the overrides given with the file come first
  int tensor = 1, pipeline = 1;
  std::string sharding, recompute;
};
std::string name_of(const Candidate& candidate);  // "tensor 4, pipeline 2, zero1, recompute full"
// Every valid combination of tensor and pipeline degrees, sharding and recomputation of a spec, in a fixed order.
std::vector<Candidate> candidates(const std::string& path, const SpecOptions& options = {});

// The results of simulating a candidate.
struct Tried {
  Candidate candidate;
  double step_s = 0, gpu_hours = 0, mfu = 0;
  Bytes memory = 0, capacity = 0;
  bool fits = true;
  std::string error;  // reason why the candidate could not be simulated; the figures are then 0
};
// Whether `a` ranks before `b`: candidates that fit in memory come first, then faster ones; those that could not be
// simulated come last.
bool better(const Tried& a, const Tried& b);
Tried try_candidate(const std::string& path, const Candidate& candidate, const SpecOptions& options = {});

}  // namespace orrery
