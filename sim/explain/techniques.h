#pragma once

#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// One way to spread or shrink the work (a form of parallelism, sharding, recomputation, ...), and a spec that differs
// in it alone: without the technique where the given spec uses it, else with it. Ranks that the other spec does not
// need become replicas; the batch stays.
struct Technique {
  std::string name;  // "pipeline of 8 stages"
  bool used = true;
  std::string saves, costs;  // "" for a technique that is not used
  std::string instead;       // how the other spec differs: "without it", "with interleaved, 2 chunks a stage"
  Spec other;
  std::string group{};  // group of the transfers that the technique makes, as in the report, "" if none
};
// The techniques that the spec uses, then those that it could use. The specs are not checked.
std::vector<Technique> techniques(const Spec& spec);

// The effect of a technique by simulation: the step of the other spec compared with that of the given one.
struct Effect {
  Technique technique;
  std::string refused;  // the rule that forbids the other spec, "" if none; then nothing below is set
  double step_s = 0;
  double slower = 0;  // share by which the other step is slower than the given one: 0.1 = 10 % slower
  Bytes more = 0;     // bytes that the other step needs more on the fullest GPU
  bool fits = true;
  std::string lacks;  // "12.3 GiB over", where it does not fit
  // The kind of time that the other step spends most more on; "" if it is no slower.
  std::string loses;
};
// The effects of techniques, simulated on so many threads, in the order of the techniques. report: the report of the
// spec.
std::vector<Effect> effects(const Profile& profile, const Report& report, std::vector<Technique> techniques,
                            unsigned threads);

// "without it: 13.2 % slower (exposed data 0.31 s more), 118.4 GiB more a GPU, does not fit"
std::string text_of(const Effect& effect);

// Questions of somebody who buys machines: does one GPU hold the model, does one node, how fast is it without NVLink,
// how fast without InfiniBand. They are answered by simulating a changed spec, as techniques are.
std::vector<Technique> situations(const Spec& spec);

}  // namespace orrery
