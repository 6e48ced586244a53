#include "sim/memory/replay_moments.h"

#include <algorithm>
#include <limits>

namespace orrery {

static constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::min();

void ReplayMoments::request(TaskId task, TaskId behind, bool checked, int step, Picoseconds now) {
  // Requests of one task are at one time; with no wait noted between them, the later ones free nothing.
  if (!moments_.empty() && !moments_.back().retry && moments_.back().task == task && moments_.back().step == step &&
      waits_.size() == waits_at_request_)
    return;
  moments_.push_back({task, behind, step, checked});
  times_.push_back(now);
  waits_at_request_ = waits_.size();
}

void ReplayMoments::retry() {
  retries_.push_back(static_cast<std::uint32_t>(moments_.size()));
  moments_.push_back(moments_.back());
  moments_.back().retry = true;
  times_.push_back(times_.back());
}

void ReplayMoments::wait(TaskId task, int step, TaskId other, int other_step) {
  waits_.push_back({task, other, step, other_step, static_cast<std::uint32_t>(moments_.size()), 0});
}

Picoseconds ReplayMoments::end_of(const Wait& wait, const Trace& trace, TaskId first) {
  const auto end = [&](TaskId task, int step) {
    return task == kNone ? 0 : step * trace.step_time + trace.spans[first + task].ended;
  };
  return std::max(end(wait.task, wait.step), end(wait.other, wait.other_step));
}

// Returns the index of the first retry that is not before a moment; the number of moments if there is none.
std::uint32_t ReplayMoments::retry_from(std::uint32_t moment) const {
  const auto retry = std::ranges::lower_bound(retries_, moment);
  return retry == retries_.end() ? static_cast<std::uint32_t>(moments_.size()) : *retry;
}

// Another class of ranks, whose moments are gone through one after another.
struct ReplayMoments::OtherClass {
  explicit OtherClass(const HostTimes& of) : host(of), lag(of.lag()) {}

  const HostTimes& host;
  HostLag lag;
  std::vector<Picoseconds> times;  // times of the moments so far
  Picoseconds latest = kNever;     // latest of them since the last retry
  Picoseconds synchronized = 0;    // latest end of the events that retries have waited for
};

// Returns the time of a moment in another class, whose host falls behind at the same retries. ending: waits for events
// that complete before this moment, but not before the last one.
Picoseconds ReplayMoments::time_of(std::uint32_t moment, std::span<const Wait> ending, OtherClass& of,
                                   const Trace& trace, TaskId first) const {
  const Moment& m = moments_[moment];
  const Moment* last = moment == 0 ? nullptr : &moments_[moment - 1];
  if (last == nullptr || last->step != m.step) of.lag.restart();
  if (m.retry) {
    for (const Wait& w : ending) of.synchronized = std::max(of.synchronized, end_of(w, trace, first));
    of.lag.fall_behind(first + m.task, of.synchronized - of.times.back());
  }
  if (last != nullptr && last->task == m.task && last->step == m.step) return of.times.back();
  const TaskId behind = m.behind == kNone ? kNone : first + m.behind;
  return m.step * trace.step_time + of.host.now(first + m.task, behind, m.checked, of.lag.at(first + m.task));
}

// Returns for each moment the latest of the times, which need not rise, of it and of the moments since the retry before
// it.
std::vector<Picoseconds> ReplayMoments::latest(const std::vector<Picoseconds>& times) const {
  std::vector<Picoseconds> latest;
  latest.reserve(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Picoseconds before = latest.empty() ? kNever : latest.back();
    latest.push_back(moments_[i].retry ? kNever : std::max(before, times[i]));
  }
  return latest;
}

bool ReplayMoments::keeps_all(const Trace& trace, TaskId first) const {
  return std::ranges::all_of(kept_, [&](TaskId t) { return trace.spans[first + t].ended > 0; }) &&
         std::ranges::all_of(waits_, [&](const Wait& w) { return end_of(w, trace, first) > 0; });
}

bool ReplayMoments::close(const Trace& trace, TaskId first) {
  if (!shared_ || !keeps_all(trace, first)) return false;
  const std::vector<Picoseconds> latest_times = latest(times_);
  for (Wait& w : waits_) {
    const Picoseconds end = end_of(w, trace, first);
    // The first request as late as the end is the first at which the latest so far is, if no request before the free
    // is later than the end.
    const bool rises = w.after == 0 || latest_times[w.after - 1] < end;
    const auto& list = rises ? latest_times : times_;
    const auto from = list.begin() + w.after, retry = list.begin() + retry_from(w.after);
    const auto until = rises ? std::lower_bound(from, retry, end)
                             : std::find_if(from, retry, [&](Picoseconds now) { return now >= end; });
    w.until = static_cast<std::uint32_t>(until - list.begin());
  }
  times_ = {};
  std::ranges::stable_sort(waits_, {}, &Wait::until);
  return true;
}

bool ReplayMoments::same_for(const HostTimes& host, const Trace& trace, TaskId first) const {
  if (!keeps_all(trace, first)) return false;
  OtherClass other(host);
  other.times.reserve(moments_.size());
  auto group = waits_.begin();  // waits whose events complete before the next moment, but not before the last one
  for (std::uint32_t i = 0; i <= moments_.size(); ++i) {
    const auto from = group;
    while (group != waits_.end() && group->until == i) ++group;
    const std::span<const Wait> ending(from, group);
    const bool request = i < moments_.size() && !moments_[i].retry;
    if (i < moments_.size()) other.times.push_back(time_of(i, ending, other, trace, first));
    for (const Wait& w : ending) {
      const Picoseconds end = end_of(w, trace, first);
      if (request && other.times[i] < end) return false;
      if (w.after < i && other.latest >= end &&
          !std::all_of(other.times.begin() + w.after, other.times.begin() + i, [&](Picoseconds t) { return t < end; }))
        return false;
    }
    if (i < moments_.size()) other.latest = request ? std::max(other.latest, other.times[i]) : kNever;
  }
  return true;
}

}  // namespace orrery
