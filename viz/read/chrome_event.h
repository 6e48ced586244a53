#pragma once

#include <charconv>
#include <string_view>

#include "viz/read/json_scan.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// An event of Chrome's JSON as it stands in the text: views of its members, those of its arguments that we know, and
// all of them as `object`. Nothing is converted.
struct RawEvent {
  struct Arguments {
    std::string_view op, phase, kind, group, layer, chunk, micro_batch, matched, ended, ranks, object;
  };
  std::string_view name, category, ts, duration, pid, tid, id, phase;
  Arguments args;
  std::size_t position = 0;  // of its bracket in the text
};

// Reads the event that begins where the scan stands; false where it breaks off or is none.
bool read_event(JsonScan& scan, std::string_view text, RawEvent& raw);

// Where a rank stands in a list as profilers write them, "[0, 8, 16]"; -1 where it is not listed, or after what was
// left out ("...").
std::int64_t place_in_ranks(std::string_view list, std::int64_t rank);

// The ranks that our own traces name a process by, "stage 0 (ranks 0, 1, ... x16)", and the coordinates that others do,
// "[TP00-DP01-PP00-EP00]".
void read_process_name(Process& process);

template <class T>
T number_in(std::string_view text, T otherwise) {
  T value = otherwise;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc{} ? value : otherwise;
}

}  // namespace orrery
