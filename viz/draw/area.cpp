#include "viz/draw/area.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

namespace orrery {
namespace {

constexpr std::size_t kBoundariesPerPoint = 1024;

// Goes through the times at which an event of a process begins or ends. The time between one of them and the next is
// added to the sum of each kind of work that runs in between.
class EventSweep {
 public:
  EventSweep(const Timeline& t, const MappedColumn<std::uint32_t>& tracks, Picoseconds from) : t_(t), now_(from) {
    for (const std::uint32_t id : tracks) {
      const Track& track = t.tracks[id];
      const EventId e = first_after(t, track, from);
      heads_.push_back({e, track.first + track.count, from, Kind::other, false});
      settle(heads_.back());
    }
  }

  Picoseconds now() const { return now_; }

  // Advances to the next time at which an event begins or ends, but not beyond `limit`, and adds the time passed to
  // `sums`; returns false at the limit.
  bool step(AreaSums& sums, Picoseconds limit) {
    Picoseconds next = limit;
    for (const Head& h : heads_) next = std::min(next, h.next);
    add(sums, next - now_);
    now_ = next;
    if (next >= limit) return false;
    for (Head& h : heads_) {
      if (h.next == next) settle(h);
    }
    return true;
  }

 private:
  static constexpr Picoseconds kNever = INT64_MAX;
  struct Head {
    EventId event, last;
    Picoseconds next;  // time of the next begin or end of an event
    Kind kind;
    bool active;
  };

  // Finds the event that runs in a lane at time now_, and the next time at which an event of the lane begins or ends.
  void settle(Head& h) {
    while (h.event < h.last && t_.ends[h.event] <= now_) ++h.event;
    h.active = h.event < h.last && t_.begins[h.event] <= now_;
    h.next = h.event >= h.last ? kNever : h.active ? t_.ends[h.event] : t_.begins[h.event];
    if (h.active) h.kind = t_.kind(h.event);
  }

  void add(AreaSums& sums, Picoseconds length) const {
    if (length <= 0) return;
    std::uint32_t kinds = 0;
    for (const Head& h : heads_) {
      if (h.active) kinds |= 1U << static_cast<unsigned>(h.kind);
    }
    bool compute = false, transfer = false;
    for (std::uint32_t rest = kinds; rest != 0; rest &= rest - 1) {
      const auto k = static_cast<std::size_t>(__builtin_ctz(rest));
      sums.busy[k] += length;
      compute |= computes(static_cast<Kind>(k));
      transfer |= communicates(static_cast<Kind>(k)) || static_cast<Kind>(k) == Kind::copy;
    }
    if (compute) {
      sums.compute += length;
      return;
    }
    for (std::uint32_t rest = kinds; rest != 0; rest &= rest - 1)
      sums.exposed[static_cast<std::size_t>(__builtin_ctz(rest))] += length;
    if (!transfer) sums.idle += length;
  }

  const Timeline& t_;
  std::vector<Head> heads_;
  Picoseconds now_;
};

bool on_device(const Timeline& t, const Track& track) {
  for (EventId e = track.first; e < track.first + track.count; ++e) {
    if (t.kind(e) != Kind::host) return true;
  }
  return false;
}

AreaSums difference(AreaSums a, const AreaSums& b) {
  for (int k = 0; k < kKinds; ++k) {
    a.busy[k] -= b.busy[k];
    a.exposed[k] -= b.exposed[k];
  }
  a.compute -= b.compute;
  a.idle -= b.idle;
  return a;
}

}  // namespace

AreaIndex::AreaIndex(const Timeline& timeline, unsigned threads) : processes_(timeline.processes.size()) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t p = next++; p < processes_.size(); p = next++) {
      std::vector<std::uint32_t> tracks;
      for (const std::uint32_t track : timeline.processes[p].tracks) {
        if (on_device(timeline, timeline.tracks[track])) tracks.push_back(track);
      }
      processes_[p].tracks = std::move(tracks);
      EventSweep walk(timeline, processes_[p].tracks, 0);
      AreaSums sums;
      std::vector<Point> points = {{0, sums}};
      for (std::size_t i = 1; walk.step(sums, timeline.end); ++i) {
        if (i % kBoundariesPerPoint == 0) points.push_back({walk.now(), sums});
      }
      processes_[p].points = std::move(points);
    }
  };
  std::vector<std::thread> others;
  if (timeline.events() >= 100'000) {
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  }
  work();
  for (std::thread& t : others) t.join();
}

AreaSums AreaIndex::up_to(const Timeline& timeline, const OfProcess& process, Picoseconds time) {
  const auto after = std::upper_bound(process.points.begin(), process.points.end(), time,
                                      [](Picoseconds t, const Point& p) { return t < p.time; });
  const Point& before = *(after - 1);
  AreaSums sums = before.sums;
  EventSweep walk(timeline, process.tracks, before.time);
  while (walk.step(sums, time)) {
  }
  return sums;
}

AreaSums AreaIndex::sums(const Timeline& timeline, std::uint32_t process, Picoseconds from, Picoseconds to) const {
  from = std::clamp<Picoseconds>(from, 0, timeline.end);
  to = std::clamp<Picoseconds>(to, from, timeline.end);
  return difference(up_to(timeline, processes_[process], to), up_to(timeline, processes_[process], from));
}

std::size_t AreaIndex::bytes() const {
  std::size_t sum = 0;
  for (const OfProcess& p : processes_) sum += p.points.size() * sizeof(Point);
  return sum;
}

std::vector<Picoseconds> compute_times(const Timeline& timeline, const AreaIndex& index) {
  std::vector<Picoseconds> times;
  for (std::uint32_t p = 0; p < timeline.processes.size(); ++p)
    times.push_back(index.sums(timeline, p, 0, timeline.end).compute);
  return times;
}

std::ptrdiff_t sample_at(const Counter& counter, Picoseconds time) {
  return std::upper_bound(counter.times.begin(), counter.times.end(), time) - counter.times.begin() - 1;
}

MemoryPeak memory_peak(const Counter& counter, Picoseconds from, Picoseconds to) {
  MemoryPeak peak{0, from};
  const std::size_t width = counter.series.size();
  for (auto i = std::max<std::ptrdiff_t>(0, sample_at(counter, from));
       i < static_cast<std::ptrdiff_t>(counter.times.size()) && counter.times[i] <= to; ++i) {
    double sum = 0;
    for (std::size_t s = 0; s < width; ++s) sum += counter.values[static_cast<std::size_t>(i) * width + s];
    if (sum > peak.bytes) peak = {sum, std::max(from, counter.times[i])};
  }
  return peak;
}

Picoseconds first_above(const Counter& counter, double capacity) {
  const std::size_t width = counter.series.size();
  for (std::size_t i = 0; i < counter.times.size(); ++i) {
    const auto from = counter.values.begin() + static_cast<std::ptrdiff_t>(i * width);
    if (std::accumulate(from, from + static_cast<std::ptrdiff_t>(width), 0.0) > capacity) return counter.times[i];
  }
  return -1;
}

const Counter* memory_of(const Process& process) {
  for (const Counter& c : process.counters) {
    if (c.name == "memory") return &c;
  }
  return nullptr;
}

std::vector<AreaRow> area_statistics(const Timeline& timeline, const AreaIndex& index, Picoseconds from,
                                     Picoseconds to) {
  std::vector<AreaRow> rows;
  for (std::uint32_t p = 0; p < timeline.processes.size(); ++p) {
    AreaRow row{p, index.sums(timeline, p, from, to), {}};
    if (const Counter* memory = memory_of(timeline.processes[p])) row.memory = memory_peak(*memory, from, to);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace orrery
