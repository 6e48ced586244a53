#include "sim/summary/event.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "models/base/error.h"
#include "sim/summary/event_parts.h"
#include "sim/summary/stream.h"

namespace orrery {
namespace {

constexpr std::size_t kLongestStep = std::size_t{16} << 20;

// Compares a key with a literal; the length is a compile-time constant, so that the compiler emits no function call.
template <std::size_t size>
bool same(std::string_view key, const char (&name)[size]) {
  return key.size() == size - 1 && std::memcmp(key.data(), name, size - 1) == 0;
}

std::string_view* event_member(TraceEvent& event, std::string_view key) {
  switch (key.size()) {
    case 2:
      return same(key, "ts") ? &event.ts : same(key, "ph") ? &event.phase : nullptr;
    case 3:
      if (same(key, "dur")) return &event.duration;
      if (same(key, "pid")) return &event.pid;
      if (same(key, "tid")) return &event.tid;
      return same(key, "cat") ? &event.category : nullptr;
    case 4:
      return same(key, "name") ? &event.name : nullptr;
    default:
      return nullptr;
  }
}

// The field of a known argument; nullptr for other keys. Compares the length first, because this runs about ten times
// per event.
std::string_view* event_argument(TraceEvent::Arguments& args, std::string_view key) {
  switch (key.size()) {
    case 2:
      return same(key, "op") ? &args.op : nullptr;
    case 4:
      return same(key, "kind") ? &args.kind : same(key, "name") ? &args.name : same(key, "task") ? &args.task : nullptr;
    case 6:
      return same(key, "labels") ? &args.labels : nullptr;
    case 7:
      return same(key, "matched") ? &args.matched : nullptr;
    case 9:
      return same(key, "Device Id") ? &args.device : nullptr;
    case 11:
      if (is_operator_id(key)) return &args.external;
      return same(key, "correlation") ? &args.correlation : same(key, "Device Type") ? &args.device_type : nullptr;
    case 14:
      return same(key, "Total Reserved") ? &args.reserved : nullptr;
    case 15:
      return same(key, "Total Allocated") ? &args.allocated : nullptr;
    default:
      return nullptr;
  }
}

// Reads the arguments of an event. Once the ids of an operator or of a kernel are read, the rest is skipped.
void read_event_arguments(JsonScan& scan, std::string_view text, bool is_operator, TraceEvent::Arguments& args) {
  const std::size_t from = scan.position();
  scan.take('{');
  while (scan.peek() == '"') {
    const std::string_view key = scan.string();
    if (!scan.take(':')) return;
    const std::string_view value = scan.raw();
    if (std::string_view* const field = event_argument(args, key)) *field = value;
    if (!args.external.empty() && (is_operator || !args.correlation.empty())) {
      scan.skip_rest();
      args.object = text.substr(from, scan.position() - from);
      return;
    }
    if (!scan.take(',')) break;
  }
  if (scan.take('}')) args.object = text.substr(from, scan.position() - from);
}

// A parser of one trace file, which reads more of the file wherever its window of the text ends within a value.
class TraceFileReader {
 public:
  TraceFileReader(const std::string& path, const TraceReaders& readers) : stream_(path), readers_(readers) {}

  void read() {
    const char first = next();
    if (first == '\0') refuse("is empty");
    if (first == '[') {
      events();
    } else if (first == '{') {
      members();
    } else {
      refuse("is no JSON: a trace begins with { or [");
    }
    if (next() != '\0') refuse("more text follows the trace's last bracket");
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(stream_.place() + ": " + what + "; give a trace of torch.profiler or of orrery --trace");
  }
  [[noreturn]] void cut_short() const {
    throw Error(stream_.place() + ": the file is cut short here; copy or record it again");
  }

  // Reads more of the file, which makes the window longer; throws Error at the end of the file. A long window grows by
  // several pieces at once, because whole() parses a value from its begin again each time.
  void more() {
    const std::size_t wanted = std::min(2 * stream_.window().size(), stream_.window().size() + kLongestStep);
    if (readers_.piece) readers_.piece();
    if (!stream_.more()) cut_short();
    while (stream_.window().size() < wanted && stream_.more()) {
    }
  }

  // Consumes blanks, and returns the next character; '\0' at the end of the file.
  char next() {
    while (true) {
      JsonScan scan(stream_.window());
      const char c = scan.peek();
      stream_.consume(scan.position());
      if (c != '\0') return c;
      if (!scan.done()) refuse("a zero byte is in the file");
      if (!stream_.more()) return '\0';
    }
  }

