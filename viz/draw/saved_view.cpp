#include "viz/draw/saved_view.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/json_value.h"
#include "models/base/output_file.h"
#include "viz/read/mapped_text.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kSchema = "orrery.view/1";
// A file counts as a saved view if its first kHeadBytes bytes contain the name of the format.
constexpr std::size_t kHeadBytes = 256;

template <class Visit>
void members(Note& n, Visit visit) {
  visit("from_ps", n.from);
  visit("to_ps", n.to);
  visit("process", n.process);
  visit("text", n.text);
}

template <class Visit>
void members(SavedView& v, Visit visit) {
  visit("inputs", v.inputs);
  visit("set", v.options.overrides);
  visit("profile", v.options.profile);
  visit("unfold", v.options.unfold);
  visit("document", v.document);
  visit("begin_ps", v.begin);
  visit("end_ps", v.end);
  visit("area_from_ps", v.area_from);
  visit("area_to_ps", v.area_to);
  visit("marked_ps", v.marked);
  visit("group_by", v.group_by);
  visit("closed_groups", v.closed_groups);
  visit("closed", v.closed);
  visit("pinned", v.pinned);
  visit("arrows", v.arrows);
  visit("counters", v.counters);
  visit("host", v.host);
  visit("fabric", v.fabric);
  visit("slowest_first", v.slowest_first);
  visit("compare", v.compare);
  visit("critical_path", v.critical_path);
  visit("search", v.search);
  visit("notes", v.notes);
}

template <class T>
void put_members(ordered_json& j, const T& value) {
  T copy = value;
  members(copy, [&](const char* name, auto& member) { j[name] = member; });
}

// Functions that read a JSON value into a variable, one function for each type.
void get(const OrderedJsonValue& j, std::string& to) { to = j.text(); }
void get(const OrderedJsonValue& j, bool& to) { to = j.flag(); }
void get(const OrderedJsonValue& j, std::int64_t& to) { to = j.whole(INT64_MIN, INT64_MAX); }
void get(const OrderedJsonValue& j, Note& to);
template <class T>
void get(const OrderedJsonValue& j, std::vector<T>& to) {
  to.clear();
  for (const OrderedJsonValue& item : j.items()) get(item, to.emplace_back());
}

// Reads the members of a JSON object into `to`; absent members leave their values as they are, and unknown members are
// an error.
template <class T>
void get_members(const OrderedJsonValue& j, T& value, std::vector<std::string_view> known) {
  members(value, [&](const char* name, auto& member) {
    known.emplace_back(name);
    if (const auto found = j.find(name)) get(*found, member);
  });
  j.require_known(known);
}

void get(const OrderedJsonValue& j, Note& to) { get_members(j, to, {}); }

}  // namespace

// to_json() is outside the namespace above, because the JSON library finds it by the types of its arguments.
static void to_json(ordered_json& j, const Note& n) { put_members(j, n); }

void take_layout(SavedView& view, const Timeline& t, const LayoutOptions& o) {
  view.group_by = o.group_by < 0 ? "" : std::string(kCoordinates[static_cast<std::size_t>(o.group_by)]);
  view.closed_groups = {o.closed_groups.begin(), o.closed_groups.end()};
  for (const std::uint32_t p : o.closed) view.closed.push_back(name_in_view(t.processes[p]));
  for (const std::uint32_t track : o.pinned) view.pinned.push_back(lane_name(t, track));
  view.host = o.host;
  view.fabric = o.fabric;
  view.counters = o.counters;
}

LayoutOptions layout_of(const SavedView& view, const Timeline& t) {
  const auto named = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  LayoutOptions o;
  const auto at = std::find(kCoordinates.begin(), kCoordinates.end(), view.group_by);
  o.group_by = at == kCoordinates.end() ? -1 : static_cast<int>(at - kCoordinates.begin());
  o.closed_groups = {view.closed_groups.begin(), view.closed_groups.end()};
  for (std::uint32_t p = 0; p < t.processes.size(); ++p) {
    if (named(view.closed, name_in_view(t.processes[p]))) o.closed.insert(p);
  }
  for (std::uint32_t track = 0; track < t.tracks.size(); ++track) {
    if (named(view.pinned, lane_name(t, track))) o.pinned.insert(track);
  }
  o.host = view.host;
  o.fabric = view.fabric;
  o.counters = view.counters;
  return o;
}

std::string to_json(const SavedView& view) {
  ordered_json j = {{"schema", kSchema}};
  put_members(j, view);
  return j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

SavedView parse_view(std::string_view text, const std::string& where) {
  SavedView view;
  if (text.size() > kMostTables) throw Error(fmt::format("{}: is larger than {} MiB", where, kMostTables >> 20));
  const std::string advice = fmt::format("give an {}", kSchema);
  const ordered_json file = parse_ordered_json(where, text, advice);
  const OrderedJsonValue root(file, where);
  if (!root.is_object() || root.text_or("schema", "") != kSchema) root.fail(fmt::format("is no {}", kSchema));
  get_members(root, view, {"schema"});
  const auto past = [](Picoseconds t) { return std::clamp<Picoseconds>(t, 0, INT64_MAX / 4); };
  view.begin = past(view.begin);
  view.end = past(view.end);
  view.area_from = past(view.area_from);
  view.area_to = std::max(view.area_from, past(view.area_to));
  if (view.marked >= 0) view.marked = past(view.marked);
  for (Note& n : view.notes) {
    n.from = past(n.from);
    n.to = std::max(n.from, past(n.to));
  }
  return view;
}

void write_view(const std::string& path, SavedView view) {
  std::error_code unknown;
  const fs::path folder = fs::absolute(path, unknown).parent_path();
  const auto seen_from_there = [&](std::string& input) {
    if (!input.empty()) input = fs::proximate(fs::absolute(input, unknown), folder, unknown).string();
  };
  for (std::string& input : view.inputs) seen_from_there(input);
  seen_from_there(view.options.profile);
  OutputFile file(path);
  file.write(to_json(view));
  file.commit();
}

SavedView read_view(const std::string& path) {
  SavedView view = parse_view(MappedText(path).text(), path);
  const fs::path folder = fs::path(path).parent_path();
  for (std::string& input : view.inputs) input = (folder / input).lexically_normal().string();
  if (!view.options.profile.empty()) view.options.profile = (folder / view.options.profile).lexically_normal().string();
  return view;
}

Opening opening_of(const std::vector<std::string>& paths, const SpecOptions& options) {
  Opening opening{{}, options, std::nullopt};
  for (const std::string& path : paths) {
    std::error_code unknown;
    const bool view = fs::is_regular_file(path, unknown) &&
                      beginning_of(path, kHeadBytes).find(fmt::format("\"{}\"", kSchema)) != std::string::npos;
    if (!view) {
      opening.inputs.push_back(path);
    } else if (opening.view) {
      throw Error(path + ": is a second saved view; give one");
    } else {
      opening.view = read_view(path);
    }
  }
  if (!opening.view || !opening.inputs.empty()) return opening;
  if (opening.view->inputs.empty()) throw Error(paths[0] + ": names no inputs; give it the traces to be applied to");
  opening.inputs = opening.view->inputs;
  opening.options = opening.view->options;
  return opening;
}

}  // namespace orrery
