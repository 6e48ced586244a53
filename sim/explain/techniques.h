#pragma once

#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// One technique to divide or reduce the work (a form of parallelism, sharding, recomputation, ...), and another spec
// that differs only in this technique: without it if the given spec uses it, else with it. Ranks that the other spec
// does not need become replicas; the batch is unchanged.
struct Technique {
  std::string name;  // the technique in words: "pipeline of 8 stages"
  bool used = true;
  std::string saves, costs;  // what the technique saves and costs, as text; "" for one that is not used
  std::string instead;       // what the other spec changes: "without it", "with interleaved, 2 chunks a stage"
  Spec other;
  std::string group{};  // name, as in the report, of the group of transfers that the technique makes, "" if none
};
// The techniques that the spec uses, then those that it could use. The specs are not checked.
std::vector<Technique> techniques(const Spec& spec);

// The effect of a technique: the simulated step of the other spec compared with that of the given spec.
struct Effect {
  Technique technique;
  std::string refused;  // the rule that forbids the other spec, "" if none; then no field below is set
  double step_s = 0;
  double slower = 0;  // share by which a token takes longer in the other step than in the given one: 0.1 = 10 % slower
  Bytes more = 0;     // additional bytes that the other step needs on the fullest GPU
  bool fits = true;
  std::string lacks;  // missing memory if the other step does not fit, as text: "12.3 GiB over"
  // The part of the step time that grows most in the other step (such as exposed data-parallel communication); "" if
  // the other step is no slower.
  std::string loses;
};
// The effects of techniques, simulated on `threads` threads, in the order of the techniques. report: the report of the
// given spec.
std::vector<Effect> effects(const Profile& profile, const Report& report, std::vector<Technique> techniques,
                            unsigned threads);

// "without it: 13.2 % slower (exposed data 0.31 s more), 118.4 GiB more a GPU, does not fit"
std::string text_of(const Effect& effect);

// Questions of a buyer of machines: does one GPU hold the model, does one node, how fast is the step without NVLink or
// without InfiniBand. They are answered by simulating a changed spec, as for techniques.
std::vector<Technique> situations(const Spec& spec);

}  // namespace orrery
