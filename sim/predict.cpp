#include "sim/predict.h"

#include <chrono>

#include "models/make_plan.h"
#include "models/plan_hash.h"
#include "models/unfold.h"
#include "sim/interval.h"
#include "sim/simulate.h"

namespace orrery {

Profile profile_for(const Spec& spec, const std::string& path) {
  if (path.empty()) return find_profile(spec.cluster.gpu);
  Profile measured = load_profile(path);
  const bool gpu = spec.cluster.gpu.memory_bytes > 0;
  const bool complete = !measured.measured.transfers.empty() && !measured.rest_built_in;
  if (!gpu || has_formulas(measured) || complete) return measured;
  Profile all = find_profile(spec.cluster.gpu);
  all.name = measured.name;
  all.hash = measured.hash;
  all.measured = std::move(measured.measured);
  all.nccl = std::move(measured.nccl);
  all.rest_built_in = measured.rest_built_in;
  all.memory_bytes = measured.memory_bytes;
  all.fingerprint = std::move(measured.fingerprint);
  return all;
}

Prediction predict(const Spec& spec, bool unfolded, const std::string& profile_path) {
  return predict(spec, profile_for(spec, profile_path), unfolded);
}

Prediction predict(const Spec& spec, Profile profile, bool unfolded, const std::atomic<bool>* stop) {
  const auto start = std::chrono::steady_clock::now();
  const auto go_on = [&] {
    if (stop != nullptr && *stop) throw Stopped();
  };
  Prediction p;
  p.profile = std::move(profile);
  p.plan = make_plan(spec);
  go_on();
  const std::string hash = unfolded ? plan_hash(p.plan) : "";
  if (unfolded) p.plan = unfold(p.plan);
  p.prices = price(p.plan, spec, p.profile);
  go_on();
  p.trace = simulate(p.plan, p.prices.timing, stop);
  go_on();
  p.report = make_report(spec, p.plan, p.prices, p.trace, p.profile);
  if (p.profile.measured.empty()) {
    const Interval interval = interval_of(spec);
    p.report.step_time_low_s = p.report.step_time_s * interval.low;
    p.report.step_time_high_s = p.report.step_time_s * interval.high;
  }
  if (unfolded) p.report.plan_hash = hash;  // a plan's name is that of its folded form
  p.report.simulation.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return p;
}

}  // namespace orrery
