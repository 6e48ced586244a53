// A small model's plan with its costs.
#pragma once

#include <string>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/cost/costs.h"

namespace orrery {

struct Priced {
  Spec spec;
  Plan plan;
  Costs costs;

  explicit Priced(const std::string& strategy, const std::string& software = "megatron-core",
                  const std::string& cluster = "node: dgx-h100, nodes: 2")
      : spec(parse_spec("model: {name: small, layers: 16, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}\n"
                        "sequence: 1024\ncluster: {" +
                            cluster + "}\nsoftware: " + software + "\nstrategy: {" + strategy + "}\n",
                        "case")),
        plan(make_plan(spec)),
        costs(costs_of(plan, spec, find_profile(spec.cluster.gpu))) {}

  const OpTiming& of(TaskId t) const { return costs.timing.of(plan.slot_of(t), plan.tasks[t].op); }
};

}  // namespace orrery
