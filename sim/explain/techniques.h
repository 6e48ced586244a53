#pragma once

#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// One way to spread or shrink the work, in the words of the field, and the spec that differs in it alone: without it
// where the spec has it, with it where not. Ranks that it no longer needs become replicas, the batch stays.
struct Technique {
  std::string name;  // "pipeline of 8 stages"
  bool used = true;
  std::string saves, costs;  // "" of one that is not used
  std::string instead;       // "without it", "with interleaved, 2 chunks a stage"
  Spec other;
  std::string group{};  // of the report's communication that it makes, "" if none of its own
};
// Those that the spec has, then those that it could have. The specs are not checked.
std::vector<Technique> techniques(const Spec& spec);

// What simulation says of a technique: the other spec's step beside the given one's.
struct Effect {
  Technique technique;
  std::string refused;  // the rule that forbids the other spec; then nothing below is set
  double step_s = 0;
  double slower = 0;  // of the other step, by the given one's: 0.1 = 10 % slower
  Bytes more = 0;     // on the fullest GPU
  bool fits = true;
  std::string lacks;  // "12.3 GiB over", where it does not fit
  std::string loses;  // what the other step spends most time more on; "" if it is no slower
};
// Simulated on so many threads, in the order of the techniques. report: the spec's own.
std::vector<Effect> effects(const Profile& profile, const Report& report, std::vector<Technique> techniques,
                            unsigned threads);

// "without it: 13.2 % slower (exposed data 0.31 s more), 118.4 GiB more a GPU, does not fit"
std::string text_of(const Effect& effect);

// The machine and the model as a buyer asks: does one GPU hold it, does one node, what without NVLink, what without
// InfiniBand. Simulated around a strategy, as techniques are.
std::vector<Technique> situations(const Spec& spec);

}  // namespace orrery
