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
    for (std::size_t i = 0; f.by == Filter::By::rank && i < t.processes.size(); ++i)
      p.processes[i] = p.processes[i] && (t.processes[i].name == f.name) == f.keeps;
  }
  return p;
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
  const char* const how = f.keeps ? "only" : "without";
  if (f.by == Filter::By::time)
    return fmt::format("{} {} to {}", how, time_text(seconds(f.from)), time_text(seconds(f.to)));
  return fmt::format("{} {} {}", how, f.by == Filter::By::op ? "op" : "rank", f.name);
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
  std::erase_if(t.arrows, [&](const Arrow& a) {
    return t.tracks[a.from_track].count == 0 || t.tracks[a.to_track].count == 0 || !passing.time(a.from, a.to);
  });
  return result;
}

}  // namespace orrery
