#include "viz/timeline/launches.h"

#include <algorithm>
#include <tuple>

namespace orrery {
namespace {

using Role = EventIds::Role;

// An id of a host's event, which is unique in one file (source) and rank.
struct KnownId {
  std::uint64_t source = 0, id = 0;
  std::int64_t rank = -1;
  EventId event = kNoEvent;
  auto place() const { return std::tie(source, rank, id); }
  bool operator<(const KnownId& o) const { return place() < o.place() || (place() == o.place() && event < o.event); }
};

EventId event_with(const std::vector<KnownId>& known, const KnownId& wanted) {
  const auto found = std::lower_bound(known.begin(), known.end(), wanted,
                                      [](const KnownId& a, const KnownId& b) { return a.place() < b.place(); });
  return found == known.end() || found->place() != wanted.place() ? kNoEvent : found->event;
}

// Returns the operator that began last of those that ran on a call's thread when the call began, or else such an
// annotation; kNoEvent if there is neither. Rows of one thread follow each other, in the order of their levels, and an
// operator that outlasts an annotation may be on a deeper row than its call.
EventId running_at(const Timeline& t, EventId call) {
  std::uint32_t track = track_of(t, call);
  while (t.tracks[track].level != 0) --track;
  EventId op = kNoEvent, annotation = kNoEvent;
  const auto later = [&](EventId e, EventId than) { return than == kNoEvent || t.begins[e] >= t.begins[than]; };
  do {
    const EventId e = event_at(t, track, t.begins[call]);
    const Role role = e == kNoEvent || e == call ? Role::other : ids_of(t, e).role;
    if (role == Role::op && later(e, op)) op = e;
    if (role == Role::annotation && later(e, annotation)) annotation = e;
  } while (++track < t.tracks.size() && t.tracks[track].level != 0);
  return op != kNoEvent ? op : annotation;
}

class LaunchFinder {
 public:
  explicit LaunchFinder(const Timeline& t) : t_(t) {
    for_each_event([&](EventId e, std::int64_t rank) {
      if (t_.kind(e) != Kind::host) return;
      const EventIds ids = ids_of(t_, e);
      const std::uint64_t source = t_.detail[e] >> 56;
      if (ids.role == Role::launch && ids.correlation != 0) calls_.push_back({source, ids.correlation, rank, e});
      if (ids.role == Role::op && ids.external != 0) ops_.push_back({source, ids.external, rank, e});
    });
    std::sort(calls_.begin(), calls_.end());
    std::sort(ops_.begin(), ops_.end());
  }

  Launches find() const {
    Launches found;
    if (calls_.empty()) return found;
    found.call.assign(t_.events(), kNoEvent);
    found.op.assign(t_.events(), kNoEvent);
    for_each_event([&](EventId e, std::int64_t rank) {
      if (t_.kind(e) == Kind::host) return;
      const EventIds ids = ids_of(t_, e);
      const std::uint64_t source = t_.detail[e] >> 56;
      if (ids.correlation != 0) found.call[e] = event_with(calls_, {source, ids.correlation, rank, kNoEvent});
      if (ids.external != 0 && ids.external != ids.correlation)
        found.op[e] = event_with(ops_, {source, ids.external, rank, kNoEvent});
      if (found.op[e] == kNoEvent && found.call[e] != kNoEvent) found.op[e] = running_at(t_, found.call[e]);
    });
    return found;
  }

 private:
  template <class F>
  void for_each_event(const F& function) const {
    for (const Track& track : t_.tracks) {
      const std::int64_t rank = t_.processes[track.process].rank;
      for (EventId e = track.first; e < track.first + track.count; ++e) function(e, rank);
    }
  }

  const Timeline& t_;
  std::vector<KnownId> calls_, ops_;
};

}  // namespace

Launches launches_of(const Timeline& t) { return LaunchFinder(t).find(); }

KernelLaunch launch_of(const Timeline& t, EventId e, EventId most_searched) {
  const EventIds wanted = ids_of(t, e);
  if (t.kind(e) == Kind::host || wanted.correlation == 0) return {};
  const std::int64_t rank = t.processes[t.tracks[track_of(t, e)].process].rank;
  for (std::uint32_t row = 0; row < t.tracks.size(); ++row) {
    const Track& track = t.tracks[row];
    if (t.processes[track.process].rank != rank) continue;
    EventId end = std::min(first_after(t, track, t.begins[e]) + 1, track.first + track.count);
    for (EventId n = 0; n < most_searched && end > track.first; ++n) {
      const EventId host = --end;
      if (t.kind(host) != Kind::host || t.detail[host] >> 56 != t.detail[e] >> 56) break;
      const EventIds ids = ids_of(t, host);
      if (ids.role == Role::launch && ids.correlation == wanted.correlation) return {host, running_at(t, host)};
    }
  }
  return {};
}

}  // namespace orrery
