#include "sim/predict/long_steps.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "models/base/error.h"
#include "models/plan/hash.h"
#include "models/planner/make_plan.h"
#include "models/schedule/schedules.h"
#include "models/spec/asynchrony.h"
#include "sim/predict/checkpoint_flows.h"
#include "sim/predict/hash_quantiles.h"
#include "sim/predict/predict.h"
#include "sim/report/remarks.h"
#include "sim/report/stalls.h"
#include "sim/report/steps_overlap.h"

namespace orrery {
namespace {

// A period is kPeriod micro-batches per stage; a step may repeat the same work period by period. From kLong
// micro-batches per stage on, simulating three short steps is less work than simulating the complete step.
constexpr std::int64_t kPeriod = 4, kLong = 32;
// A figure that is a sum over micro-batches (a time, bytes) counts as growing equally in two periods if it grows in
// both by the same up to this share of the figure, or of the step time in seconds if that is more.
constexpr double kSame = 1e-9;

struct ShortSteps {
  Report first, second, third;
  std::int64_t micro_batches = 0, period = 0;  // micro-batches of the third step; those by which each step grows
};

bool may_repeat(const Spec& spec) {
  const Strategy& s = spec.strategy;
  if (s.micro_batches() < kLong * s.pipeline || !s.schedule_file.empty() || !s.stage_replicas.empty()) return false;
  if (spec.cluster.network && !spec.cluster.network->jobs.empty()) return false;  // others depend on the whole step
  if (draws_hashes(spec)) return false;  // what an unlucky set of connections adds depends on the whole step
  if (spec.cluster.variation || asynchronous_workers(s) || spec.software.communication.post_update_validation)
    return false;
  // Schedules that split backward, or in which all stages meet at barriers (for a vocabulary divided among them), do
  // not repeat: they choose their order of passes by the stages' times, and fill idle times with passes differently in
  // every period.
  const ScheduleRow& row = find_schedule(s.schedule);
  return row.updates == Updates::flush && !row.splits && row.vocabulary_barriers == 0;
}

Report report_of(Spec spec, std::int64_t micro_batches, const Profile& profile, const std::atomic<bool>* stop) {
  spec.strategy.checkpoint.reset();
  spec.strategy.global_batch = micro_batches * spec.strategy.micro_batch * spec.strategy.data;
  return predict(spec, profile, false, stop).report;
}

bool same_memory(const MemoryReport& a, const MemoryReport& b) {
  if (a.device_calls + b.device_calls > 0 || a.fits != b.fits || a.ranks.size() != b.ranks.size()) return false;
  const auto same = [](const RankMemory& x, const RankMemory& y) {
    return x.device_peak == y.device_peak && x.memory.peak == y.memory.peak &&
           x.memory.first_step_peak == y.memory.first_step_peak && x.memory.peak_reserved == y.memory.peak_reserved &&
           x.memory.tier_peak == y.memory.tier_peak;
  };
  return std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), same);
}

// Simulates three short versions of the step, each longer than the one before by one period (kPeriod micro-batches for
// each stage). The complete step is longer than these by a whole number of periods. Returns nullopt if the first two
// versions differ in memory.
std::optional<ShortSteps> play(const Spec& spec, const Profile& profile, const std::atomic<bool>* stop) {
  ShortSteps steps;
  steps.period = kPeriod * spec.strategy.pipeline;
  const std::int64_t first = steps.period + spec.strategy.micro_batches() % steps.period;
  steps.first = report_of(spec, first, profile, stop);
  steps.second = report_of(spec, first + steps.period, profile, stop);
  if (!same_memory(steps.first.memory, steps.second.memory)) return std::nullopt;
  steps.third = report_of(spec, first + 2 * steps.period, profile, stop);
  steps.micro_batches = first + 2 * steps.period;
  return steps;
}

bool same_rows(const CommunicationRow& a, const CommunicationRow& b) {
  return a.group == b.group && a.op == b.op && a.link == b.link && a.algorithm == b.algorithm;
}

