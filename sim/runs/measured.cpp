#include "sim/runs/measured.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/plan/runtime_sizes.h"
#include "models/run/lost_ranks.h"

namespace orrery {
namespace {

[[noreturn]] void refuse(const std::string& path, std::string_view what) {
  throw Error(fmt::format("{}: {}", path, what), 1);
}

std::size_t runtime_sizes_of(const Plan& plan, const RankClass& slot) {
  const std::vector<std::size_t> counts = counted_sizes(plan);
  std::size_t count = 0;
  for (std::size_t f = 0; f < counts.size(); ++f) {
    if (&plan.classes[plan.frames[f].slot] == &slot) count += counts[f];
  }
  return count;
}

void check_run(const std::string& path, const RankRun& run, const RankRun& first, const Plan& plan,
               const RankClass& slot, const std::string& hash) {
  if (run.plan_hash != hash) refuse(path, fmt::format("is of plan {}, not of this one, {}", run.plan_hash, hash));
  if (run.rank != slot.representative) refuse(path, fmt::format("is of rank {}", run.rank));
  if (run.steps.empty()) refuse(path, "has no step");
  if (run.steps.size() != first.steps.size() || run.source != first.source)
    refuse(path, fmt::format("has {} steps ({}), rank 0 has {} ({})", run.steps.size(), run.source, first.steps.size(),
                             first.source));
  if (run.steps[0].spans.size() != slot.end - slot.begin ||
      (run.memory.peak_task != kNone && run.memory.peak_task >= run.steps[0].spans.size()))
    refuse(path, fmt::format("has {} tasks a step, the plan has {}", run.steps[0].spans.size(), slot.end - slot.begin));
  const std::size_t sizes = runtime_sizes_of(plan, slot);
  if (run.steps[0].sizes.size() != sizes)
    refuse(path, fmt::format("has {} sizes a step, the plan has {}", run.steps[0].sizes.size(), sizes));
}

// The time when the last rank ended the step, on the clock of rank 0.
Picoseconds end_of(std::span<const RankRun> runs, std::size_t step) {
  Picoseconds end = runs[0].steps[step].end + runs[0].clock_offset;
  for (const RankRun& r : runs) end = std::max(end, r.steps[step].end + r.clock_offset);
  return end;
}

// The time when a step began: when the last rank had ended the step before or, if steps were not timed one after
// another, when the first rank began.
Picoseconds origin_of(std::span<const RankRun> runs, std::size_t step) {
  if (step > 0 && runs[0].unmarked.empty()) return end_of(runs, step - 1);
  Picoseconds begin = runs[0].steps[step].begin + runs[0].clock_offset;
  for (const RankRun& r : runs) begin = std::min(begin, r.steps[step].begin + r.clock_offset);
  return begin;
}

// Finds, for each task of a rank (or class of equal ranks), the task that had to end before it could begin: of the
// task's dependencies and the task before it in its lane (stream), the one that ended last. Dependencies that the host
// waits for are left out, since these delay the launch and not the task.
void find_causes(const Plan& plan, const RankClass& slot, Trace& trace) {
  std::array<TaskId, kLanes> last;
  last.fill(kNone);
  const auto later_end = [&](TaskId a, TaskId b) {
    return a == kNone || trace.spans[b].ended > trace.spans[a].ended ? b : a;
  };
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    TaskId& before = last[plan.tasks[t].lane % kLanes];
    TaskId cause = before;
    if (!waits_on_host(plan, t)) {
      for (const TaskId d : plan.dependencies_of(t)) cause = later_end(cause, d);
    }
    trace.spans[t].cause = cause;
    before = t;
  }
}

// The times at which the host thread of a rank (or class of equal ranks), which launches its tasks, went on after each
// of its waits.
std::vector<HostResume> resumes_of(const Plan& plan, const RankClass& slot, const Trace& trace, Picoseconds begin) {
  std::vector<HostResume> resumes = {{slot.begin, begin, kNone}};
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    if (!waits_on_host(plan, t)) continue;
    const auto before = plan.dependencies_of(t);
    const TaskId cause = *std::max_element(
        before.begin(), before.end(), [&](TaskId a, TaskId b) { return trace.spans[a].ended < trace.spans[b].ended; });
    resumes.push_back({t, std::min(launch_start(plan, trace, t), trace.spans[t].issued), cause});
  }
  return resumes;
}

