#include "viz/timeline/timeline.h"

#include <algorithm>

namespace orrery {

std::string_view name_of(Kind kind) {
  static constexpr std::array<std::string_view, kKinds> names = {
      "forward",       "backward", "recompute", "optimizer", "tensor", "context", "expert",    "data",     "pipeline",
      "communication", "copy",     "wait",      "host",      "other",  "product", "attention", "pointwise"};
  return names[static_cast<std::size_t>(kind)];
}

std::uint32_t track_of(const Timeline& t, EventId e) {
  const auto after = std::upper_bound(t.tracks.begin(), t.tracks.end(), e,
                                      [](EventId event, const Track& track) { return event < track.first; });
  return static_cast<std::uint32_t>(after - t.tracks.begin()) - 1;
}

EventId first_after(const Timeline& t, const Track& track, Picoseconds time) {
  const auto from = t.ends.begin() + track.first;
  return track.first + static_cast<EventId>(std::upper_bound(from, from + track.count, time) - from);
}

EventId event_at(const Timeline& t, std::uint32_t track, Picoseconds time) {
  const Track& row = t.tracks[track];
  const EventId e = first_after(t, row, time);
  return e < row.first + row.count && t.begins[e] <= time ? e : kNoEvent;
}

namespace {

// The low bits of an event's key, under which its source knows the event; the high bits are the source's index.
constexpr std::uint64_t kKeyInSource = 0xffffffffffffffULL;

const DetailSource* source_of(const Timeline& t, EventId e) {
  const std::size_t source = t.detail[e] >> 56;
  return source < t.sources.size() ? t.sources[source].get() : nullptr;
}

}  // namespace

Details details_of(const Timeline& t, EventId e) {
  const DetailSource* const source = source_of(t, e);
  return source == nullptr ? Details{} : source->details(t.detail[e] & kKeyInSource);
}

EventIds ids_of(const Timeline& t, EventId e) {
  const DetailSource* const source = source_of(t, e);
  return source == nullptr ? EventIds{} : source->ids(t.detail[e] & kKeyInSource);
}

std::string shape_of(const Timeline& t, EventId e) {
  const DetailSource* const source = source_of(t, e);
  return source == nullptr ? "" : source->shape(t.detail[e] & kKeyInSource);
}

bool works(const Timeline& t, EventId e) { return t.kind(e) != Kind::wait && t.kind(e) != Kind::host; }

std::string detail_named(const Details& details, std::string_view key) {
  for (const auto& [name, value] : details) {
    if (name == key) return value;
  }
  return "";
}

std::vector<EventId> members_of(const Timeline& t, EventId e) {
  std::vector<EventId> members;
  if (!communicates(t.kind(e))) return members;
  const Details own = details_of(t, e);
  const std::string match = detail_named(own, "match");
  const std::string group = detail_named(own, "Process Group Name");
  for (std::uint32_t track = 0; track < t.tracks.size(); ++track) {
    const EventId other = event_at(t, track, t.ends[e] - 1);
    if (other == e) members.push_back(e);
    if (other == kNoEvent || other == e || (match.empty() && group.empty()) || t.kind(other) != t.kind(e)) continue;
    const Details theirs = details_of(t, other);
    const auto alike = [&](std::string_view key) { return detail_named(theirs, key) == detail_named(own, key); };
    // Events of one collective must also agree in the list of ranks, because several process groups may have the same
    // name.
    const bool same =
        match.empty() ? alike("Process Group Name") && alike("Process Group Ranks") && alike("bytes") : alike("match");
    if (same) members.push_back(other);
  }
  return members;
}

}  // namespace orrery
