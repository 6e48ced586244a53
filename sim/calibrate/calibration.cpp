#include "sim/calibrate/calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/plan/runtime_sizes.h"
#include "models/trace/warm_up.h"
#include "sim/cost/costs.h"
#include "sim/cost/host_work.h"
#include "sim/runs/measured.h"
#include "sim/runs/measured_loads.h"

namespace orrery {
namespace {

// A task still counts as having run alone if another task of its rank ran during no more than this share of the task's
// time.
constexpr double kAlone = 0.05;
// A task counts as slowed if another task of its rank ran during at least this share of the task's time.
constexpr double kSlowed = 0.9;
constexpr std::size_t kFewest = 4;  // measured repetitions that an op needs to have a sample

using Busy = std::pair<Picoseconds, Picoseconds>;

// Sorts intervals and joins those that overlap.
std::vector<Busy> joined(std::vector<Busy> all) {
  std::sort(all.begin(), all.end());
  std::vector<Busy> result;
  for (const Busy& i : all) {
    if (!result.empty() && i.first <= result.back().second)
      result.back().second = std::max(result.back().second, i.second);
    else
      result.push_back(i);
  }
  return result;
}

// Returns the first interval of a sorted list that does not end before `time`.
std::vector<Busy>::const_iterator first_after(const std::vector<Busy>& intervals, Picoseconds time) {
  return std::lower_bound(intervals.begin(), intervals.end(), time,
                          [](const Busy& i, Picoseconds t) { return i.second < t; });
}

// The share of the time from `begin` to `end` that the intervals cover.
double share_of(const std::vector<Busy>& intervals, Picoseconds begin, Picoseconds end) {
  if (end <= begin) return 0;
  Picoseconds sum = 0;
  for (auto it = first_after(intervals, begin); it != intervals.end() && it->first < end; ++it)
    sum += std::max<Picoseconds>(0, std::min(end, it->second) - std::max(begin, it->first));
  return static_cast<double>(sum) / static_cast<double>(end - begin);
}

// The intervals in which a rank computes, for each lane (stream). FSDP casts and copies parameters on the stream that
// gathers them, while layers compute on another; on a GPU the two kinds of compute then slow each other or one waits
// for the other.
class ComputeLanes {
 public:
  // Adds a task that computes. The tasks of a lane must come in the order in which they begin.
  void add(const Op& op, Picoseconds begin, Picoseconds end) {
    if (!moves(op) && !is_host_work(op)) lanes_[op.lane].emplace_back(begin, end);
  }
  // The share of the time from `begin` to `end` during which a lane other than `lane` computes.
  double share_of_others(LaneKind lane, Picoseconds begin, Picoseconds end) const {
    std::vector<Busy> others;
    for (const auto& [other, intervals] : lanes_) {
      if (other == lane) continue;
      for (auto it = first_after(intervals, begin); it != intervals.end() && it->first < end; ++it)
        others.push_back(*it);
    }
    return share_of(joined(std::move(others)), begin, end);
  }

