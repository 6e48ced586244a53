#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "models/trace/json_scan.h"
#include "viz/read/chrome_event.h"

namespace orrery {

// Reads the events of a JSON list one after the other. Elements that are not events are left out and counted; reading
// continues at the next text that looks like an event.
class EventScan {
 public:
  // scan: must be at the beginning of the list of events; when the last event has been read, it is after the list.
  EventScan(JsonScan& scan, std::string_view text);
  bool next(RawEvent& raw);  // reads the next event; returns false at the end of the list or of the text
  std::uint64_t skipped() const { return skipped_; }
  bool closed() const { return closed_; }  // whether the list of events ended with a closing bracket

 private:
  void resynchronize();

  JsonScan& scan_;
  std::string_view text_;
  std::uint64_t skipped_ = 0;
  bool closed_ = false;
};

// take_events() and take_events_ahead() call `take` for every event of a scan, in order. take_events_ahead() reads in a
// separate thread, so that two cores share the work; an exception that `take` throws stops the reading.
using TakeEvent = std::function<void(const RawEvent&)>;
void take_events(EventScan& scan, const TakeEvent& take);
void take_events_ahead(EventScan& scan, const TakeEvent& take);

}  // namespace orrery
