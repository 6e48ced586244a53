#include "sim/memory/shared_replay.h"

#include <algorithm>

namespace orrery {

void ReplayMoments::request(TaskId task, TaskId behind, bool checked, int step) {
  // Requests of one task are at one time; with no wait noted between them, the later ones free nothing.
  if (!requests_.empty() && requests_.back().task == task && requests_.back().step == step &&
      waits_.size() == waits_at_request_)
    return;
  requests_.push_back({task, behind, step, checked});
  waits_at_request_ = waits_.size();
}

void ReplayMoments::wait(TaskId task, int step, TaskId other, int other_step) {
  waits_.push_back({task, other, step, other_step, static_cast<std::uint32_t>(requests_.size()), 0});
}

Picoseconds ReplayMoments::end_of(const Wait& wait, const Trace& trace, TaskId first) {
  const auto end = [&](TaskId task, int step) {
    return task == kNone ? 0 : step * trace.step_time + trace.spans[first + task].ended;
  };
  return std::max(end(wait.task, wait.step), end(wait.other, wait.other_step));
}

ReplayMoments::Times ReplayMoments::request_times(const HostTimes& host, const Trace& trace, TaskId first) const {
  Times times;
  times.now.reserve(requests_.size());
  times.latest.reserve(requests_.size());
  for (const Request& r : requests_) {
    const TaskId behind = r.behind == kNone ? kNone : first + r.behind;
    const Picoseconds now = r.step * trace.step_time + host.now(first + r.task, behind, r.checked, 0);
    times.now.push_back(now);
    times.latest.push_back(times.latest.empty() ? now : std::max(now, times.latest.back()));
  }
  return times;
}

bool ReplayMoments::keeps_all(const Trace& trace, TaskId first) const {
  return std::ranges::all_of(kept_, [&](TaskId t) { return trace.spans[first + t].ended > 0; }) &&
         std::ranges::all_of(waits_, [&](const Wait& w) { return end_of(w, trace, first) > 0; });
}

bool ReplayMoments::close(const HostTimes& host, const Trace& trace, TaskId first) {
  if (!shared_ || !keeps_all(trace, first)) return false;
  const Times times = request_times(host, trace, first);
  for (Wait& w : waits_) {
    const Picoseconds end = end_of(w, trace, first);
    // The first request as late as the end is the first at which the latest so far is, if no request before the free
    // is later than the end.
    const bool rises = w.after == 0 || times.latest[w.after - 1] < end;
    const auto& list = rises ? times.latest : times.now;
    const auto from = list.begin() + w.after;
    const auto until = rises ? std::lower_bound(from, list.end(), end)
                             : std::find_if(from, list.end(), [&](Picoseconds now) { return now >= end; });
    w.until = static_cast<std::uint32_t>(until - list.begin());
  }
  return true;
}

bool ReplayMoments::same_for(const HostTimes& host, const Trace& trace, TaskId first) const {
  if (!keeps_all(trace, first)) return false;
  const Times times = request_times(host, trace, first);
  return std::ranges::all_of(waits_, [&](const Wait& w) {
    const Picoseconds end = end_of(w, trace, first);
    if (w.until < times.now.size() && times.now[w.until] < end) return false;
    if (w.until == w.after || times.latest[w.until - 1] < end) return true;
    return std::all_of(times.now.begin() + w.after, times.now.begin() + w.until,
                       [&](Picoseconds now) { return now < end; });
  });
}

namespace {

// Compares ids of two classes, of which those of the second lie further behind by a fixed number.
struct Further {
  std::uint32_t by = 0;
  bool operator()(std::uint32_t a, std::uint32_t b) const { return a == kNone ? b == kNone : b == a + by; }
};

bool equal_buffers(const Block& a, const Block& b) {
  const auto same = [](const BlockBuffer& x, const BlockBuffer& y) {
    return x.name == y.name && x.bytes == y.bytes && x.category == y.category && x.lazy == y.lazy && x.home == y.home &&
           x.contiguous == y.contiguous;
  };
  return a.role == b.role && std::ranges::equal(a.buffers, b.buffers, same);
}

bool equal_frames(const Plan& plan, const std::vector<std::uint32_t>& of, const std::vector<std::uint32_t>& others) {
  if (of.size() != others.size() || of.empty()) return false;
  const Further further{others.front() - of.front()};
  std::map<std::uint32_t, std::uint32_t> known;  // equal blocks of the two classes
  for (std::size_t i = 0; i < of.size(); ++i) {
    const Frame &a = plan.frames[of[i]], &b = plan.frames[others[i]];
    if (!further(of[i], others[i]) || a.layer != b.layer || a.micro_batch != b.micro_batch || a.chunk != b.chunk ||
        a.base != b.base || a.frozen_base != b.frozen_base)
      return false;
    for (const std::uint32_t Frame::*other :
         {&Frame::next, &Frame::previous, &Frame::beside, &Frame::unit, &Frame::state, &Frame::weights}) {
      if (!further(a.*other, b.*other)) return false;
    }
    if (a.block == b.block) continue;
    const auto [at, fresh] = known.try_emplace(a.block, b.block);
    const Block &left = plan.blocks[a.block], &right = plan.blocks[b.block];
    // The parameters of a block give the sizes of gradients that are one tensor for each weight.
    if (at->second != b.block || (fresh && (!equal_buffers(left, right) || !left.parameters.empty()))) return false;
  }
  return true;
}

}  // namespace

bool equal_plans(const Plan& plan, std::uint32_t slot, std::uint32_t other,
                 const std::vector<std::vector<std::uint32_t>>& frames) {
  const RankClass &a = plan.classes[slot], &b = plan.classes[other];
  if (a.stage != b.stage || a.server != b.server || a.second != b.second || a.end - a.begin != b.end - b.begin)
    return false;
  if (!equal_frames(plan, frames[slot], frames[other])) return false;
  const Further further{frames[other].front() - frames[slot].front()};
  for (TaskId t = 0; t < a.end - a.begin; ++t) {
    const Task &x = plan.tasks[a.begin + t], &y = plan.tasks[b.begin + t];
    if (x.op != y.op || !further(x.frame, y.frame) || x.flags != y.flags) return false;
  }
  return true;
}

}  // namespace orrery
