#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/trace/json_scan.h"
#include "viz/read/chrome_event.h"
#include "viz/read/mapped_text.h"
#include "viz/read/trace_passes.h"
#include "viz/timeline/timeline_builder.h"

namespace orrery {

// Reads a trace in Chrome's JSON (PyTorch's profiler, `orrery ... --trace`, chrome://tracing) into a builder: complete
// and begin/end events, counters, names, arrows. Broken content never makes it throw: it is repaired or left out, and
// counted in the timeline's remarks. In traces that Orrery wrote it uses the exact times in an event's arguments, and
// lets transfers begin when all their ranks are ready.
class ChromeReader {
 public:
  // origin: the time, in microseconds, from which the times of all files of a timeline are counted; the first event
  // sets it. name: name of the file.
  ChromeReader(TimelineBuilder& builder, std::string_view text, std::string name, std::uint64_t source,
               std::optional<std::int64_t>& origin);
  void read(const LoadProgress& progress);

 private:
  struct Open {  // an event whose begin was read, but not yet its end
    TimelineBuilder::Event event;
  };
  struct Flow {
    std::uint32_t thread = 0;
    Picoseconds time = 0;
  };

  void read_top_level(const LoadProgress& progress);
  void read_events(const LoadProgress& progress);
  void take(const RawEvent& raw);
  void take_complete(const RawEvent& raw);
  void take_begin(const RawEvent& raw);
  void take_end(const RawEvent& raw);
  void take_counter(const RawEvent& raw);
  void take_name(const RawEvent& raw);
  void take_labels(Process& process, const std::string& labels);
  void take_flow(const RawEvent& raw, bool start);
  void read_rank(std::string_view object);
  bool time_of(std::string_view text, Picoseconds& time);
  std::uint32_t process_of(std::string_view pid);
  std::uint32_t thread_of(const RawEvent& raw);
  std::uint32_t annotations_of(const RawEvent& raw);
  std::uint32_t label_of(const RawEvent& raw, Kind& kind);
  void place_rank(const RawEvent& raw, std::uint32_t thread);
  void name_ranks();
  void add_remarks();

  TimelineBuilder& builder_;
  JsonScan scan_;
  std::string_view text_;
  std::string name_;
  std::uint64_t source_;
  std::optional<std::int64_t>& origin_;
  std::int64_t rank_ = -1;
  TracePasses passes_;
  // Maps each pid in the trace to the index of its process. The order of this hash map is not defined, but affects no
  // result.
  std::unordered_map<std::string, std::uint32_t> processes_;
  // Maps the hash of a thread's or label's texts to its index in the builder. Nothing iterates over these hash maps,
  // whose order is not defined.
  std::unordered_map<std::uint64_t, std::uint32_t> threads_, labels_;
  std::map<std::uint32_t, std::uint32_t> annotations_;  // for each stream with annotations, the lane that they are on
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> counters_;
  // for each thread, the events whose begin has been read, but not yet their end
  std::unordered_map<std::uint64_t, std::vector<Open>> open_;
  std::unordered_map<std::uint64_t, Flow> flows_;  // for each arrow's id, the thread and time at which it starts
  // For each thread, whether place_rank() has read the list of ranks of the thread's group from an event.
  std::vector<bool> placed_;
  std::uint64_t last_thread_key_ = 0;
  std::uint32_t last_thread_ = 0;
  struct {
    std::uint64_t skipped = 0, no_time = 0, unfinished = 0, unmatched = 0, other = 0;
    bool truncated = false, unclosed = false;
  } count_;
};

}  // namespace orrery
