#include "viz/timeline/timeline_builder.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "models/base/error.h"

namespace orrery {
namespace {

// The greatest depth of nesting that has a row of its own: events nested deeper share the last row.
constexpr std::uint32_t kDeepestLevel = 32;
// Greatest time in picoseconds by which consecutive events may seem to overlap, because traces round times to
// nanoseconds.
constexpr Picoseconds kRounding = 2000;

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  std::uint64_t h = seed ^ 0xcbf29ce484222325ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

template <class T>
MappedColumn<T> in_place(std::vector<T>& column, const std::vector<std::uint32_t>& place) {
  std::vector<T> result(column.size());
  for (std::size_t i = 0; i < column.size(); ++i) result[place[i]] = column[i];
  column = std::vector<T>();  // frees the memory, which assigning {} would keep
  return result;
}

// smallest number of events for which moving their times in another thread is worth its cost
constexpr std::size_t kWorthAThread = 1 << 20;

}  // namespace

void TimelineBuilder::reserve(std::size_t events) {
  begins_.reserve(events);
  ends_.reserve(events);
  thread_.reserve(events);
  label_.reserve(events);
  detail_.reserve(events);
}

std::uint32_t TimelineBuilder::add_process(Process process) {
  timeline_.processes.push_back(std::move(process));
  return static_cast<std::uint32_t>(timeline_.processes.size()) - 1;
}

std::uint32_t TimelineBuilder::add_thread(std::uint32_t process, std::string name, std::int64_t order) {
  threads_.push_back({process, std::move(name), order});
  return static_cast<std::uint32_t>(threads_.size()) - 1;
}

std::uint32_t TimelineBuilder::label(std::string_view name, Kind kind, KernelClass op_class, std::int8_t phase) {
  auto& candidates = label_index_[hash_text(name, static_cast<std::uint64_t>(kind))];
  for (const std::uint32_t i : candidates) {
    const Label& known = timeline_.labels[i];
    if (known.kind == kind && known.phase == phase && known.name == name) return i;
  }
  candidates.push_back(static_cast<std::uint32_t>(timeline_.labels.size()));
  timeline_.labels.push_back({std::string(name), kind, op_class, phase});
  return candidates.back();
}

std::uint64_t TimelineBuilder::add_source(std::shared_ptr<DetailSource> source) {
  timeline_.sources.push_back(std::move(source));
  return (static_cast<std::uint64_t>(timeline_.sources.size()) - 1) << 56;
}

void TimelineBuilder::add(const Event& event) {
  if (begins_.size() >= kNoEvent - 1) throw Error("trace: more than four billion events; cut it first");
  begins_.push_back(event.begin);
  ends_.push_back(std::max(event.begin, event.end));
  thread_.push_back(event.thread);
  label_.push_back(event.label);
  detail_.push_back(event.detail);
  if (!places_.empty()) places_.emplace_back();
}

void TimelineBuilder::add(const Event& event, OpInstance place) {
  if (places_.empty()) places_.reserve(begins_.capacity());
  add(event);
  places_.resize(begins_.size());
  places_.back() = place;
}

// Returns for each thread its events sorted by begin (for equal begins, the longer event first); empty for threads
// whose events were added in that order.
std::vector<std::vector<EventId>> TimelineBuilder::out_of_order() const {
  struct Last {
    Picoseconds begin = INT64_MIN, end = INT64_MAX;
    bool broken = false;
  };
  std::vector<Last> last(threads_.size());
  bool any = false;
  for (std::size_t e = 0; e < begins_.size(); ++e) {
    Last& l = last[thread_[e]];
    const bool after = begins_[e] > l.begin || (begins_[e] == l.begin && ends_[e] <= l.end);
    any |= !after;
    l = {begins_[e], ends_[e], l.broken || !after};
  }
  std::vector<std::vector<EventId>> events(threads_.size());
  if (!any) return events;
  for (EventId e = 0; e < begins_.size(); ++e) {
    if (last[thread_[e]].broken) events[thread_[e]].push_back(e);
  }
  const auto before = [&](EventId a, EventId b) {
    if (begins_[a] != begins_[b]) return begins_[a] < begins_[b];
    return ends_[a] != ends_[b] ? ends_[a] > ends_[b] : a < b;
  };
  for (auto& list : events) std::sort(list.begin(), list.end(), before);
  return events;
}

// Puts every event on a row of its thread: the first row that is free when the event begins. For each event, thread_
// gets the value thread * kDeepestLevel + row.
void TimelineBuilder::lay_out(const std::vector<std::vector<EventId>>& sorted) {
  rows_.resize(threads_.size());
  const auto take = [&](EventId e) {
    std::vector<RowEnd>& rows = rows_[thread_[e]];
    std::uint32_t row = 0;
    while (row < rows.size() && row + 1 < kDeepestLevel && begins_[e] + kRounding < rows[row].end) ++row;
    if (row == rows.size()) rows.push_back({begins_[e], 0});
    begins_[e] = std::max(begins_[e], rows[row].end);
    ends_[e] = std::max(begins_[e], ends_[e]);
    rows[row] = {ends_[e], rows[row].count + 1};
    thread_[e] = thread_[e] * kDeepestLevel + row;
  };
  for (EventId e = 0; e < begins_.size(); ++e) {
    if (sorted[thread_[e]].empty()) take(e);
  }
  for (const std::vector<EventId>& list : sorted) {
    for (const EventId e : list) take(e);
  }
}

// Makes a track (a row of the timeline) of every row of a thread; threads are in the order in which they are shown.
void TimelineBuilder::make_tracks() {
  std::vector<std::uint32_t> shown(threads_.size());
  std::iota(shown.begin(), shown.end(), 0U);
  std::stable_sort(shown.begin(), shown.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Thread &x = threads_[a], &y = threads_[b];
    return x.process != y.process ? x.process < y.process : x.order < y.order;
  });
  first_track_.assign(threads_.size(), 0);
  EventId first = 0;
  for (const std::uint32_t t : shown) {
    first_track_[t] = static_cast<std::uint32_t>(timeline_.tracks.size());
    for (std::uint32_t row = 0; row < rows_[t].size(); ++row) {
      const EventId count = rows_[t][row].count;
      timeline_.processes[threads_[t].process].tracks.push_back(first_track_[t] + row);
      timeline_.tracks.push_back({threads_[t].process, threads_[t].name, row, first, count});
      first += count;
    }
  }
}