// Calls a function with each figure of a report that is a sum over micro-batches.
template <class Function>
void for_each_sum(Report& r, Function function) {
  for (double& time : r.time_s) function(time);
  for (ModelTime& model : r.models) {
    for (double& time : model.time_s) function(time);
  }
  for (CommunicationRow& row : r.communication) {
    for (double* sum : {&row.bytes_per_gpu, &row.time_s, &row.exposed_s}) function(*sum);
  }
}

std::vector<double> sums_of(Report r) {
  std::vector<double> sums;
  for_each_sum(r, [&](double& sum) { sums.push_back(sum); });
  return sums;
}

bool repeats(const ShortSteps& s) {
  const auto time = [](const Report& r) { return picoseconds(r.step_time_s); };
  if (time(s.third) - time(s.second) != time(s.second) - time(s.first)) return false;
  if (!same_memory(s.second.memory, s.third.memory)) return false;
  for (const Report* other : {&s.first, &s.second}) {
    const auto &a = s.third.communication, &b = other->communication;
    if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), same_rows)) return false;
  }
  for (std::size_t i = 0; i < s.third.communication.size(); ++i) {
    const auto count = [&](const Report& r) { return r.communication[i].count; };
    if (count(s.third) - count(s.second) != count(s.second) - count(s.first)) return false;
  }
  const std::vector<double> a = sums_of(s.first), b = sums_of(s.second), c = sums_of(s.third);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(c[i] - 2 * b[i] + a[i]) > kSame * std::max(s.third.step_time_s, std::abs(c[i]))) return false;
  }
  return true;
}

Report extrapolated(const Spec& spec, const ShortSteps& s, const Profile& profile) {
  const Plan plan = make_plan(spec);
  const std::int64_t more = (spec.strategy.micro_batches() - s.micro_batches) / s.period;
  Report r = s.third;
  const Picoseconds last = picoseconds(s.third.step_time_s), before = picoseconds(s.second.step_time_s);
  r.step_time_s = seconds(last + (last - before) * more);
  for (std::size_t i = 0; i < r.communication.size(); ++i)
    r.communication[i].count += (r.communication[i].count - s.second.communication[i].count) * more;
  const std::vector<double> sums = sums_of(s.second);
  std::size_t i = 0;
  for_each_sum(r, [&](double& sum) { sum += (sum - sums[i++]) * static_cast<double>(more); });
  add_idle_shares(r);
  r.plan_hash = plan_hash(plan);
  r.remarks = remarks(spec, plan, profile);
  add_stalls_remark(r, spec);
  // Uplinks slow single transfers of a shorter step alike.
  for (const std::string& remark : s.third.remarks) {
    if (remark.starts_with(kNetworkRemark)) r.remarks.push_back(remark);
  }
  r.simulation.tasks = plan.task_count();
  r.step_time_low_s = r.step_time_high_s = r.step_time_s;
  add_rates(r, spec, plan);
  if (spec.strategy.checkpoint) add_checkpoint(r, spec, plan);
  add_interval(r, spec, profile);
  return r;
}

}  // namespace

Report predict_report(const Spec& spec, const Profile& profile, const std::atomic<bool>* stop) {
  require_training(spec);
  const auto start = std::chrono::steady_clock::now();
  std::optional<ShortSteps> steps;
  try {
    if (may_repeat(spec)) steps = play(spec, profile, stop);
    // This error means that the schedule does not allow so few micro-batches. Any other error will be thrown again
    // when the complete step is simulated.
  } catch (const Error&) {
  }
  if (!steps || !repeats(*steps)) return predict(spec, profile, false, stop).report;
  Report r = extrapolated(spec, *steps, profile);
  if (const std::optional<Spec> beside = while_a_checkpoint_leaves(spec))
    slow_steps(*r.checkpoint, spec, r.step_time_s, predict_report(*beside, profile, stop).step_time_s);
  r.simulation.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return r;
}

}  // namespace orrery
