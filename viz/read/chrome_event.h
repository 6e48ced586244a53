#pragma once

#include <charconv>
#include <string_view>

#include "models/trace/json_scan.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// An event of a trace in Chrome's JSON format. Its fields are views of the file's text, not yet converted: the members
// of the event, the known members of its "args" object and, as `object`, the complete text of that object.
struct RawEvent {
  struct Arguments {
    std::string_view op, phase, kind, group, layer, chunk, micro_batch, matched, ended, ranks, object;
  };
  std::string_view name, category, ts, duration, pid, tid, id, phase;
  Arguments args;
  std::size_t position = 0;  // offset in the text of the event's opening bracket
};

// Reads the event at the scan's position; returns false if it is cut off or is not an event.
bool read_event(JsonScan& scan, std::string_view text, RawEvent& raw);

// Returns the index of a rank in a list of ranks as profilers write it, "[0, 8, 16]"; -1 if the rank is not listed, or
// is listed after an omission ("...").
std::int64_t place_in_ranks(std::string_view list, std::int64_t rank);

// Reads the ranks from a process name in a trace that Orrery wrote, "stage 0 (ranks 0, 1, ... x16)", or a rank's
// indices in its parallel groups from names that other tools write, "[TP00-DP01-PP00-EP00]".
void read_process_name(Process& process);

template <class T>
T number_in(std::string_view text, T otherwise) {
  T value = otherwise;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc{} ? value : otherwise;
}

}  // namespace orrery
