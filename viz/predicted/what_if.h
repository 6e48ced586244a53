#pragma once

#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "viz/predicted/step.h"

namespace orrery {

// A value that a knob may take, and why it cannot be taken now: the spec's own Error, "" if it can.
struct Choice {
  std::string value, reason;
};

// One thing about a spec that is tried out. key: of the spec; "nvlink" and "network" are factors of link speeds.
struct Knob {
  std::string key, title;
  std::vector<std::string> values;
  std::string value;  // as it stands
};

// A spec file and what is changed of it. Every change keeps the spec valid: what the file says of data parallelism
// gives way, so that tensor and pipeline degrees can be changed.
class WhatIf {
 public:
  // overrides: of the file's keys, before any knob. Throws what load_spec throws.
  explicit WhatIf(std::string path, std::vector<std::string> overrides = {});

  const std::vector<Knob>& knobs() const { return knobs_; }
  std::vector<Choice> choices(std::size_t knob) const;
  // Throws the spec's Error, and changes nothing, where the value cannot be taken.
  void set(std::size_t knob, const std::string& value);
  Spec spec() const { return with(knobs_.size(), ""); }

 private:
  Spec with(std::size_t knob, const std::string& value) const;

  std::string path_;
  std::vector<std::string> overrides_;
  std::vector<Knob> knobs_;
  std::vector<std::string> original_;  // values of the file: these are not overridden
};

// A strategy that was tried.
struct Candidate {
  std::vector<std::string> overrides;  // "strategy.tensor=4", the file's own first
  int tensor = 1, pipeline = 1;
  std::string sharding, recompute;
};
std::string name_of(const Candidate& candidate);  // "tensor 4, pipeline 2, zero1, recompute full"
// Every valid combination of tensor and pipeline degrees, sharding and recomputation of a spec, in a fixed order.
std::vector<Candidate> candidates(const std::string& path, const SpecOptions& options = {});

// A candidate's figures.
struct Tried {
  Candidate candidate;
  double step_s = 0, gpu_hours = 0, mfu = 0;
  Bytes memory = 0, capacity = 0;
  bool fits = true;
  std::string error;  // why it could not be simulated; then the figures are 0
};
// What fits before what does not, then the faster; what could not be simulated last.
bool better(const Tried& a, const Tried& b);
Tried try_candidate(const std::string& path, const Candidate& candidate, const SpecOptions& options = {});

}  // namespace orrery
