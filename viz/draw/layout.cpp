#include "viz/draw/layout.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "viz/timeline/pattern.h"

namespace orrery {
namespace {

// A trace with at most this number of processes is opened with the lanes of all processes shown.
constexpr std::size_t kMostOpen = 4;
// number of events of a lane that are sampled to find out which kinds of work the lane does
constexpr std::uint32_t kSampled = 64;

// Returns the number of compute events in a lane, as a sample of its events says.
std::int64_t computing_events(const Timeline& t, const Track& track) {
  std::int64_t found = 0;
  const EventId step = std::max<EventId>(1, track.count / kSampled);
  for (EventId i = 0; i < track.count; i += step) found += computes(t.kind(track.first + i)) ? 1 : 0;
  return found * step;
}

bool only_host(const Timeline& t, const Track& track) {
  const EventId step = std::max<EventId>(1, track.count / kSampled);
  for (EventId i = 0; i < track.count; i += step) {
    if (t.kind(track.first + i) != Kind::host) return false;
  }
  return true;
}

// Returns whether all events of a timeline are a host's, as in a profile of a program without a device.
bool nothing_but_host(const Timeline& t) {
  return std::all_of(t.tracks.begin(), t.tracks.end(), [&](const Track& track) { return only_host(t, track); });
}

class Rows {
 public:
  Rows(const Timeline& timeline, const LayoutOptions& options, TimelineLayout& layout)
      : t_(timeline), o_(options), l_(layout), host_(options.host || nothing_but_host(timeline)) {
    l_.row_of_track.assign(t_.tracks.size(), -1);
  }

  void add_pinned() {
    for (const std::uint32_t track : o_.pinned) {
      if (track < t_.tracks.size()) add_track(track, true);
    }
    l_.pinned_height = l_.height;
  }

  void add_process(std::uint32_t p) {
    const Process& process = t_.processes[p];
    if (!host_ && host_alone(process)) return;
    const bool open = !o_.closed.contains(p);
    const std::uint32_t compute = open ? kNone : compute_track(t_, p);
    if (!open) {
      for (const std::uint32_t track : process.tracks) show_at(track);
    }
    add({RowKind::process, 0, open ? kHeaderHeight : kClosedHeight, p, compute, 0, process.name, open, false});
    if (!open) return;
    for (const std::uint32_t track : process.tracks) {
      if (host_ || !only_host(t_, t_.tracks[track])) add_track(track, false);
    }
    if (!o_.counters) return;
    for (std::uint32_t c = 0; c < process.counters.size(); ++c)
      add({RowKind::counter, 0, kCounterHeight, p, kNone, c, process.counters[c].name, true, false});
  }

  // Adds the row of a group of processes; the row of a closed group shows the compute lane of its first process.
  void add_group(std::uint32_t first, std::uint32_t number, const std::string& text, bool open) {
    const std::uint32_t compute = open ? kNone : compute_track(t_, first);
    if (compute != kNone) show_at(compute);
    add({RowKind::group, 0, kGroupHeight, first, compute, number, text, open, false});
  }

  void add(Row row) {
    row.y = l_.height;
    l_.height += row.height;
    l_.rows.push_back(std::move(row));
  }

 private:
  void add_track(std::uint32_t id, bool pinned) {
    const Track& track = t_.tracks[id];
    show_at(id);
    const std::string name = track.level == 0 ? track.name : "";
    add({RowKind::track, 0, kLaneHeight, track.process, id, 0,
         pinned ? t_.processes[track.process].name + ": " + track.name : name, true, pinned});
  }
  // Returns whether all that a process has is a host's events: its row would have no lanes while these are not shown.
  bool host_alone(const Process& process) const {
    const auto empty = [&](std::uint32_t track) { return t_.tracks[track].count == 0; };
    return process.counters.empty() && !std::all_of(process.tracks.begin(), process.tracks.end(), empty) &&
           std::all_of(process.tracks.begin(), process.tracks.end(),
                       [&](std::uint32_t track) { return only_host(t_, t_.tracks[track]); });
  }
  void show_at(std::uint32_t track) {
    if (l_.row_of_track[track] < 0) l_.row_of_track[track] = static_cast<int>(l_.rows.size());
  }

