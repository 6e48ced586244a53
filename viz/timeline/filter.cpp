#include "viz/timeline/filter.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/print/text.h"

namespace orrery {
namespace {

// The labels, processes and times that restrictions together let pass.
struct Passing {
  std::vector<bool> labels, processes;
  std::vector<Filter> times;

  bool time(Picoseconds begin, Picoseconds end) const {
    return std::all_of(times.begin(), times.end(), [&](const Filter& f) {
      const bool inside = begin < f.to && end > f.from;
      return f.keeps ? inside : !inside;
    });
  }
};

Passing passing_of(const Timeline& t, const std::vector<Filter>& filters) {
  Passing p{std::vector<bool>(t.labels.size(), true), std::vector<bool>(t.processes.size(), true), {}};
  for (const Filter& f : filters) {
    if (f.by == Filter::By::time) p.times.push_back(f);
    for (std::size_t l = 0; f.by == Filter::By::op && l < t.labels.size(); ++l)
      p.labels[l] = p.labels[l] && (t.labels[l].name == f.name) == f.keeps;
    for (std::size_t l = 0; f.by == Filter::By::phase && l < t.labels.size(); ++l) {
      const std::int8_t phase = t.labels[l].phase;
      p.labels[l] =
          p.labels[l] && (phase != kNoPhase && t.phases[static_cast<std::size_t>(phase)] == f.name) == f.keeps;
    }
    for (std::size_t i = 0; f.by == Filter::By::rank && i < t.processes.size(); ++i)
      p.processes[i] = p.processes[i] && (t.processes[i].name == f.name) == f.keeps;
  }
  return p;
}

// Returns the event of a track that an arrow begins at (`sends`) or ends at, at a time: where one event ends and the
// next begins, the one that begins if it sends, else the one that ends; kNoEvent if the track has none at that time.
EventId event_at(const Timeline& t, const Track& track, Picoseconds time, bool sends) {
  EventId low = track.first, high = track.first + track.count;  // the first event that begins after the time
  while (low < high) {
    const EventId middle = low + (high - low) / 2;
    (t.begins[middle] <= time ? low : high) = t.begins[middle] <= time ? middle + 1 : middle;
  }
  const auto touches = [&](EventId e) { return e != kNoEvent && t.ends[e] >= time; };
  const EventId last = low > track.first ? low - 1 : kNoEvent;
  const EventId before = last != kNoEvent && last > track.first ? last - 1 : kNoEvent;
  if (!sends && touches(before)) return before;
  return touches(last) ? last : touches(before) ? before : kNoEvent;
}

template <class T>
MappedColumn<T> taken(const MappedColumn<T>& column, const std::vector<EventId>& events) {
  if (column.empty()) return {};
  std::vector<T> values;
  values.reserve(events.size());
  for (const EventId e : events) values.push_back(column[e]);
  return values;
}

}  // namespace

std::string text_of(const Filter& f) {
  constexpr const char* words[] = {"op", "phase", "rank"};
  const char* const how = f.keeps ? "only" : "without";
  if (f.by == Filter::By::time)
    return fmt::format("{} {} to {}", how, time_text(seconds(f.from)), time_text(seconds(f.to)));
  return fmt::format("{} {} {}", how, words[static_cast<std::size_t>(f.by)], f.name);
}

void FilterHistory::add(Filter filter) {
  all_.resize(count_);
  all_.push_back(std::move(filter));
  ++count_;
}

bool FilterHistory::undo() {
  if (!can_undo()) return false;
  --count_;
  return true;
}

bool FilterHistory::redo() {
  if (!can_redo()) return false;
  ++count_;
  return true;
}

void FilterHistory::clear() {
  all_.clear();
  count_ = 0;
}

FilteredTimeline filtered(const Timeline& whole, const std::vector<Filter>& filters) {
  const Passing passing = passing_of(whole, filters);
  FilteredTimeline result{whole, std::vector<EventId>(whole.events(), kNoEvent)};
  Timeline& t = result.timeline;
  std::vector<EventId> kept;
  for (Track& track : t.tracks) {
    const EventId first = track.first, end = track.first + track.count;
    track.first = static_cast<EventId>(kept.size());
    for (EventId e = first; e < end && passing.processes[track.process]; ++e) {
      if (!passing.labels[whole.label[e]] || !passing.time(whole.begins[e], whole.ends[e])) continue;
      result.there[e] = static_cast<EventId>(kept.size());
      kept.push_back(e);
    }
    track.count = static_cast<EventId>(kept.size()) - track.first;
  }
  t.begins = taken(whole.begins, kept);
  t.ends = taken(whole.ends, kept);
  t.label = taken(whole.label, kept);
  t.detail = taken(whole.detail, kept);
  t.places = taken(whole.places, kept);
  // An arrow between tracks that have no event at its times stays as long as the tracks have events.
  const auto is_gone = [&](std::uint32_t track, Picoseconds time, bool sends) {
    const EventId end = event_at(whole, whole.tracks[track], time, sends);
    return t.tracks[track].count == 0 || (end != kNoEvent && result.there[end] == kNoEvent);
  };
  std::erase_if(t.arrows, [&](const Arrow& a) {
    return is_gone(a.from_track, a.from, true) || is_gone(a.to_track, a.to, false) || !passing.time(a.from, a.to);
  });
  return result;
}

}  // namespace orrery
