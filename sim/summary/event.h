#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "models/trace/json_scan.h"

namespace orrery {

// An event of Chrome's trace format, as views of the file's text: its members, and those of its arguments by which
// PyTorch's profiler and Orrery describe kernels, operators, launches and memory. No value is converted.
struct TraceEvent {
  struct Arguments {
    std::string_view external, correlation;  // arguments of a kernel: ids of its operator and of its launch
    // arguments in Orrery's own traces: op of the plan, kind of op, time when a transfer's last rank came, and the task
    // for which a record of waiting is made
    std::string_view op, kind, matched, task;
    std::string_view name, labels;  // arguments of metadata events: a process's name and labels
    // arguments of events named [memory]: a device, and the bytes that its allocator has allocated and reserved
    std::string_view device, device_type, allocated, reserved;
    std::string_view object;  // complete JSON text of an event's arguments
  };
  std::string_view phase, category, name, ts, duration, pid, tid;
  Arguments args;
};

// How PyTorch's profiler names its events of steps: followed by the step's number.
inline constexpr std::string_view kStepName = "ProfilerStep#";

// Sorts of events, told apart by their category. PyTorch 1.12 and older write "Kernel", "Memcpy", "Memset", "Operator"
// and "Runtime" where newer ones write "kernel", "gpu_memcpy", "gpu_memset", "cpu_op" and "cuda_runtime".
enum class EventSort : std::uint8_t { none, kernel, copy, wait, operation, annotation, launch };
EventSort event_sort_of(std::string_view category);

// Whether an argument of this name is the id of an operator. PyTorch 1.12 and older write it in small letters. No file
// has both; where an event has, the last one counts.
inline bool is_operator_id(std::string_view key) { return key == "External id" || key == "external id"; }

// Reads the event at the scan's position; returns false if the text there is no event, or is cut off.
bool read_trace_event(JsonScan& scan, std::string_view text, TraceEvent& event);

// A reader of one part of a file at a time, while other threads read other parts.
class PartReader {
 public:
  virtual ~PartReader() = default;
  // Reads an event of the part. Throws Error if the file is damaged.
  virtual void event(const TraceEvent& event) = 0;
  // Passes on all that the part holds; called in the order of the file, by the thread that reads the file. Returns
  // false if the part's events must be read one by one.
  virtual bool pass_on() = 0;
  virtual void drop() = 0;  // forgets the part, since no event begins where it seemed to begin
};

struct TraceReaders {
  std::function<void(const TraceEvent&)> event;
  // A function that makes a reader of parts; none: all events are read one by one. Events that are in no part are
  // passed to `event`, in the order of the file too.
  std::function<std::unique_ptr<PartReader>()> part;
  // A function called with the key and the text of each member of the file's outermost object other than the events.
  std::function<void(std::string_view, std::string_view)> member;
  std::function<void()> piece;  // a function called about once a MiB of text, to show progress
};

// Reads a trace file from beginning to end in bounded memory, and calls the readers with all that it holds. Throws
// Error "file:line: what, and what to do" for a file that is empty, no JSON, no trace, cut short or damaged. An Error
// that a reader throws is thrown again with "file:line: " put before its text.
void read_trace(const std::string& path, const TraceReaders& readers);

}  // namespace orrery
