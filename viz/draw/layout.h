#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// The kinds of rows of the drawn timeline, from top to bottom; link: how full a link of the cluster is. A closed
// (collapsed) process (rank) is one row, which shows its compute lane; a closed group of processes is one row, which
// shows the compute lane of its first process.
enum class RowKind : std::uint8_t { link, group, process, track, counter };
struct Row {
  RowKind kind = RowKind::track;
  int y = 0, height = 0;  // position (of the top, from the top of the first row) and height in pixels
  std::uint32_t process = 0, track = kNone;  // process: kNone for a link
  std::uint32_t counter = 0;                 // index of the counter in its process, or of the link
  std::string text;
  bool open = true;  // whether a group or process is open, that is, shows the rows below it
  bool pinned = false;
};

struct LayoutOptions {
  // Form of parallelism by whose coordinate processes are grouped, an index in kCoordinates; -1: they are not grouped.
  int group_by = -1;
  std::set<std::uint32_t> closed;  // indices of the processes that are closed: shown as one row
  std::set<std::int64_t> closed_groups;
  std::set<std::uint32_t> pinned;  // indices of the tracks that are pinned at the top
  // Compute time by process. The processes that compute longest are shown first, also within a group, because the other
  // processes wait for them. Empty: processes are shown in the order of the trace.
  std::vector<Picoseconds> slowest_first;
  // indices of processes that are not shown, because no event of theirs passes a filter
  std::set<std::uint32_t> hidden;
  bool host = false;  // whether to show lanes that have only host events
  bool counters = true;
  bool fabric = false;  // whether the caller gives lay_out() the links of the cluster
};

// The rows and their vertical positions, for drawing and for finding the row under the mouse; independent of the width.
struct TimelineLayout {
  std::vector<Row> rows;
  // heights in pixels of all rows and of the pinned rows, which are at the top and do not scroll
  int height = 0, pinned_height = 0;
  // For each track (sequence of events), the index of the row that shows the track, either a row of its own or the row
  // of its closed process; -1: none.
  std::vector<int> row_of_track;
};

inline constexpr int kLaneHeight = 18, kHeaderHeight = 18, kClosedHeight = 20, kCounterHeight = 64, kGroupHeight = 20,
                     kLinkHeight = 50;

// links: names of the links of the cluster whose rows stand above those of the processes.
TimelineLayout lay_out(const Timeline& timeline, const LayoutOptions& options,
                       const std::vector<std::string>& links = {});
// Returns the layout options with which a trace is opened: if there are few processes, the lanes of all are shown; else
// every process is one row.
LayoutOptions default_options(const Timeline& timeline);
int row_at(const TimelineLayout& layout, int y);  // index of the row at pixel y; -1 if none
// Returns whether a lane shows work (works()), as a sample of its events says.
bool has_work(const Timeline& timeline, const Track& track);
// Returns the track of a process that has the most compute events, counted in a sample of the track's events; the first
// track if none has any; kNone if the process has no tracks.
std::uint32_t compute_track(const Timeline& timeline, std::uint32_t process);

// Names by which a process or lane is found again in other traces of the same step: "rank 0", or the process's name if
// the rank is not known; "rank 0: compute", and "rank 0: compute +1" for events nested inside that lane's events.
std::string name_in_view(const Process& process);
std::string lane_name(const Timeline& timeline, std::uint32_t track);
// Finds the lanes whose name (such as "rank 0: compute") matches a regular expression anywhere (pattern.h, ignoring
// case). Throws Error for an invalid expression.
std::vector<std::uint32_t> lanes_matching(const Timeline& timeline, const std::string& pattern);

}  // namespace orrery