  // Calls parse(scan) on the window, and reads more of the file and calls it again until the window holds the complete
  // value that it parses, and at least one byte after that value.
  template <class Parse>
  void whole(const Parse& parse) {
    while (true) {
      JsonScan scan(stream_.window());
      const bool good = parse(scan);
      if (!scan.done()) {
        if (!good) refuse("what stands here is neither a value nor an event of a trace");
        taken_ = scan.position();
        return;
      }
      more();
    }
  }
  void take(char c, const char* what) {
    const char found = next();
    if (found == '\0') cut_short();
    if (found != c) refuse(what);
    stream_.consume(1);
  }

  void members() {
    take('{', "");
    bool events_seen = false;
    char c = next();
    while (c == '"') {
      std::string key;
      whole([&](JsonScan& scan) {
        key = scan.string();
        return scan.complete();
      });
      stream_.consume(taken_);
      take(':', "a key without a value");
      if (key == "traceEvents" && next() == '[') {
        events();
        events_seen = true;
      } else {
        member(key);
      }
      c = next();
      if (c != ',') break;
      stream_.consume(1);
      c = next();
    }
    if (c == '\0') cut_short();
    take('}', "a comma or a closing bracket is missing before this");
    if (!events_seen) refuse("has no list traceEvents");
  }

  void member(const std::string& key) {
    std::string_view value;
    next();
    whole([&](JsonScan& scan) {
      value = scan.raw();
      return scan.complete();
    });
    if (readers_.member) readers_.member(key, value);
    stream_.consume(taken_);
  }

  void events() {
    take('[', "");
    TraceEvent event;
    std::optional<EventParts> parts;
    if (readers_.part) parts.emplace(readers_.part);
    while (true) {
      if (parts) stream_.consume(parts->read(stream_.window()));
      char c = next();
      if (c == ',') {
        stream_.consume(1);
        c = next();
      }
      if (c == ']') break;
      whole([&](JsonScan& scan) { return read_trace_event(scan, stream_.window(), event); });
      pass_on(event);
      stream_.consume(taken_);
    }
    stream_.consume(1);
  }

  void pass_on(const TraceEvent& event) {
    try {
      readers_.event(event);
    } catch (const Error& e) {
      throw Error(stream_.place() + ": " + e.what());
    }
  }

  TraceStream stream_;
  const TraceReaders& readers_;
  std::size_t taken_ = 0;  // bytes of the value that whole() has just parsed
};

}  // namespace

EventSort event_sort_of(std::string_view category) {
  struct Row {
    std::string_view category;
    EventSort sort;
  };
  static constexpr Row rows[] = {{"kernel", EventSort::kernel},
                                 {"cpu_op", EventSort::operation},
                                 {"cuda_runtime", EventSort::launch},
                                 {"gpu_memcpy", EventSort::copy},
                                 {"gpu_memset", EventSort::copy},
                                 {"cuda_driver", EventSort::launch},
                                 {"user_annotation", EventSort::annotation},
                                 {"wait", EventSort::wait},
                                 {"Kernel", EventSort::kernel},
                                 {"Memcpy", EventSort::copy},
                                 {"Memset", EventSort::copy},
                                 {"Operator", EventSort::operation},
                                 {"Runtime", EventSort::launch}};
  for (const Row& row : rows) {
    if (row.category.size() == category.size() && row.category[0] == category[0] && row.category == category)
      return row.sort;
  }
  // calls of runtime and driver libraries of other makers: hip_runtime (AMD), xpu_runtime (Intel), mtia_driver (Meta)
  return category.ends_with("_runtime") || category.ends_with("_driver") ? EventSort::launch : EventSort::none;
}

// This runs twenty million times for a trace of 2 GB, and takes a third less time with all that it calls inlined.
[[gnu::flatten]] bool read_trace_event(JsonScan& scan, std::string_view text, TraceEvent& event) {
  event = {};
  if (!scan.take('{')) return false;
  while (scan.peek() == '"') {
    const std::string_view key = scan.string();
    if (!scan.take(':')) return false;
    if (same(key, "args") && scan.peek() == '{') {
      read_event_arguments(scan, text, event.category == "cpu_op", event.args);
    } else if (std::string_view* const field = event_member(event, key)) {
      *field = scan.raw();
    } else {
      scan.skip();
    }
    if (!scan.take(',')) break;
  }
  return scan.take('}') && scan.complete();
}

void read_trace(const std::string& path, const TraceReaders& readers) { TraceFileReader(path, readers).read(); }

}  // namespace orrery