 private:
  std::map<LaneKind, std::vector<Busy>> lanes_;
};

// The mean of the middle half of the values. Such means can be added up like plain means, and a single disturbed
// measurement does not change them.
double middle(std::vector<Seconds> values) {
  std::sort(values.begin(), values.end());
  const auto cut = static_cast<std::ptrdiff_t>(values.size() / 4);
  const double sum = std::accumulate(values.begin() + cut, values.end() - cut, 0.0);
  return values.empty() ? 0 : sum / static_cast<double>(values.size() - 2 * cut);
}

double mean(const std::vector<Seconds>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Joins samples of transfers whose sizes are within half an octave (a factor of sqrt(2)), and makes times grow with
// size: where a larger transfer was measured to be faster, both samples get their mean, because times of transfers
// scatter.
void smooth(std::vector<TransferSample>& samples) {
  const auto join = [](const TransferSample& a, const TransferSample& b) {
    const double x = static_cast<double>(a.count), y = static_cast<double>(b.count);
    const auto mean = [&](double p, double q) { return (x * p + y * q) / (x + y); };
    return TransferSample{static_cast<Bytes>(mean(static_cast<double>(a.bytes), static_cast<double>(b.bytes)) + 0.5),
                          mean(a.seconds, b.seconds), mean(a.spread, b.spread), a.count + b.count};
  };
  const auto half_octave = [](const TransferSample& s) {
    return std::floor(2 * std::log2(static_cast<double>(std::max<Bytes>(s.bytes, 1))));
  };
  std::vector<TransferSample> joined;
  double bin = -1;
  for (const TransferSample& s : samples) {
    if (!joined.empty() && half_octave(s) == bin)
      joined.back() = join(joined.back(), s);
    else
      joined.push_back(s);
    bin = half_octave(s);
    while (joined.size() > 1 && joined.back().seconds < joined[joined.size() - 2].seconds) {
      const TransferSample last = joined.back();
      joined.pop_back();
      joined.back() = join(joined.back(), last);
    }
  }
  samples = std::move(joined);
}

double spread(std::vector<Seconds> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n < kFewest ? 0 : (values[n * 3 / 4] - values[n / 4]) / values[n / 2];
}

// The indices of the steps that are neither among the slowest nor the fastest quarter, without the first steps, which
// warm up.
std::vector<std::size_t> middle_steps(std::span<const RankRun> runs) {
  const std::vector<Picoseconds> times = step_times(runs);
  const std::size_t skipped = warm_up(times.size());
  std::vector<std::size_t> order(times.size() - skipped);
  std::iota(order.begin(), order.end(), skipped);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
  const std::size_t cut = order.size() / 4;
  return {order.begin() + static_cast<std::ptrdiff_t>(cut), order.end() - static_cast<std::ptrdiff_t>(cut)};
}

// Rounds the number of tokens (rows) that a router sends to an expert to the nearest of two sizes per octave, because
// the exact number hardly ever occurs twice.
std::int64_t rounded_rows(std::int64_t rows) {
  return std::llround(std::exp2(std::round(2 * std::log2(static_cast<double>(rows))) / 2));
}

// The rounded shape under which the times of an op's tasks are collected, so that many tasks share it. part: a task's
// work as a share of the work of the rounded shape.
struct CommonShape {
  WorkShape shape;
  double part = 1;
};

CommonShape common_shape(const Plan& plan, TaskId t) {
  const Op& op = plan.op_of(t);
  CommonShape c{shape_of(op.work, plan.element_bytes)};
  if (op.runtime_size < 0 || c.shape.amount <= 0) return c;
  const Block& block = plan.blocks[plan.frames[plan.tasks[t].frame].block];
  const std::int64_t rows = block.runtime_sizes[static_cast<std::size_t>(op.runtime_size)].predicted;
  const double amount = c.shape.amount;
  c.shape = shape_of(over_rows(op.work, rows, rounded_rows(rows)), plan.element_bytes);
  c.part = amount / c.shape.amount;
  return c;
}

}  // namespace

struct Observations::Step {
  const Plan& plan;
  Trace trace;
  const std::vector<Bytes>& cleared;  // for each task, the bytes of gradient sums that it sets to zero first

  // For each class of ranks (ranks with the same tasks): the intervals in which compute, transfers, or (beside) copies
  // and updates by the host run.
  std::vector<std::vector<Busy>> compute, transfers, beside;
  std::vector<ComputeLanes> lanes;  // for each class of ranks, compute intervals by lane

