#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/error.h"
#include "sim/summary/event_parts.h"

// Lists of events, read by parts as trace files are.
namespace orrery::parts {

using Seen = std::vector<std::string>;

// Notes names of events. Throws at an event named "damaged", and refuses to pass on one named "alone".
class NotingPart : public PartReader {
 public:
  explicit NotingPart(Seen& all) : all_(all) {}
  void event(const TraceEvent& e) override {
    if (e.name == "damaged") throw Error("is damaged");
    part_.emplace_back(e.name);
  }
  bool pass_on() override {
    for (const std::string& name : part_) {
      if (name == "alone") return false;
    }
    all_.insert(all_.end(), part_.begin(), part_.end());
    part_.clear();
    return true;
  }
  void drop() override { part_.clear(); }

 private:
  Seen& all_;
  Seen part_;
};

// Reads a list of events as a trace file is read: by parts, and one by one where parts go no further. Returns the
// number of bytes that were read by parts. take: a function called with each event that is read alone.
template <class Take>
std::size_t read_list(std::string_view text, EventParts& parts, const Take& take) {
  std::size_t by_parts = 0;
  while (!text.empty()) {
    const std::size_t end = parts.read(text);
    by_parts += end;
    text.remove_prefix(end);
    JsonScan scan(text);
    scan.take(',');
    TraceEvent event;
    if (scan.peek() != '{' || !read_trace_event(scan, text, event)) break;
    take(event);
    text.remove_prefix(scan.position());
  }
  return by_parts;
}

// The names of a list's events. by_parts: receives the number of bytes that were read by parts.
inline Seen read_by_parts(std::string_view text, std::size_t threads, std::size_t least,
                          std::size_t* by_parts = nullptr) {
  Seen seen;
  EventParts parts([&] { return std::make_unique<NotingPart>(seen); }, {threads, least});
  const std::size_t bytes = read_list(text, parts, [&](const TraceEvent& e) { seen.emplace_back(e.name); });
  if (by_parts != nullptr) *by_parts = bytes;
  return seen;
}

}  // namespace orrery::parts
