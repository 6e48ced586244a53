#include "sim/predict.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "models/make_plan.h"
#include "models/pace.h"
#include "models/plan_hash.h"
#include "models/unfold.h"
#include "sim/interval.h"
#include "sim/server_clocks.h"
#include "sim/simulate.h"

namespace orrery {

namespace {

// Steps of every worker that are simulated against servers in order of arrival: enough for the first ones not to count
// for much, few enough for a second of work.
constexpr std::int64_t kMostSteps = 32, kLeastSteps = 4, kMostTasks = 1'000'000;

// What happened until `end`.
Trace cut_off(Trace trace, Picoseconds end) {
  for (Span& s : trace.spans) {
    for (Picoseconds* t : {&s.issued, &s.entered, &s.matched, &s.ended}) *t = std::min(*t, end);
  }
  trace.step_time = end;
  return trace;
}

// Times of a step from many, in which no two workers are where they were in the last: a step is what all workers
// together make in the time that one of them takes on average. Memory is that of a step by itself.
void report_server_steps(Prediction& p, const Spec& spec, const Plan& folded) {
  const Plan all = unfold(folded);
  const auto tasks = static_cast<std::int64_t>(all.task_count());
  const ServerSteps made =
      server_steps(all, spec, price(all, spec, p.profile), std::clamp(kMostTasks / tasks, kLeastSteps, kMostSteps));
  const Trace trace = simulate(made.plan, made.timing);
  const ServerClocks clocks = server_clocks(made, trace);
  Report r = make_report(spec, made.plan, cut_off(trace, clocks.window), p.prices.notes, p.report.memory);
  for (double* time : {&r.step_time_s, &r.step_time_low_s, &r.step_time_high_s, &r.gpu_hours}) *time /= clocks.steps;
  for (double& time : r.time_s) time /= clocks.steps;
  for (double* rate : {&r.tokens_per_s, &r.tokens_per_s_per_gpu, &r.model_tflops_per_gpu, &r.mfu})
    *rate *= clocks.steps;
  const double hardware = p.report.hardware_tflops_per_gpu / p.report.model_tflops_per_gpu;
  r.hardware_tflops_per_gpu = r.model_tflops_per_gpu * hardware;
  r.hfu = r.mfu * hardware;
  for (CommunicationRow& row : r.communication) {
    row.count /= made.steps;
    for (double* sum : {&row.bytes_per_gpu, &row.time_s}) *sum /= static_cast<double>(made.steps);
    row.exposed_s /= clocks.steps;
  }
  r.plan_hash = p.report.plan_hash;
  r.profile_hash = p.report.profile_hash;
  r.remarks = p.report.remarks;
  r.remarks.push_back(fmt::format("{}; {} steps simulated", text_of(clocks.staleness), made.steps));
  r.simulation.ranks = all.ranks;
  p.report = std::move(r);
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
  if (own_pace(spec.strategy)) report_server_steps(p, spec, unfolded ? make_plan(spec) : p.plan);
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
