#include "viz/timeline_builder.h"

#include <algorithm>
#include <numeric>

#include "models/error.h"

namespace orrery {
namespace {

constexpr std::uint32_t kDeepestLevel = 32;  // what is nested deeper shares the last row
constexpr Picoseconds kRounding = 2000;  // traces round times to nanoseconds, so that neighbours may seem to overlap

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  std::uint64_t h = seed ^ 0xcbf29ce484222325ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

template <class T>
Column<T> permuted(std::vector<T>& column, const std::vector<EventId>& order) {
  std::vector<T> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) result[i] = column[order[i]];
  column = std::vector<T>();  // = {} would keep the memory
  return result;
}

// Where each value's run begins when they are sorted: (value), and one past the end.
std::vector<EventId> starts_of(const std::vector<std::uint32_t>& values, std::size_t count) {
  std::vector<EventId> starts(count + 1);
  for (const std::uint32_t v : values) ++starts[v + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  return starts;
}

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

std::uint32_t TimelineBuilder::label(std::string_view name, Kind kind) {
  auto& candidates = label_index_[hash_text(name, static_cast<std::uint64_t>(kind))];
  for (const std::uint32_t i : candidates) {
    if (timeline_.labels[i].kind == kind && timeline_.labels[i].name == name) return i;
  }
  candidates.push_back(static_cast<std::uint32_t>(timeline_.labels.size()));
  timeline_.labels.push_back({std::string(name), kind});
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

void TimelineBuilder::add(const Event& event, Place place) {
  if (places_.empty()) places_.reserve(begins_.capacity());
  add(event);
  places_.resize(begins_.size());
  places_.back() = place;
}

// Event numbers, those of a thread together, each thread's by begin and the longer first.
std::vector<EventId> TimelineBuilder::by_thread() {
  std::vector<EventId> next = starts_of(thread_, threads_.size());
  const std::vector<EventId> starts = next;
  std::vector<EventId> order(begins_.size());
  for (EventId e = 0; e < order.size(); ++e) order[next[thread_[e]]++] = e;
  const auto before = [&](EventId a, EventId b) {
    if (begins_[a] != begins_[b]) return begins_[a] < begins_[b];
    return ends_[a] != ends_[b] ? ends_[a] > ends_[b] : a < b;
  };
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    const auto from = order.begin() + starts[t];
    const auto to = order.begin() + starts[t + 1];
    if (!std::is_sorted(from, to, before)) std::sort(from, to, before);
  }
  return order;
}

// Gives every event the first row of its thread that is free when it begins, makes a track of every row, and puts its
// number in thread_. Threads are taken in the order in which they are to be shown.
void TimelineBuilder::lay_out(std::vector<EventId>& order) {
  const std::vector<EventId> starts = starts_of(thread_, threads_.size());
  std::vector<std::uint32_t> shown(threads_.size());
  std::iota(shown.begin(), shown.end(), 0U);
  std::stable_sort(shown.begin(), shown.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Thread &x = threads_[a], &y = threads_[b];
    return x.process != y.process ? x.process < y.process : x.order < y.order;
  });
  first_track_.assign(threads_.size(), 0);
  for (const std::uint32_t t : shown) {
    const auto base = static_cast<std::uint32_t>(timeline_.tracks.size());
    first_track_[t] = base;
    std::vector<Picoseconds> row_end;
    for (EventId i = starts[t]; i < starts[t + 1]; ++i) {
      const EventId e = order[i];
      std::uint32_t row = 0;
      while (row < row_end.size() && row + 1 < kDeepestLevel && begins_[e] + kRounding < row_end[row] &&
             begins_[e] < row_end[row])
        ++row;
      if (row == row_end.size()) row_end.push_back(begins_[e]);
      begins_[e] = std::max(begins_[e], row_end[row]);
      ends_[e] = std::max(begins_[e], ends_[e]);
      row_end[row] = ends_[e];
      thread_[e] = base + row;
    }
    for (std::uint32_t row = 0; row < row_end.size(); ++row) {
      timeline_.processes[threads_[t].process].tracks.push_back(base + row);
      timeline_.tracks.push_back({threads_[t].process, threads_[t].name, row});
    }
  }
  const std::vector<EventId> next = starts_of(thread_, timeline_.tracks.size());
  for (std::size_t t = 0; t < timeline_.tracks.size(); ++t) {
    timeline_.tracks[t].first = next[t];
    timeline_.tracks[t].count = next[t + 1] - next[t];
  }
}

void TimelineBuilder::move_columns(std::vector<EventId> order) {
  std::vector<EventId> next = starts_of(thread_, timeline_.tracks.size());
  std::vector<EventId> place(order.size());
  for (const EventId e : order) place[next[thread_[e]]++] = e;
  thread_ = std::vector<std::uint32_t>();
  order = std::vector<EventId>();
  timeline_.begins = permuted(begins_, place);
  timeline_.ends = permuted(ends_, place);
  timeline_.label = permuted(label_, place);
  timeline_.detail = permuted(detail_, place);
  if (!places_.empty()) timeline_.places = permuted(places_, place);
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
  shift(0, begins_.size(), by);
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
  std::vector<EventId> order = by_thread();
  lay_out(order);
  move_columns(std::move(order));
  finish_arrows();
  return std::move(timeline_);
}

}  // namespace orrery
