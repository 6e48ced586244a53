#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// What the rows of the canvas show, from top to bottom. A collapsed process is one row: what it computes; a collapsed
// group shows its first process so.
enum class RowKind : std::uint8_t { group, process, track, counter };
struct Row {
  RowKind kind = RowKind::track;
  int y = 0, height = 0;  // pixels from the first row
  std::uint32_t process = 0, track = kNone;
  std::uint32_t counter = 0;
  std::string text;
  bool open = true;  // of groups and processes
  bool pinned = false;
};

struct LayoutOptions {
  int group_by = -1;               // index of kCoordinates; -1: processes as they come
  std::set<std::uint32_t> closed;  // processes
  std::set<std::int64_t> closed_groups;
  std::set<std::uint32_t> pinned;  // tracks
  // By process: how long it computes. Those that compute longest come first, also within a group: the others wait for
  // them. Empty: processes as they come.
  std::vector<Picoseconds> slowest_first;
  bool host = false;  // lanes on which nothing but the host is
  bool counters = true;
};

// Where everything is, for drawing and for the mouse; it knows heights, never widths.
struct Layout {
  std::vector<Row> rows;
  int height = 0, pinned_height = 0;  // pinned rows come first, and do not scroll
  std::vector<int> row_of_track;      // where a track is shown: its own row, or its closed process's; -1 nowhere
};

inline constexpr int kLaneHeight = 18, kHeaderHeight = 18, kClosedHeight = 20, kCounterHeight = 64, kGroupHeight = 20;

Layout lay_out(const Timeline& timeline, const LayoutOptions& options);
// Everything open where that is few, else processes closed.
LayoutOptions default_options(const Timeline& timeline);
int row_at(const Layout& layout, int y);  // -1 if none
// The lane of a process that computes most, or kNone.
std::uint32_t compute_track(const Timeline& timeline, std::uint32_t process);

// What a process and a lane are in any trace of such a step: "rank 0", or the process's name where its rank is not
// known; "rank 0: compute", and for what is nested in a lane's events "rank 0: compute +1".
std::string name_in_view(const Process& process);
std::string lane_name(const Timeline& timeline, std::uint32_t track);
// The lanes whose name, as "stage 0: compute", a regular expression (pattern.h, upper and lower case alike) is found
// in. Throws Error for what is none.
std::vector<std::uint32_t> lanes_matching(const Timeline& timeline, const std::string& pattern);

}  // namespace orrery
