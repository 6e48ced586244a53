#include "sim/predict.h"

#include <chrono>

#include "models/make_plan.h"
#include "models/plan_hash.h"
#include "models/unfold.h"
#include "sim/interval.h"
#include "sim/simulate.h"

namespace orrery {
namespace {

void add_interval(Report& report, const Spec& spec, const Profile& profile) {
  if (!profile.measured.empty()) return;
  const Interval interval = interval_of(spec);
  report.step_time_low_s = report.step_time_s * interval.low;
  report.step_time_high_s = report.step_time_s * interval.high;
}

}  // namespace

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

Prediction predict(const Spec& spec, Profile profile, bool unfolded) {
  const auto start = std::chrono::steady_clock::now();
  Prediction p;
  p.profile = std::move(profile);
  p.plan = make_plan(spec);
  const std::string hash = unfolded ? plan_hash(p.plan) : "";
  if (unfolded) p.plan = unfold(p.plan);
  p.prices = price(p.plan, spec, p.profile);
  p.trace = simulate(p.plan, p.prices.timing);
  p.report = make_report(spec, p.plan, p.prices, p.trace, p.profile);
  add_interval(p.report, spec, p.profile);
  if (unfolded) p.report.plan_hash = hash;  // a plan's name is that of its folded form
  p.report.simulation.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return p;
}

std::optional<Report> report_within(const Spec& spec, const Profile& profile, Picoseconds latest) {
  const auto start = std::chrono::steady_clock::now();
  const Plan plan = make_plan(spec);
  const Prices prices = price(plan, spec, profile);
  const std::optional<Trace> trace = simulate_until(plan, prices.timing, latest);
  if (!trace) return std::nullopt;
  Report report = make_report(spec, plan, prices, *trace, profile);
  add_interval(report, spec, profile);
  report.simulation.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace orrery