  const Timeline& t_;
  const LayoutOptions& o_;
  TimelineLayout& l_;
  bool host_;  // whether lanes of a host's events are shown
};

}  // namespace

bool has_work(const Timeline& timeline, const Track& track) {
  const EventId step = std::max<EventId>(1, track.count / kSampled);
  for (EventId i = 0; i < track.count; i += step) {
    if (works(timeline, track.first + i)) return true;
  }
  return false;
}

std::uint32_t compute_track(const Timeline& timeline, std::uint32_t process) {
  std::uint32_t best = kNone;
  std::int64_t most = 0;
  for (const std::uint32_t id : timeline.processes[process].tracks) {
    const std::int64_t found = computing_events(timeline, timeline.tracks[id]);
    if (found > most) {
      most = found;
      best = id;
    }
  }
  const auto& tracks = timeline.processes[process].tracks;
  return best == kNone && !tracks.empty() ? tracks[0] : best;
}

TimelineLayout lay_out(const Timeline& timeline, const LayoutOptions& options, const std::vector<std::string>& links) {
  TimelineLayout layout;
  Rows rows(timeline, options, layout);
  rows.add_pinned();
  for (std::uint32_t i = 0; i < links.size(); ++i)
    rows.add({RowKind::link, 0, kLinkHeight, kNone, kNone, i, links[i], true, false});
  std::vector<std::uint32_t> order(timeline.processes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::erase_if(order, [&](std::uint32_t p) { return options.hidden.contains(p); });
  const auto group_of = [&](std::uint32_t p) {
    return options.group_by < 0 ? 0 : timeline.processes[p].coordinates[static_cast<std::size_t>(options.group_by)];
  };
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (group_of(a) != group_of(b)) return group_of(a) < group_of(b);
    const std::vector<Picoseconds>& times = options.slowest_first;
    if (times.size() == timeline.processes.size() && times[a] != times[b]) return times[a] > times[b];
    return timeline.processes[a].order < timeline.processes[b].order;
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t group = group_of(order[i]);
    const bool open = options.group_by < 0 || !options.closed_groups.contains(group);
    if (options.group_by >= 0 && (i == 0 || group_of(order[i - 1]) != group)) {
      const auto members = std::count_if(order.begin(), order.end(), [&](auto p) { return group_of(p) == group; });
      const auto name = kCoordinates[static_cast<std::size_t>(options.group_by)];
      const std::string text =
          group < 0 ? fmt::format("no {} rank ({})", name, members) : fmt::format("{} {} ({})", name, group, members);
      rows.add_group(order[i], static_cast<std::uint32_t>(i), text, open);
    }
    if (open) rows.add_process(order[i]);
  }
  return layout;
}

LayoutOptions default_options(const Timeline& timeline) {
  LayoutOptions options;
  if (timeline.processes.size() <= kMostOpen) return options;
  for (std::uint32_t p = 0; p < timeline.processes.size(); ++p) options.closed.insert(p);
  return options;
}

std::string name_in_view(const Process& process) {
  return process.rank < 0 || process.shares_rank ? process.name : fmt::format("rank {}", process.rank);
}

std::string lane_name(const Timeline& timeline, std::uint32_t track) {
  const Track& t = timeline.tracks[track];
  const std::string name = fmt::format("{}: {}", name_in_view(timeline.processes[t.process]), t.name);
  return t.level == 0 ? name : fmt::format("{} +{}", name, t.level);
}

std::vector<std::uint32_t> lanes_matching(const Timeline& timeline, const std::string& pattern) {
  const Pattern wanted(pattern);
  std::vector<std::uint32_t> found;
  for (std::uint32_t track = 0; track < timeline.tracks.size(); ++track) {
    const Track& t = timeline.tracks[track];
    if (wanted.found_in(timeline.processes[t.process].name + ": " + t.name)) found.push_back(track);
  }
  return found;
}

int row_at(const TimelineLayout& layout, int y) {
  const auto after =
      std::upper_bound(layout.rows.begin(), layout.rows.end(), y, [](int at, const Row& row) { return at < row.y; });
  if (after == layout.rows.begin()) return -1;
  const Row& row = *(after - 1);
  return y < row.y + row.height ? static_cast<int>(after - layout.rows.begin()) - 1 : -1;
}

}  // namespace orrery