void find_matches(const Plan& plan, Trace& trace) {
  for (Span& s : trace.spans) s.matched = s.entered;
  for (std::uint32_t m = 0; m < plan.matches.size(); ++m) {
    const Picoseconds entered = trace.spans[last_to_enter(plan, trace, m)].entered;
    for (const TaskId t : plan.members_of(m))
      trace.spans[t].matched = std::clamp(entered, trace.spans[t].entered, trace.spans[t].ended);
  }
}

// The peak bytes in a memory tier, summed over the ranks of a node, on the node where the sum is largest.
Bytes node_peak(std::span<const RankRun> runs, MemoryTier tier) {
  std::map<std::string, Bytes> nodes;
  for (const RankRun& r : runs) nodes[r.host] += r.memory.tier_peak[index_of(tier)];
  Bytes most = 0;
  for (const auto& [host, bytes] : nodes) most = std::max(most, bytes);
  return most;
}

MemoryReport measured_memory(const Plan& plan, std::span<const RankRun> runs) {
  MemoryReport report;
  for (std::size_t s = 0; s < plan.classes.size(); ++s) {
    const MeasuredMemory& m = runs[s].memory;
    RankMemory rank{.name = plan.classes[s].name, .ranks = 1, .device_peak = m.peak_device};
    rank.memory.first_step_peak = m.first_step_peak;
    rank.memory.peak = m.peak;
    rank.memory.peak_reserved = rank.memory.update_reserved = m.peak_reserved;
    rank.memory.at_peak = m.at_peak;
    rank.memory.peak_task = m.peak_task == kNone ? kNone : plan.classes[s].begin + m.peak_task;
    rank.at = describe_task(plan, rank.memory.peak_task);
    add_rank(report, rank);
    report.capacity = s == 0 ? m.capacity : std::min(report.capacity, m.capacity);
  }
  for (const MemoryTier tier : kTiersBeyond) report.tier_peak[index_of(tier)] = node_peak(runs, tier);
  report.usable = report.capacity;
  report.fits = true;  // the measured step has run, so it fits
  return report;
}

// The loss of each step: the mean over the ranks that compute a loss, each over the same number of tokens.
std::vector<double> mean_losses(std::span<const RankRun> runs) {
  // After a restart from a snapshot a rank also has the losses of the steps before it, and a plan may hold several
  // steps, so that the number of losses may differ from that of timed runs of the plan.
  std::size_t steps = 0;
  for (const RankRun& r : runs) steps = std::max(steps, r.losses.size());
  std::vector<double> means(steps, 0);
  std::int64_t ranks = 0;
  for (const RankRun& r : runs) {
    if (steps == 0 || r.losses.size() != steps) continue;
    ++ranks;
    for (std::size_t i = 0; i < means.size(); ++i) means[i] += r.losses[i];
  }
  if (ranks == 0) return {};
  for (double& m : means) m /= static_cast<double>(ranks);
  return means;
}

// The link over which a group of ranks communicates, taken from the group of rank 0: the link inside the node, or
// "network" if the group spans nodes.
std::string link_of(const Plan& plan, std::span<const RankRun> runs, Dimension dimension) {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(dimension)];
  const auto& members = table.groups[table.member_of[runs[0].rank]];
  const bool near =
      std::all_of(members.begin(), members.end(), [&](std::int32_t r) { return runs[r].host == runs[0].host; });
  return near ? runs[0].link : "network";
}

std::vector<TransferNote> notes_of(const Plan& plan, std::span<const RankRun> runs) {
  std::vector<TransferNote> notes;
  for (const Op& op : plan.ops) {
    const auto* c = std::get_if<Collective>(&op.work);
    const Dimension dimension = c == nullptr ? Dimension::pipeline : c->group;
    notes.push_back({moves(op) ? link_of(plan, runs, dimension) : "",
                     c == nullptr || c->algorithm == "library" ? runs[0].library : std::string(c->algorithm)});
  }
  return notes;
}

}  // namespace

