#include "sim/predict/predict.h"
#include "sim/predict/checkpoint_flows.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "models/load/load_spec.h"
#include "models/plan/check.h"
#include "models/plan/hash.h"
#include "models/plan/repeat_steps.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "models/spec/asynchrony.h"
#include "sim/engine/simulate.h"
#include "sim/predict/hash_quantiles.h"
#include "sim/predict/neighbours.h"
#include "sim/predict/server_clocks.h"
#include "sim/predict/step_quantiles.h"
#include "sim/report/checkpoint.h"
#include "sim/report/interval.h"

namespace orrery {
namespace {

// How many steps of each worker are simulated where parameter servers update in order of arrival: as many as make
// kMostTasks tasks in all, but at least kLeastSteps and at most kMostSteps. So many steps are enough for the first ones
// to count for little, and few enough to be computed in a second.
constexpr std::int64_t kMostSteps = 32, kLeastSteps = 4, kMostTasks = 1'000'000;

// A trace that is cut off at the time `end`: times after it are set to `end`.
Trace cut_off(Trace trace, Picoseconds end) {
  for (Span& s : trace.spans) {
    for (Picoseconds* t : {&s.issued, &s.entered, &s.matched, &s.ended}) *t = std::min(*t, end);
  }
  trace.step_time = end;
  return trace;
}

// Sets the report's figures for asynchronous workers, which are in different steps at the same time. The step time is a
// worker's mean time per step over many simulated steps; memory is that of a single step.
void report_server_steps(Prediction& p, const Spec& spec, const Plan& folded, const std::atomic<bool>* stop) {
  const Plan all = unfold(folded);
  const auto tasks = static_cast<std::int64_t>(all.task_count());
  const ServerSteps made =
      server_steps(all, spec, costs_of(all, spec, p.profile), std::clamp(kMostTasks / tasks, kLeastSteps, kMostSteps));
  const Trace trace = simulate(made.plan, made.timing, stop);
  const ServerClocks clocks = server_clocks(made, trace);
  MemoryReport memory = p.report.memory;
  memory.remapping_s *= clocks.steps;
  Report r = make_report(spec, made.plan, cut_off(trace, clocks.window), p.costs.notes, std::move(memory));
  for (double* time : {&r.step_time_s, &r.step_time_low_s, &r.step_time_high_s, &r.gpu_hours, &r.memory.remapping_s})
    *time /= clocks.steps;
  for (double& time : r.time_s) time /= clocks.steps;
  for (ModelTime& model : r.models) {
    for (double& time : model.time_s) time /= clocks.steps;
  }
  for (double* rate : {&r.tokens_per_s, &r.tokens_per_s_per_gpu, &r.model_tflops_per_gpu, &r.mfu,
                       &r.model_tflops_full_attention, &r.mfu_full_attention})
    *rate *= clocks.steps;
  const double hardware = p.report.hardware_tflops_per_gpu / p.report.model_tflops_per_gpu;
  r.hardware_tflops_per_gpu = r.model_tflops_per_gpu * hardware;
  r.hfu = r.mfu * hardware;
  r.hardware_tflops_full_attention =
      r.model_tflops_full_attention * (p.report.hardware_tflops_full_attention / p.report.model_tflops_full_attention);
  for (CommunicationRow& row : r.communication) {
    row.count /= made.steps;
    for (double* sum : {&row.bytes_per_gpu, &row.time_s}) *sum /= static_cast<double>(made.steps);
    row.exposed_s /= clocks.steps;
  }
  if (spec.strategy.checkpoint) r.checkpoint = checkpoint_cost(spec, folded, r.step_time_s);
  r.plan_hash = p.report.plan_hash;
  r.profile_hash = p.report.profile_hash;
  r.remarks = p.report.remarks;
  r.remarks.push_back(fmt::format("{}; {} steps simulated", text_of(clocks.staleness), made.steps));
  r.simulation.ranks = all.ranks;
  p.report = std::move(r);
}

// The seconds by which undoing (rolling back) an update lengthens a step: the time of three simulated steps, of which
// the middle one undoes the update of the step before it, minus the time of three steps without that.
double roll_back_time(const Plan& folded, const Timing& timing, const std::atomic<bool>* stop) {
  const auto time = [&](bool redoes_update) {
    return simulate(repeat_steps(folded, {false, redoes_update, false}), timing, stop).step_time;
  };
  return seconds(time(true) - time(false));
}

StepQuantiles quantiles_over_hashes(const Prediction& p, const Spec& spec, bool unfolded,
                                    const std::atomic<bool>* stop) {
  const Seconds mean = seconds(period_of(p.plan, p.trace).length());
  if (!unfolded) return hash_quantiles({p.plan, spec, p.profile, p.costs}, mean, p.report.step_time_s, stop);
  const Plan folded = make_plan(spec);
  const Costs costs = costs_of(folded, spec, p.profile);
  return hash_quantiles({folded, spec, p.profile, costs}, mean, p.report.step_time_s, stop);
}

}  // namespace

void add_interval(Report& report, const Spec& spec, const Profile& profile) {
  // If all times of the profile were measured on this machine, the report gets no interval: the errors of predictions
  // of published steps say nothing about such a prediction.
  if (!profile.measured.empty() && !profile.rest_built_in) return;
  const StepFit& steps = profile.steps;
  const Interval interval = steps.steps > 0 ? Interval{steps.low, steps.high} : interval_of(spec);
  report.step_time_low_s = report.step_time_s * interval.low;
  report.step_time_high_s = report.step_time_s * interval.high;
}

// Refuses a profile of measured steps (StepFit) for another stack or GPU than that of the steps, whose constants its
// factors do not correct, nor do its steps narrow the interval of the prediction.
static void require_own_stack(const Profile& profile, const Spec& spec, const std::string& path) {
  const StepFit& steps = profile.steps;
  const std::string_view gpu = fingerprint_of(profile, "gpu");
  if (steps.steps == 0 || (steps.software == spec.software.name && gpu == spec.cluster.gpu.id)) return;
  throw Error(
      fmt::format("{}: is made from measured steps of {} on {}, the spec is {} on {}; measure steps of it "
                  "(orrery calibrate --from-steps), or predict it without --profile",
                  path, steps.software, gpu, spec.software.name, spec.cluster.gpu.id));
}

Profile profile_for(const Spec& spec, const std::string& path) {
  if (path.empty()) return find_profile(spec.cluster.gpu);
  Profile measured = load_profile(path);
  require_own_stack(measured, spec, path);
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
  all.steps = std::move(measured.steps);
  apply(all.steps, all);
  return all;
}

void require_training(const Spec& spec) {
  if (spec.generation)
    throw Error(with_place(spec, "spec: workload: generate: this command knows training steps only"));
}

Prediction predict(const Spec& spec, bool unfolded, const std::string& profile_path) {
  require_training(spec);
  return predict(spec, profile_for(spec, profile_path), unfolded);
}

Prediction predict(const Spec& spec, Profile profile, bool unfolded, const std::atomic<bool>* stop) {
  if (spec.cluster.network && !spec.cluster.network->jobs.empty())
    return predict_among_neighbours(spec, std::move(profile), unfolded, stop);
  const auto start = std::chrono::steady_clock::now();
  const auto go_on = [&] {
    if (stop != nullptr && *stop) throw Stopped();
  };
  Prediction p;
  p.profile = std::move(profile);
  p.cluster = spec.cluster;
  p.plan = make_plan(spec);
  go_on();
  const std::string hash = unfolded ? plan_hash(p.plan) : "";
  if (unfolded) p.plan = unfold(p.plan);
  try {
    p.costs = costs_of(p.plan, spec, p.profile);
  } catch (const Error& e) {  // an error of costs_of() does not name the spec file; the name is added here
    throw Error(with_place(spec, e.what()), e.exit_code);
  }
  go_on();
  p.trace = simulate(p.plan, p.costs.timing, stop);
  go_on();
  p.report = make_report(spec, p.plan, p.costs, p.trace, p.profile);
  if (asynchronous_workers(spec.strategy)) report_server_steps(p, spec, unfolded ? make_plan(spec) : p.plan, stop);
  if (p.plan.classes.front().validated != kNone) {
    const Plan folded = unfolded ? make_plan(spec) : p.plan;
    p.report.roll_back_s =
        roll_back_time(folded, unfolded ? costs_of(folded, spec, p.profile).timing : p.costs.timing, stop);
  }
  if (spec.cluster.variation && spec.cluster.variation->gpus > 0) {
    const Plan folded = unfolded ? make_plan(spec) : p.plan;
    p.report.variation = step_quantiles(
        spec, folded, unfolded ? costs_of(folded, spec, p.profile).timing : p.costs.timing, p.report.step_time_s, stop);
  }
  if (draws_hashes(spec) && !p.costs.hashed.empty()) p.report.hashes = quantiles_over_hashes(p, spec, unfolded, stop);
  if (const std::optional<Spec> beside = while_a_checkpoint_leaves(spec))
    slow_steps(*p.report.checkpoint, spec, p.report.step_time_s,
               predict(*beside, p.profile, false, stop).report.step_time_s);
  add_interval(p.report, spec, p.profile);
  // A plan is named by the hash of its folded form (one rank of each class of equal ranks), also where all ranks are
  // simulated.
  if (unfolded) p.report.plan_hash = hash;
  p.report.simulation.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return p;
}

namespace {

bool runs_back(const Op& op) {
  return op.lane == LaneKind::compute && (op.recompute || (op.phase != Phase::forward && op.phase != Phase::step));
}

ForwardPart forward_part(const Plan& plan, const PartTrace& part, Picoseconds latest) {
  ForwardPart result{{latest, -1}, {latest, -1}};
  for (const RankClass& slot : plan.classes) {
    TaskId t = slot.begin, before = kNone;
    for (; t < slot.end && !runs_back(plan.op_of(t)); ++t) {
      if (plan.op_of(t).lane == LaneKind::compute) before = t;
    }
    if (t == slot.end || before == kNone) continue;
    const auto note = [&](Turn& turn, Picoseconds time) {
      if (time > 0 && time < turn.time) turn = {time, slot.stage};
    };
    note(result.begins, part.trace.spans[t].entered);
    note(result.free, part.trace.spans[before].ended);
  }
  return result;
}

}  // namespace

ReportWithin report_within(const Spec& spec, const Profile& profile, Picoseconds latest,
                           const std::atomic<bool>* stop) {
  if (spec.cluster.network && !spec.cluster.network->jobs.empty())
    throw Error(with_place(spec,
                           "cluster.network.neighbours: a search compares layouts of one job; give what the others "
                           "take as cluster.network.load"));
  const auto start = std::chrono::steady_clock::now();
  const Plan plan = make_unchecked_plan(spec);
  const Costs costs = costs_of(plan, spec, profile);
  const PartTrace part = simulate_until(plan, costs.timing, latest, stop);
  ReportWithin result{.forward = forward_part(plan, part, latest)};
  if (part.late) return result;
  check_plan(plan);
  Report report = make_report(spec, plan, costs, part.trace, profile);
  add_interval(report, spec, profile);
  report.simulation.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.report = std::move(report);
  return result;
}

}  // namespace orrery