  Step(const Plan& p, Trace t, const std::vector<Bytes>& c) : plan(p), trace(std::move(t)), cleared(c) {
    for (const RankClass& slot : plan.classes) {
      std::vector<Busy> computing, moving, copying;
      lanes.emplace_back();
      for (TaskId task = slot.begin; task < slot.end; ++task) {
        const Span& s = trace.spans[task];
        const Op& op = plan.op_of(task);
        (moves(op) ? moving : is_host_work(op) ? copying : computing).emplace_back(s.matched, s.ended);
        lanes.back().add(op, s.matched, s.ended);
      }
      compute.push_back(joined(std::move(computing)));
      transfers.push_back(joined(std::move(moving)));
      beside.push_back(joined(std::move(copying)));
    }
  }
  bool in_batch(TaskId t) const {
    return (plan.tasks[t].flags & kJoinsPrevious) != 0 ||
           (t + 1 < plan.classes[plan.slot_of(t)].end && (plan.tasks[t + 1].flags & kJoinsPrevious) != 0);
  }
};

void Observations::add(const Plan& unfolded, std::span<const RankRun> runs) {
  const std::vector<Bytes> cleared = cleared_bytes(unfolded);
  for (const std::size_t k : middle_steps(runs)) {
    const Plan plan = plan_of_step(unfolded, runs, k);
    add_step(Step(plan, measured_trace(plan, runs, k), cleared));
  }
}

void Observations::add_alone(const Plan& unfolded, std::span<const RankRun> runs) {
  const std::vector<Bytes> cleared = cleared_bytes(unfolded);
  for (std::size_t slot = 0; slot < runs.size(); ++slot) {
    for (std::size_t k = warm_up(runs[slot].steps.size()); k < runs[slot].steps.size(); ++k) {
      const RankClass& tasks = unfolded.classes[slot];
      const std::vector<MeasuredSpan>& spans = runs[slot].steps[k].spans;
      ComputeLanes lanes;
      for (TaskId t = tasks.begin; t < tasks.end; ++t)
        lanes.add(unfolded.op_of(t), spans[t - tasks.begin].entered, spans[t - tasks.begin].ended);
      for (TaskId t = tasks.begin; t < tasks.end; ++t) {
        const Op& op = unfolded.op_of(t);
        const MeasuredSpan& s = spans[t - tasks.begin];
        if (lanes.share_of_others(op.lane, s.entered, s.ended) > kAlone) continue;
        if (moves(op) || is_host_work(op) || op.runtime_size >= 0 || cleared[t] > 0 || s.ended <= s.entered) continue;
        const WorkShape shape = shape_of(op.work, unfolded.element_bytes);
        if (shape.amount <= 0) continue;
        add({.amount = shape.amount, .alone = {seconds(s.ended - s.entered)}, .steady = true},
            ops_[shape.kind][shape.sizes]);
      }
    }
  }
}

void Observations::add_step(const Step& step) {
  for (const RankClass& slot : step.plan.classes) {
    step_.push_back(seconds(step.trace.spans[slot.begin].issued));
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      if (!moves(step.plan.op_of(t))) add_compute(step, t);
      add_waits(step, t);
    }
  }
  for (std::uint32_t m = 0; m < step.plan.matches.size(); ++m) add_transfer(step, m);
}

void Observations::add_compute(const Step& step, TaskId t) {
  const Op& op = step.plan.op_of(t);
  const Span& s = step.trace.spans[t];
  if (s.ended <= s.entered || step.cleared[t] > 0) return;
  const auto [shape, part] = common_shape(step.plan, t);
  if (shape.amount <= 0) return;
  const std::uint32_t slot = step.plan.slot_of(t);
  const bool host = is_host_work(op);
  if (!host && step.lanes[slot].share_of_others(op.lane, s.entered, s.ended) > kAlone) return;
  const double moving = share_of(step.transfers[slot], s.entered, s.ended);
  const double other = share_of(host ? step.compute[slot] : step.beside[slot], s.entered, s.ended);
  Seen seen{.amount = shape.amount, .steady = !host && op.runtime_size < 0};
  const Seconds took = seconds(s.ended - s.entered) / part;
  if (moving <= kAlone && other <= kAlone) seen.alone.push_back(took);
  if (moving >= kSlowed && other <= kAlone && !host) seen.slowed.push_back(took);
  if (moving <= kAlone && other >= kSlowed) (host ? seen.copied : seen.beside).push_back(took);
  add(seen, ops_[shape.kind][shape.sizes]);
}

void Observations::add(const Seen& one, Seen& to) {
  to.amount = one.amount;
  to.steady = one.steady;
  for (const auto list : {&Seen::alone, &Seen::slowed, &Seen::beside, &Seen::copied})
    (to.*list).insert((to.*list).end(), (one.*list).begin(), (one.*list).end());
}

// Counts a transfer's time if the transfer ran alone on all its ranks, or was slowed by compute on all. A transfer in a
// batch (grouped sends and receives) does not count: it ends with the batch, so its own time is not known.
void Observations::add_transfer(const Step& step, std::uint32_t match) {
  const auto members = step.plan.members_of(match);
  double least = 1, most = 0;
  Seconds sum = 0;
  for (const TaskId t : members) {
    if (step.in_batch(t)) return;
    const Span& s = step.trace.spans[t];
    const double share = share_of(step.compute[step.plan.slot_of(t)], s.matched, s.ended);
    least = std::min(least, share);
    most = std::max(most, share);
    sum += seconds(s.ended - s.matched);
  }
  if (most > kAlone && least < kSlowed) return;
  const Op& op = step.plan.op_of(members.front());
  const auto* c = std::get_if<Collective>(&op.work);
  const Bytes bytes = c == nullptr ? std::get<Transfer>(op.work).bytes : c->bytes;
  Seen& seen = transfers_[{transfer_kind(op), static_cast<std::int64_t>(members.size())}][bytes];
  (most <= kAlone ? seen.alone : seen.slowed).push_back(sum / static_cast<double>(members.size()));
}

// Adds a task's wait to the samples of waits: the time from the end of the last task that it depends on until its
// thread began it.
void Observations::add_waits(const Step& step, TaskId t) {
  const Plan& plan = step.plan;
  const RankClass& slot = plan.classes[plan.slot_of(t)];
  const Span& s = step.trace.spans[t];
  if (t > slot.begin && t - slot.begin < kLaunchQueue && !waits_on_host(plan, t))
    issue_.push_back(seconds(s.issued - step.trace.spans[t - 1].issued));
  if (s.cause == kNone || step.trace.spans[s.cause].ended < s.issued) return;
  const Seconds wait = seconds(std::max<Picoseconds>(0, s.entered - step.trace.spans[s.cause].ended));
  const bool here = moves(plan.op_of(t)), there = moves(plan.op_of(s.cause));
  if (is_host_work(plan.op_of(t)))
    host_start_.push_back(wait);
  else if (is_host_work(plan.op_of(s.cause)))
    host_wake_.push_back(wait);
  else if (!here)
    (there ? wake_ : gap_).push_back(wait);
  // A transfer's wait goes to a list of its own if the rank computes meanwhile, since then no task of the rank waits
  // for the delayed transfer.
  if (here && !there && !is_host_work(plan.op_of(s.cause)))
    (computes_meanwhile(step, t) ? busy_transfer_start_ : transfer_start_).push_back(wait);
}

bool Observations::computes_meanwhile(const Step& step, TaskId t) {
  const Span& s = step.trace.spans[t];
  const Picoseconds begin = s.cause == kNone ? s.issued : step.trace.spans[s.cause].ended;
  return share_of(step.compute[step.plan.slot_of(t)], begin, s.ended) > kAlone;
}

Waits Observations::waits(const Plan& unfolded, const Trace& trace) {
  Observations seen;
  const std::vector<Bytes> cleared = cleared_bytes(unfolded);
  const Step step(unfolded, trace, cleared);
  seen.add_step(step);
  Waits waits{mean(seen.gap_),
              mean(seen.transfer_start_),
              mean(seen.wake_),
              mean(seen.busy_transfer_start_),
              mean(seen.host_start_),
              mean(seen.host_wake_),
              {}};
  for (TaskId t = 0; t < unfolded.task_count(); ++t)
    waits.busy.push_back(moves(unfolded.op_of(t)) && computes_meanwhile(step, t));
  return waits;
}

MeasuredTimes Observations::times() const {
  MeasuredTimes times;
  struct Slower {
    std::vector<Seconds> Seen::*how;
    Seconds sum = 0, base = 0;

    void look_at(const Seen& seen) {
      if ((seen.*how).size() < kFewest) return;
      sum += middle(seen.*how);
      base += middle(seen.alone);
    }
    double ratio() const { return base > 0 ? std::max(1.0, sum / base) : 1; }
  };
  Slower compute{&Seen::slowed}, moved{&Seen::slowed}, beside{&Seen::beside}, copied{&Seen::copied};
  for (const auto& [kind, shapes] : ops_) {
    OpTable table{kind, {}};
    for (const auto& [sizes, seen] : shapes) {
      if (seen.alone.size() < kFewest) continue;
      table.samples.push_back(
          {sizes, seen.amount, middle(seen.alone), spread(seen.alone), static_cast<std::int64_t>(seen.alone.size())});
      for (Slower* s : {&compute, &beside, &copied}) s->look_at(seen);
    }
    if (!table.samples.empty()) times.ops.push_back(std::move(table));
  }
  times.compute_slowdown = compute.ratio();
  times.beside_slowdown = beside.ratio();
  times.copy_slowdown = copied.ratio();
  for (const auto& [key, sizes] : transfers_) {
    TransferTable table{key.first, key.second, {}};
    for (const auto& [bytes, seen] : sizes) {
      if (seen.alone.size() < kFewest) continue;
      table.samples.push_back(
          {bytes, middle(seen.alone), spread(seen.alone), static_cast<std::int64_t>(seen.alone.size())});
      moved.look_at(seen);
    }
    smooth(table.samples);
    if (!table.samples.empty()) times.transfers.push_back(std::move(table));
  }
  times.transfer_slowdown = moved.ratio();
  times.issue = middle(issue_);
  times.gap = middle(gap_);
  times.transfer_start = middle(transfer_start_);
  times.wake = middle(wake_);
  times.step = middle(step_);
  return times;
}

double Observations::noise() const {
  double sum = 0, weights = 0;
  for (const auto& [kind, shapes] : ops_) {
    for (const auto& [sizes, seen] : shapes) {
      if (!seen.steady) continue;
      const double weight = std::accumulate(seen.alone.begin(), seen.alone.end(), 0.0);
      sum += weight * spread(seen.alone);
      weights += weight;
    }
  }
  return weights > 0 ? sum / weights : 0;
}

}  // namespace orrery
