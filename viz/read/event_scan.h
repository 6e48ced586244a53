#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "viz/read/chrome_event.h"
#include "viz/read/json_scan.h"

namespace orrery {

// The events of a JSON list one after the other. What is none is left out and counted; it goes on at the next place
// that looks like one.
class EventScan {
 public:
  // scan: stands at the list, and after the last event behind it.
  EventScan(JsonScan& scan, std::string_view text);
  bool next(RawEvent& raw);  // false at the end of the list, or of the text
  std::uint64_t skipped() const { return skipped_; }
  bool closed() const { return closed_; }  // by its bracket

 private:
  void resynchronize();

  JsonScan& scan_;
  std::string_view text_;
  std::uint64_t skipped_ = 0;
  bool closed_ = false;
};

// Takes every event of a scan, in order. The second reads ahead in a thread of its own, so that two cores share the
// work; what `take` throws stops it.
using TakeEvent = std::function<void(const RawEvent&)>;
void take_events(EventScan& scan, const TakeEvent& take);
void take_events_ahead(EventScan& scan, const TakeEvent& take);

}  // namespace orrery
