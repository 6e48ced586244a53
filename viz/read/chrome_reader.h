#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "viz/read/chrome_event.h"
#include "viz/read/json_scan.h"
#include "viz/read/mapped_text.h"
#include "viz/timeline/timeline_builder.h"

namespace orrery {

// Reads a trace in Chrome's JSON (PyTorch's profiler, `orrery ... --trace`, chrome://tracing) into a builder: complete
// and begin/end events, counters, names, arrows. Broken content is repaired where it can be, left out where not, and
// counted in the timeline's remarks: no content makes it throw. From our own traces it takes the exact times in an
// event's arguments, and lets transfers begin when they are matched.
class ChromeReader {
 public:
  // origin: the microsecond from which all files of a timeline count; set by the first event. name: name of the file.
  ChromeReader(TimelineBuilder& builder, std::string_view text, std::string name, std::uint64_t source,
               std::optional<std::int64_t>& origin);
  void read(const LoadProgress& progress);

 private:
  struct Open {  // a begun event that waits for its end
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
  void take_flow(const RawEvent& raw, bool start);
  void read_rank(std::string_view object);
  bool time_of(std::string_view text, Picoseconds& time);
  std::uint32_t process_of(std::string_view pid);
  std::uint32_t thread_of(const RawEvent& raw);
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
  std::unordered_map<std::string, std::uint32_t> processes_;           // by pid; iteration order affects no result
  std::unordered_map<std::uint64_t, std::uint32_t> threads_, labels_;  // by hash; only looked up, never iterated
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> counters_;
  std::unordered_map<std::uint64_t, std::vector<Open>> open_;  // begun events by thread
  std::unordered_map<std::uint64_t, Flow> flows_;              // starts of arrows, by id
  std::vector<bool> placed_;  // by thread: whether place_rank() has read the group of it
  std::uint64_t last_thread_key_ = 0;
  std::uint32_t last_thread_ = 0;
  struct {
    std::uint64_t skipped = 0, no_time = 0, unfinished = 0, unmatched = 0, other = 0;
    bool truncated = false, unclosed = false;
  } count_;
};

// Details of events, read from a trace file at the kept offset of the event's text. A file that is not open is opened
// when details are first asked for.
class FileDetails : public DetailSource {
 public:
  explicit FileDetails(std::shared_ptr<const MappedText> file) : file_(std::move(file)) {}
  explicit FileDetails(std::string path) : path_(std::move(path)) {}
  Details details(std::uint64_t key) const override;

 private:
  std::string path_;
  mutable std::shared_ptr<const MappedText> file_;
  mutable std::string error_;
};

}  // namespace orrery
