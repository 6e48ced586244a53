#pragma once

#include <optional>
#include <string>
#include <vector>

#include "viz/draw/layout.h"
#include "viz/predicted/step.h"

namespace orrery {

// A user's note at a time (from == to) or a range of time, for one process or for all.
struct Note {
  Picoseconds from = 0, to = 0;
  std::string process;  // name, as name_in_view() makes it, of the process that the note is about; "": all processes
  std::string text;
  bool operator==(const Note&) const = default;
};

// A saved state of the viewer: inputs, settings, and notes. Processes and lanes are stored by name, so that the view
// can be applied to other traces. It is stored as JSON ("orrery.view/1") in a file, or inside a trace as the member
// "orreryView".
struct SavedView {
  std::vector<std::string> inputs;  // paths of inputs; in a file they are relative to the file's folder
  SpecOptions options;
  std::string document;            // name of the opened trace or step shown, if there are several; "": the first
  Picoseconds begin = 0, end = 0;  // range of time in view; end = 0: all of the trace
  Picoseconds area_from = 0, area_to = 0;
  Picoseconds marked = -1;
  std::string group_by;                     // name of the coordinate by which processes are grouped; "": none
  std::vector<std::int64_t> closed_groups;  // values of coordinate `group_by` whose groups are closed (one row each)
  // names of the processes that are closed (one row each), and of the lanes pinned at the top of the window
  std::vector<std::string> closed, pinned;
  bool arrows = true, counters = true, host = false, slowest_first = false, compare = false, critical_path = false,
       fabric = false;
  std::string search;
  std::vector<Note> notes;
  bool operator==(const SavedView&) const = default;
};

// take_layout() converts the processes and lanes in layout options to names, which it stores in the view; layout_of()
// converts the names back. Names that do not occur in the timeline are ignored.
void take_layout(SavedView& view, const Timeline& timeline, const LayoutOptions& options);
LayoutOptions layout_of(const SavedView& view, const Timeline& timeline);

std::string to_json(const SavedView& view);
// Parses a saved view. where: the name of the source, for the Error that is thrown if the text is not a view.
SavedView parse_view(std::string_view text, const std::string& where);

// write_view() and read_view() write and read a view's file, in which inputs are relative to the file's folder. Both
// throw Error.
void write_view(const std::string& path, SavedView view);
SavedView read_view(const std::string& path);

// Paths to open, and the view to apply to them: a saved view among the paths is applied to the other paths; a view
// alone is applied to the inputs stored in it. Throws Error for two views, and for a view alone that has no inputs.
struct Opening {
  std::vector<std::string> inputs;
  SpecOptions options;
  std::optional<SavedView> view;
};
Opening opening_of(const std::vector<std::string>& paths, const SpecOptions& options);

}  // namespace orrery
