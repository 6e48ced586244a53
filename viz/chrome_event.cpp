#include "viz/chrome_event.h"

#include <array>
#include <string>

namespace orrery {
namespace {

// Where a key of at most four letters is kept. By length and letter first: this runs ten times per event.
std::string_view* member_of(RawEvent& raw, std::string_view key) {
  if (key.size() == 2) {
    if (key == "ph") return &raw.phase;
    if (key == "ts") return &raw.ts;
    return key == "id" ? &raw.id : nullptr;
  }
  if (key.size() == 3) {
    switch (key[0]) {
      case 'd':
        return key == "dur" ? &raw.duration : nullptr;
      case 'p':
        return key == "pid" ? &raw.pid : nullptr;
      case 't':
        return key == "tid" ? &raw.tid : nullptr;
      case 'c':
        return key == "cat" ? &raw.category : nullptr;
      default:
        return nullptr;
    }
  }
  return key == "name" ? &raw.name : nullptr;
}

void read_arguments(JsonScan& scan, std::string_view text, RawEvent::Arguments& args) {
  const std::size_t from = scan.position();
  scan.take('{');
  while (scan.peek() == '"') {
    const std::string_view key = scan.string();
    if (!scan.take(':')) return;
    const std::string_view value = scan.raw();
    switch (key.size()) {
      case 2:
        if (key == "op") args.op = value;
        break;
      case 4:
        if (key == "kind") args.kind = value;
        break;
      case 5:
        if (key == "phase") args.phase = value;
        if (key == "layer") args.layer = value;
        if (key == "chunk") args.chunk = value;
        if (key == "ended") args.ended = value;
        break;
      case 7:
        if (key == "matched") args.matched = value;
        break;
      case 11:
        if (key == "micro-batch") args.micro_batch = value;
        break;
      case 25:
        if (key == "Process Group Description") args.group = value;
        break;
      default:
        break;
    }
    if (!scan.take(',')) break;
  }
  if (scan.take('}')) args.object = text.substr(from, scan.position() - from);
}

}  // namespace

bool read_event(JsonScan& scan, std::string_view text, RawEvent& raw) {
  raw = {};
  raw.position = scan.position();
  scan.take('{');
  while (scan.peek() == '"') {
    const std::string_view key = scan.string();
    if (!scan.take(':')) return false;
    if (key == "args" && scan.peek() == '{') {
      read_arguments(scan, text, raw.args);
    } else if (key.size() > 4) {
      scan.skip();
    } else {
      const std::string_view value = scan.raw();
      if (std::string_view* const member = member_of(raw, key)) *member = value;
    }
    if (!scan.take(',')) break;
  }
  return scan.take('}') && scan.complete();
}

void read_process_name(Process& process) {
  const std::string& name = process.name;
  const std::size_t at = name.find("(rank");
  if (at != std::string::npos) {
    const std::size_t number = name.find_first_of("0123456789", at);
    if (number != std::string::npos) process.rank = number_in<std::int64_t>(std::string_view(name).substr(number), -1);
    const std::size_t times = name.find(" x", at);
    if (times != std::string::npos)
      process.ranks = number_in<std::int64_t>(std::string_view(name).substr(times + 2), 1);
  }
  if (process.ranks > 1 && at != std::string::npos)
    process.name = process.name.substr(0, at) + "(rank " + std::to_string(process.rank) + ", x" +
                   std::to_string(process.ranks) + ")";
  static constexpr std::array<std::string_view, 5> keys = {"DP", "TP", "PP", "CP", "EP"};
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const std::size_t found = name.find(keys[k]);
    if (found != std::string::npos)
      process.coordinates[k] = number_in<std::int64_t>(std::string_view(name).substr(found + 2), -1);
  }
  if (name.rfind("stage ", 0) == 0)
    process.coordinates[2] = number_in<std::int64_t>(std::string_view(name).substr(6), -1);
}

}  // namespace orrery
