#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// The kinds of rows on the canvas, from top to bottom. A collapsed process is one row with its compute lane; a
// collapsed group is one row with the compute lane of its first process.
enum class RowKind : std::uint8_t { group, process, track, counter };
struct Row {
  RowKind kind = RowKind::track;
  int y = 0, height = 0;  // pixels from the first row
  std::uint32_t process = 0, track = kNone;
  std::uint32_t counter = 0;
  std::string text;
  bool open = true;  // whether a group or process is open
  bool pinned = false;
};

struct LayoutOptions {
  int group_by = -1;               // index of kCoordinates; -1: processes in the order of the trace
  std::set<std::uint32_t> closed;  // closed processes
  std::set<std::int64_t> closed_groups;
  std::set<std::uint32_t> pinned;  // pinned tracks
  // Compute time by process. Processes that compute longest come first, also within a group, because the other
  // processes wait for them. Empty: processes in the order of the trace.
  std::vector<Picoseconds> slowest_first;
  bool host = false;  // whether lanes with only host events are shown
  bool counters = true;
};

// The rows and their vertical positions, for drawing and for the mouse; widths are not part of it.
struct Layout {
  std::vector<Row> rows;
  int height = 0, pinned_height = 0;  // pinned rows come first, and do not scroll
  // index of the row that shows a track: the track's own or its closed process's; -1: none
  std::vector<int> row_of_track;
};

inline constexpr int kLaneHeight = 18, kHeaderHeight = 18, kClosedHeight = 20, kCounterHeight = 64, kGroupHeight = 20;

Layout lay_out(const Timeline& timeline, const LayoutOptions& options);
// Opens all processes if there are few, else closes them.
LayoutOptions default_options(const Timeline& timeline);
int row_at(const Layout& layout, int y);  // index of the row at pixel y; -1 if none
// The lane of a process that computes most, or kNone.
std::uint32_t compute_track(const Timeline& timeline, std::uint32_t process);

// Names by which a process or lane is found again in other traces of the same step: "rank 0", or the process's name
// where its rank is not known; "rank 0: compute", and for events nested inside a lane's events "rank 0: compute +1".
std::string name_in_view(const Process& process);
std::string lane_name(const Timeline& timeline, std::uint32_t track);
// The lanes in whose name (as "stage 0: compute") a regular expression is found (pattern.h, ignoring case). Throws
// Error for an invalid expression.
std::vector<std::uint32_t> lanes_matching(const Timeline& timeline, const std::string& pattern);

}  // namespace orrery
