#include "viz/read/chrome_event.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace orrery {
namespace {

// Compares a key with a literal. The literal's length is a compile-time constant, so that the compiler emits no
// function call.
template <std::size_t size>
bool is(std::string_view key, const char (&name)[size]) {
  return key.size() == size - 1 && std::memcmp(key.data(), name, size - 1) == 0;
}

// Returns the field of RawEvent that stores the value of a key; nullptr for other keys. Compares length and one letter
// first, because this runs about ten times per event.
std::string_view* member_of(RawEvent& raw, std::string_view key) {
  if (key.size() == 2) {
    if (is(key, "ph")) return &raw.phase;
    if (is(key, "ts")) return &raw.ts;
    return is(key, "id") ? &raw.id : nullptr;
  }
  if (key.size() == 3) {
    switch (key[0]) {
      case 'd':
        return is(key, "dur") ? &raw.duration : nullptr;
      case 'p':
        return is(key, "pid") ? &raw.pid : nullptr;
      case 't':
        return is(key, "tid") ? &raw.tid : nullptr;
      case 'c':
        return is(key, "cat") ? &raw.category : nullptr;
      default:
        return nullptr;
    }
  }
  return is(key, "name") ? &raw.name : nullptr;
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
        if (is(key, "op")) args.op = value;
        break;
      case 4:
        if (is(key, "kind")) args.kind = value;
        break;
      case 5:
        if (is(key, "phase")) args.phase = value;
        if (is(key, "layer")) args.layer = value;
        if (is(key, "chunk")) args.chunk = value;
        if (is(key, "ended")) args.ended = value;
        break;
      case 7:
        if (is(key, "matched")) args.matched = value;
        break;
      case 11:
        if (is(key, "micro-batch")) args.micro_batch = value;
        break;
      case 19:
        if (is(key, "Process Group Ranks")) args.ranks = value;
        break;
      case 25:
        if (is(key, "Process Group Description")) args.group = value;
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
    if (is(key, "args") && scan.peek() == '{') {
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

std::int64_t place_in_ranks(std::string_view list, std::int64_t rank) {
  for (std::int64_t place = 0;; ++place) {
    const std::size_t digit = list.find_first_of("0123456789");
    if (digit == std::string_view::npos || list.substr(0, digit).find("...") != std::string_view::npos) return -1;
    list.remove_prefix(digit);
    if (number_in<std::int64_t>(list, -1) == rank) return place;
    list.remove_prefix(std::min(list.size(), list.find_first_not_of("0123456789")));
  }
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
  const std::string own = "rank " + std::to_string(process.rank);
  if (process.name == own + " (" + own + ")") process.name = own;
  static constexpr std::array<std::string_view, 5> kKeys = {"DP", "TP", "PP", "CP", "EP"};
  for (std::size_t k = 0; k < kKeys.size(); ++k) {
    const std::size_t found = name.find(kKeys[k]);
    if (found != std::string::npos)
      process.coordinates[k] = number_in<std::int64_t>(std::string_view(name).substr(found + 2), -1);
  }
  if (name.rfind("stage ", 0) == 0)
    process.coordinates[2] = number_in<std::int64_t>(std::string_view(name).substr(6), -1);
}

}  // namespace orrery
