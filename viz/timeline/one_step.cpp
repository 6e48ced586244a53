#include "viz/timeline/one_step.h"

#include <algorithm>
#include <limits>

namespace orrery {
namespace {

// The time from the begin of a step's first event, or first work, to the end of its last.
struct Extent {
  Picoseconds begin = std::numeric_limits<Picoseconds>::max(), end = std::numeric_limits<Picoseconds>::min();
  void add(Picoseconds from, Picoseconds to) {
    begin = std::min(begin, from);
    end = std::max(end, to);
  }
  Picoseconds length() const { return end < begin ? 0 : end - begin; }
};

// For each step, the extent of its work.
std::vector<Extent> extents_of(const Timeline& t, const Steps& steps) {
  std::vector<Extent> extents(static_cast<std::size_t>(steps.count()));
  for (const Track& track : t.tracks) {
    for (EventId e = track.first; e < track.first + track.count; ++e) {
      const int step = works(t, e) ? steps.of(e, track.process) : -1;
      if (step >= 0) extents[static_cast<std::size_t>(step)].add(t.begins[e], t.ends[e]);
    }
  }
  return extents;
}

template <class T>
MappedColumn<T> taken(const MappedColumn<T>& column, const std::vector<EventId>& events, T less) {
  if (column.empty()) return {};
  std::vector<T> values;
  values.reserve(events.size());
  for (const EventId e : events) values.push_back(static_cast<T>(column[e] - less));
  return values;
}

// Keeps the samples of a counter within a step's time, and the last one before it.
Counter cut(const Counter& c, const Extent& extent) {
  Counter result{c.name, c.series, {}, {}};
  const auto after = std::upper_bound(c.times.begin(), c.times.end(), extent.begin);
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, after - c.times.begin() - 1);
  for (auto i = static_cast<std::size_t>(first); i < c.times.size() && c.times[i] <= extent.end; ++i) {
    result.times.push_back(std::max<Picoseconds>(0, c.times[i] - extent.begin));
    const auto at = c.values.begin() + static_cast<std::ptrdiff_t>(i * c.series.size());
    result.values.insert(result.values.end(), at, at + static_cast<std::ptrdiff_t>(c.series.size()));
  }
  return result;
}

}  // namespace

FirstAndSteady first_and_steady_step(const Timeline& timeline, const Steps& steps) {
  const std::vector<Extent> extents = extents_of(timeline, steps);
  std::vector<int> order;
  for (int i = 0; i < steps.count(); ++i) {
    if (extents[static_cast<std::size_t>(i)].length() > 0) order.push_back(i);
  }
  if (order.size() < 2) return {};
  const int first = order.front();
  order.erase(order.begin());
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return extents[static_cast<std::size_t>(a)].length() < extents[static_cast<std::size_t>(b)].length();
  });
  return {first, order[(order.size() - 1) / 2]};
}

Timeline one_step(const Timeline& whole, const Steps& steps, int step) {
  Extent extent;
  Timeline t = whole;
  std::vector<EventId> kept;
  for (Track& track : t.tracks) {
    const EventId first = track.first, end = track.first + track.count;
    track.first = static_cast<EventId>(kept.size());
    for (EventId e = first; e < end; ++e) {
      if (steps.of(e, track.process) != step) continue;
      kept.push_back(e);
      extent.add(whole.begins[e], whole.ends[e]);
    }
    track.count = static_cast<EventId>(kept.size()) - track.first;
  }
  if (kept.empty()) extent = {0, 0};
  t.begins = taken(whole.begins, kept, extent.begin);
  t.ends = taken(whole.ends, kept, extent.begin);
  t.label = taken(whole.label, kept, std::uint32_t{0});
  t.detail = taken(whole.detail, kept, std::uint64_t{0});
  if (!whole.places.empty()) {
    std::vector<OpInstance> places;
    for (const EventId e : kept) places.push_back(whole.places[e]);
    t.places = std::move(places);
  }
  for (Process& p : t.processes) {
    for (Counter& c : p.counters) c = cut(c, extent);
  }
  std::erase_if(t.arrows, [&](const Arrow& a) { return a.from < extent.begin || a.to > extent.end; });
  for (Arrow& a : t.arrows) {
    a.from -= extent.begin;
    a.to -= extent.begin;
  }
  t.end = extent.length();
  t.step_time = 0;
  t.saved_view.clear();
  return t;
}

}  // namespace orrery
