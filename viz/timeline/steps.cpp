#include "viz/timeline/steps.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <tuple>

namespace orrery {
namespace {

constexpr std::string_view kStepMark = "ProfilerStep#";

// For each label, the number of the step that its events mark; -1: they mark none.
std::vector<std::int64_t> marks_of(const Timeline& t) {
  std::vector<std::int64_t> marks;
  for (const Label& label : t.labels) {
    std::int64_t number = -1;
    if (label.kind == Kind::host && label.name.starts_with(kStepMark))
      std::from_chars(label.name.data() + kStepMark.size(), label.name.data() + label.name.size(), number);
    marks.push_back(number);
  }
  return marks;
}

// Returns whether the events of a track are on a host. The profiler repeats a step's mark on the device, where it may
// begin with any kernel; such marks do not count.
bool marks_on_host(const Timeline& t, const Track& track) {
  for (EventId e = track.first; e < track.first + track.count; ++e) {
    if (t.kind(e) == Kind::host && t.name(e).starts_with(kStepMark))
      return ids_of(t, e).role == EventIds::Role::annotation;
  }
  return false;
}

}  // namespace

Steps::Steps(const Timeline& timeline, const Launches& launches) : t_(timeline), launches_(launches) {
  const std::vector<std::int64_t> marks = marks_of(t_);
  const bool any = std::any_of(marks.begin(), marks.end(), [](std::int64_t m) { return m >= 0; });
  for (const Track& track : t_.tracks) {
    if (!any || !marks_on_host(t_, track)) continue;
    for (EventId e = track.first; e < track.first + track.count; ++e) {
      const std::int64_t number = marks[t_.label[e]];
      if (number >= 0) steps_.push_back({t_.processes[track.process].rank, number, t_.begins[e], t_.ends[e]});
    }
  }
  std::sort(steps_.begin(), steps_.end(), [](const MarkedStep& a, const MarkedStep& b) {
    return std::tie(a.rank, a.begin, a.end) < std::tie(b.rank, b.begin, b.end);
  });
  if (t_.step_time > 0) count_ = std::max<int>(1, static_cast<int>(t_.end / t_.step_time));
  for (std::size_t i = 0, in_rank = 0; i < steps_.size(); ++i) {
    in_rank = i > 0 && steps_[i - 1].rank == steps_[i].rank ? in_rank + 1 : 1;
    count_ = std::max(count_, static_cast<int>(in_rank));
  }
  std::optional<Picoseconds> first;
  for (const Track& track : t_.tracks) {
    for (EventId e = track.first; e < track.first + track.count; ++e) {
      if (!works(t_, e) || of(e, track.process) != 0) continue;
      first = std::min(first.value_or(t_.begins[e]), t_.begins[e]);
      break;
    }
  }
  first_ = first.value_or(0);
}

int Steps::count_of(std::int64_t rank) const {
  if (steps_.empty()) return count_;
  return static_cast<int>(
      std::count_if(steps_.begin(), steps_.end(), [&](const MarkedStep& s) { return s.rank == rank; }));
}

Picoseconds Steps::mean_time() const {
  if (steps_.empty()) return t_.step_time > 0 ? t_.step_time : t_.end;
  Picoseconds sum = 0;
  for (const MarkedStep& s : steps_) sum += s.end - s.begin;
  return sum / std::ssize(steps_);
}

int Steps::of(EventId e, std::uint32_t process) const {
  if (steps_.empty())
    return t_.step_time > 0 ? std::min<int>(count_ - 1, static_cast<int>(t_.begins[e] / t_.step_time)) : 0;
  const EventId call = launches_.empty() ? kNoEvent : launches_.call[e];
  const Picoseconds time = t_.begins[call == kNoEvent ? e : call];
  const std::int64_t rank = t_.processes[process].rank;
  const auto first = std::lower_bound(steps_.begin(), steps_.end(), rank,
                                      [](const MarkedStep& s, std::int64_t r) { return s.rank < r; });
  const auto after = std::upper_bound(
      first, steps_.end(), time, [&](Picoseconds at, const MarkedStep& s) { return s.rank > rank || at < s.begin; });
  if (after == first || (after - 1)->end <= time) return -1;
  return static_cast<int>(after - 1 - first);
}

}  // namespace orrery
