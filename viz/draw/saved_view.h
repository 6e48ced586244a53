#pragma once

#include <optional>
#include <string>
#include <vector>

#include "viz/draw/layout.h"
#include "viz/predicted/step.h"

namespace orrery {

// What somebody wrote about a moment (from == to) or a stretch of time, of one process or of all.
struct Note {
  Picoseconds from = 0, to = 0;
  std::string process;  // name_in_view() of one; "": all
  std::string text;
  bool operator==(const Note&) const = default;
};

// What was looked at and how, with what was noted. Processes and lanes are named, not numbered, so that it fits another
// trace too. As JSON ("orrery.view/1") in a file of its own, or inside a trace as its member "orreryView".
struct SavedView {
  std::vector<std::string> inputs;  // paths; in the file from its own folder
  SpecOptions options;
  std::string document;            // of several, the one that is shown, by its name; "": the first
  Picoseconds begin = 0, end = 0;  // in view; end 0: the whole trace
  Picoseconds area_from = 0, area_to = 0;
  Picoseconds marked = -1;
  std::string group_by;                     // a coordinate; "": none
  std::vector<std::int64_t> closed_groups;  // values of that coordinate
  std::vector<std::string> closed, pinned;  // processes, lanes
  bool arrows = true, counters = true, host = false, slowest_first = false, compare = false, critical_path = false;
  std::string search;
  std::vector<Note> notes;
  bool operator==(const SavedView&) const = default;
};

// The processes and lanes of layout options by name, and back. Names that a timeline does not have are passed over.
void take_layout(SavedView& view, const Timeline& timeline, const LayoutOptions& options);
LayoutOptions layout_of(const SavedView& view, const Timeline& timeline);

std::string to_json(const SavedView& view);
// where: named by the Error that is thrown for what is no view.
SavedView parse_view(std::string_view text, const std::string& where);

// The file of a view, its inputs as seen from that file's folder. Throw Error.
void write_view(const std::string& path, SavedView view);
SavedView read_view(const std::string& path);

// What is to be opened: a saved view among the paths is to be applied to the others; alone, to its own inputs, with its
// own options. Throws Error for two views, and for one without inputs that stands alone.
struct Opening {
  std::vector<std::string> inputs;
  SpecOptions options;
  std::optional<SavedView> view;
};
Opening opening_of(const std::vector<std::string>& paths, const SpecOptions& options);

}  // namespace orrery