std::vector<RankRun> read_runs(const std::string& folder, const Plan& unfolded, const std::string& hash) {
  std::vector<RankRun> runs;
  LostRanks lost(lost_file(folder));
  lost.look();
  for (const RankClass& slot : unfolded.classes) {
    std::int64_t from = slot.representative;
    for (std::int64_t copy = 1; lost.has(from) && copy < unfolded.copies; ++copy)
      from = unfolded.workers() + (from - unfolded.workers() + unfolded.ranges()) % unfolded.servers;
    const std::string path = rank_file(folder, from);
    runs.push_back(read_rank_run(path));
    if (from != slot.representative) {
      runs.back().note =
          fmt::format("rank {} was lost; rank {}, which has the same states, stands for it", slot.representative, from);
      runs.back().rank = slot.representative;
    }
    check_run(path, runs.back(), runs.front(), unfolded, slot, hash);
  }
  return runs;
}

std::vector<Picoseconds> step_times(std::span<const RankRun> runs) {
  std::vector<Picoseconds> times;
  for (std::size_t k = 0; k < runs[0].steps.size(); ++k) times.push_back(end_of(runs, k) - origin_of(runs, k));
  return times;
}

std::size_t median_step(std::span<const Picoseconds> times) {
  std::vector<std::size_t> order(times.size() > 1 ? times.size() - 1 : 1);
  std::iota(order.begin(), order.end(), times.size() > 1 ? 1 : 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
  return order[(order.size() - 1) / 2];
}

Trace measured_trace(const Plan& unfolded, std::span<const RankRun> runs, std::size_t step) {
  assert(runs.size() == unfolded.classes.size());
  const Picoseconds origin = origin_of(runs, step);
  Trace trace{.source = runs[0].source, .step_time = end_of(runs, step) - origin};
  trace.spans.resize(unfolded.task_count());
  for (std::size_t s = 0; s < runs.size(); ++s) {
    const auto here = [&](Picoseconds t) {
      return std::clamp<Picoseconds>(t + runs[s].clock_offset - origin, 0, trace.step_time);
    };
    const MeasuredStep& measured = runs[s].steps[step];
    const RankClass& slot = unfolded.classes[s];
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      const MeasuredSpan& from = measured.spans[t - slot.begin];
      trace.spans[t] = {.issued = here(from.issued), .entered = here(from.entered), .ended = here(from.ended)};
    }
    find_causes(unfolded, slot, trace);
    trace.host.push_back(resumes_of(unfolded, slot, trace, here(measured.begin)));
    trace.clock_uncertainty = std::max(trace.clock_uncertainty, runs[s].clock_uncertainty);
  }
  find_matches(unfolded, trace);
  return trace;
}

Report composed_report(const Spec& spec, const Plan& unfolded, std::span<const RankRun> alone, const Trace& trace,
                       std::span<const TransferNote> notes) {
  Report r = make_report(spec, unfolded, trace, notes, measured_memory(unfolded, alone));
  r.plan_hash = alone[0].plan_hash;
  r.step_time_low_s = r.step_time_high_s = r.step_time_s;
  return r;
}

Report measured_report(const Spec& spec, const Plan& unfolded, std::span<const RankRun> runs, const Trace& trace,
                       bool on_gpus) {
  Report r = make_report(spec, unfolded, trace, notes_of(unfolded, runs), measured_memory(unfolded, runs));
  r.plan_hash = runs[0].plan_hash;
  std::vector<Picoseconds> times = step_times(runs);
  for (std::size_t k = 0; k < times.size() && unfolded.steps > 1; ++k)
    times[k] = period_of(unfolded, measured_trace(unfolded, runs, k)).length();
  const auto [low, high] = std::minmax_element(times.begin() + (times.size() > 1 ? 1 : 0), times.end());
  r.step_time_low_s = seconds(*low);
  r.step_time_high_s = seconds(*high);
  r.losses = mean_losses(runs);
  const auto noted = std::find_if(runs.begin(), runs.end(), [](const RankRun& run) { return !run.note.empty(); });
  if (noted != runs.end()) r.remarks.push_back(noted->note);
  if (!on_gpus)
    // CPU ranks were measured, so that a share of the peak FLOP/s of the spec's GPU means nothing.
    r.mfu = r.hfu = r.mfu_full_attention = 0;
  r.simulation.ranks_simulated = 0;
  return r;
}

}  // namespace orrery