// Removes processes that have neither events nor counters, because profilers list every device of a machine, also
// unused ones.
void TimelineBuilder::drop_empty_processes() {
  std::vector<std::uint32_t> place(timeline_.processes.size(), 0);
  std::vector<Process> kept;
  for (std::size_t p = 0; p < place.size(); ++p) {
    place[p] = static_cast<std::uint32_t>(kept.size());
    Process& process = timeline_.processes[p];
    if (!process.tracks.empty() || !process.counters.empty()) kept.push_back(std::move(process));
  }
  if (kept.empty()) return;
  timeline_.processes = std::move(kept);
  for (Track& track : timeline_.tracks) track.process = place[track.process];
}

// Computes the final index of every event (events are ordered by row, then by time), and stores it in thread_.
void TimelineBuilder::find_places(const std::vector<std::vector<EventId>>& sorted) {
  std::vector<EventId> next;
  for (const Track& track : timeline_.tracks) next.push_back(track.first);
  const auto take = [&](EventId e) {
    thread_[e] = next[first_track_[thread_[e] / kDeepestLevel] + thread_[e] % kDeepestLevel]++;
  };
  for (EventId e = 0; e < begins_.size(); ++e) {
    if (sorted[thread_[e] / kDeepestLevel].empty()) take(e);
  }
  for (const std::vector<EventId>& list : sorted) {
    for (const EventId e : list) take(e);
  }
}

void TimelineBuilder::move_columns() {
  const auto move_times = [&] {
    timeline_.begins = in_place(begins_, thread_);
    timeline_.ends = in_place(ends_, thread_);
  };
  std::thread beside;
  if (begins_.size() >= kWorthAThread) {
    beside = std::thread(move_times);
  } else {
    move_times();
  }
  timeline_.label = in_place(label_, thread_);
  timeline_.detail = in_place(detail_, thread_);
  if (!places_.empty()) timeline_.places = in_place(places_, thread_);
  if (beside.joinable()) beside.join();
}

void TimelineBuilder::finish_arrows() {
  for (Arrow& a : timeline_.arrows) {
    a.from_track = first_track_[a.from_track];
    a.to_track = first_track_[a.to_track];
  }
  std::erase_if(timeline_.arrows, [&](const Arrow& a) {
    return a.from_track >= timeline_.tracks.size() || a.to_track >= timeline_.tracks.size();
  });
  std::stable_sort(timeline_.arrows.begin(), timeline_.arrows.end(),
                   [](const Arrow& a, const Arrow& b) { return a.from < b.from; });
}

void TimelineBuilder::shift(std::size_t first, std::size_t last, Picoseconds by) {
  std::vector<bool> moved(timeline_.processes.size());
  for (std::size_t e = first; e < last; ++e) {
    begins_[e] += by;
    ends_[e] += by;
    moved[threads_[thread_[e]].process] = true;
  }
  for (std::size_t p = 0; p < moved.size(); ++p) {
    if (!moved[p]) continue;
    for (Counter& c : timeline_.processes[p].counters) {
      for (Picoseconds& t : c.times) t += by;
    }
  }
}

void TimelineBuilder::shift_all(Picoseconds by) {
  for (Picoseconds& t : begins_) t += by;
  for (Picoseconds& t : ends_) t += by;
  for (Process& p : timeline_.processes) {
    for (Counter& c : p.counters) {
      for (Picoseconds& t : c.times) t += by;
    }
  }
  for (Arrow& a : timeline_.arrows) {
    a.from += by;
    a.to += by;
  }
}

Timeline TimelineBuilder::finish(std::optional<Picoseconds> zero) {
  if (!begins_.empty()) {
    shift_all(-zero.value_or(*std::min_element(begins_.begin(), begins_.end())));
    timeline_.end = *std::max_element(ends_.begin(), ends_.end());
  }
  const std::vector<std::vector<EventId>> sorted = out_of_order();
  lay_out(sorted);
  make_tracks();
  drop_empty_processes();
  find_places(sorted);
  move_columns();
  finish_arrows();
  return std::move(timeline_);
}

}  // namespace orrery
