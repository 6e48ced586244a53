#include "sim/predict.h"

#include <chrono>

#include "models/make_plan.h"
#include "models/plan_hash.h"
#include "models/unfold.h"
#include "sim/simulate.h"

namespace orrery {

Prediction predict(const Spec& spec, bool unfolded, const std::string& profile_path) {
  const auto start = std::chrono::steady_clock::now();
  Prediction p;
  p.profile = profile_for(profile_path, spec.cluster.gpu);
  p.plan = make_plan(spec);
  const std::string hash = unfolded ? plan_hash(p.plan) : "";
  if (unfolded) p.plan = unfold(p.plan);
  p.prices = price(p.plan, spec, p.profile);
  p.trace = simulate(p.plan, p.prices.timing);
  p.report = make_report(spec, p.plan, p.prices, p.trace, p.profile);
  if (unfolded) p.report.plan_hash = hash;  // a plan's name is that of its folded form
  p.report.simulation.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return p;
}

}  // namespace orrery
