#pragma once

#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// A technique that divides or reduces the work (a form of parallelism, sharding, recomputation, ...), and another spec
// that differs only in this technique: without it if the given spec uses it, else with it. Ranks that the other spec
// does not need become replicas; the batch is the same.
struct Technique {
  std::string name;  // the technique in words: "pipeline of 8 stages"
  bool used = true;
  std::string saves, costs;  // what the technique saves and costs, as text; "" if it is not used
  std::string instead;       // the change in words: "without it", "with interleaved, 2 chunks a stage"
  Spec other;
  std::string group{};  // name of the group of transfers that the technique makes, as in the report; "" if none
};
// The techniques that the spec uses, then those that it could use. Whether the changed specs (Technique::other) are
// valid is not checked.
std::vector<Technique> techniques(const Spec& spec);

// The effect of a technique: how the simulated step of the changed spec (Technique::other) differs from that of the
// given spec.
struct Effect {
  Technique technique;
  std::string refused;  // the rule that forbids the changed spec, "" if none; if there is one, no field below is set
  double step_s = 0;
  // Share by which a token takes longer with the changed spec than with the given one: 0.1 = 10 % slower.
  double slower = 0;
  Bytes more = 0;  // additional bytes that the changed spec needs on the fullest GPU
  bool fits = true;
  std::string lacks;  // memory that is missing if the changed spec does not fit, as text: "12.3 GiB over"
  // The part of the step time that grows most with the changed spec (such as exposed data-parallel communication), as
  // text; "" if that spec is no slower.
  std::string loses;
};
// Simulates the effects of techniques on `threads` threads; the results are in the order of the techniques. report: the
// report of the spec that the techniques change.
std::vector<Effect> effects(const Profile& profile, const Report& report, std::vector<Technique> techniques,
                            unsigned threads);

// The effect of a technique as text: "without it: 13.2 % slower (exposed data 0.31 s more), 118.4 GiB more a GPU, does
// not fit".
std::string text_of(const Effect& effect);

// Questions of a buyer of machines, each answered by simulating a changed spec: whether one GPU or one node holds the
// model, and how fast the step is without NVLink or without InfiniBand.
std::vector<Technique> situations(const Spec& spec);

}  // namespace orrery
