#pragma once

#include <optional>
#include <string>
#include <vector>

#include "viz/draw/layout.h"
#include "viz/predicted/step.h"

namespace orrery {

// A user's note about a moment (from == to) or a stretch of time, of one process or of all.
struct Note {
  Picoseconds from = 0, to = 0;
  std::string process;  // name_in_view() of the process; "": all
  std::string text;
  bool operator==(const Note&) const = default;
};

// A saved state of the viewer: inputs, view settings, and notes. Processes and lanes are named, not numbered, so that
// the view also fits another trace. Stored as JSON ("orrery.view/1") in a separate file, or inside a trace as the
// member "orreryView".
struct SavedView {
  std::vector<std::string> inputs;  // paths; in the file, relative to the file's folder
  SpecOptions options;
  std::string document;            // name of the shown document where there are several; "": the first
  Picoseconds begin = 0, end = 0;  // the time in view; end 0: the whole trace
  Picoseconds area_from = 0, area_to = 0;
  Picoseconds marked = -1;
  std::string group_by;                     // coordinate to group processes by; "": none
  std::vector<std::int64_t> closed_groups;  // values of that coordinate
  std::vector<std::string> closed, pinned;  // closed processes, pinned lanes
  bool arrows = true, counters = true, host = false, slowest_first = false, compare = false, critical_path = false;
  std::string search;
  std::vector<Note> notes;
  bool operator==(const SavedView&) const = default;
};

// Convert the processes and lanes of layout options to names, and back. Names that a timeline does not have are
// ignored.
void take_layout(SavedView& view, const Timeline& timeline, const LayoutOptions& options);
LayoutOptions layout_of(const SavedView& view, const Timeline& timeline);

std::string to_json(const SavedView& view);
// Parses a view. where: the source that the Error names if the text is not a view.
SavedView parse_view(std::string_view text, const std::string& where);

// Write and read the file of a view, with inputs relative to the file's folder. Throw Error.
void write_view(const std::string& path, SavedView view);
SavedView read_view(const std::string& path);

// Paths and settings to open: a saved view among the paths is applied to the other paths; a view alone is applied to
// the inputs and options stored in it. Throws Error for two views, and for a single view without inputs.
struct Opening {
  std::vector<std::string> inputs;
  SpecOptions options;
  std::optional<SavedView> view;
};
Opening opening_of(const std::vector<std::string>& paths, const SpecOptions& options);

}  // namespace orrery
