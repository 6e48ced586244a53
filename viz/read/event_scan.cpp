#include "viz/read/event_scan.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::size_t kBatch = 256;  // number of events in a batch, which fits in a core's cache
constexpr std::size_t kBatches = 8;  // greatest number of filled batches that wait to be used

struct Batch {
  std::vector<RawEvent> events = std::vector<RawEvent>(kBatch);
  std::size_t count = 0;
};

// A ring of batches of events: one thread reads events into batches, another thread uses the events.
class Ring {
 public:
  // Returns the next batch to be filled with events, for the thread that reads them; nullptr if the thread that uses
  // the events has stopped.
  Batch* to_fill() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || filled_ - emptied_ < kBatches; });
    return stopped_ ? nullptr : &batches_[filled_ % kBatches];
  }
  void was_filled() { advance(filled_); }
  // Returns the next batch of events, for the thread that uses the events; the batch's count is 0 at the end of the
  // events.
  const Batch* to_empty() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return filled_ > emptied_; });
    return &batches_[emptied_ % kBatches];
  }
  void was_emptied() { advance(emptied_); }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }

 private:
  void advance(std::size_t& position) {
    {
      const std::lock_guard lock(mutex_);
      ++position;
    }
    changed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Batch, kBatches> batches_;
  std::size_t filled_ = 0, emptied_ = 0;
  bool stopped_ = false;
};

void fill(EventScan& scan, Ring& ring) {
  while (Batch* const batch = ring.to_fill()) {
    batch->count = 0;
    while (batch->count < kBatch && scan.next(batch->events[batch->count])) ++batch->count;
    const bool last = batch->count == 0;
    ring.was_filled();
    if (last) return;
  }
}

}  // namespace

EventScan::EventScan(JsonScan& scan, std::string_view text) : scan_(scan), text_(text) { scan_.take('['); }

bool EventScan::next(RawEvent& raw) {
  while (!closed_) {
    const char first = scan_.peek();
    if (scan_.done()) return false;
    if (first == ']') {
      closed_ = scan_.take(']');
      break;
    }
    if (first == ',') {
      scan_.take(',');
      continue;
    }
    if (first == '{' && read_event(scan_, text_, raw)) return true;
    if (scan_.done()) return false;
    ++skipped_;
    resynchronize();
  }
  return false;
}

void EventScan::resynchronize() {
  std::size_t at = scan_.position();
  while (true) {
    at = text_.find('{', at + 1);
    if (at == std::string_view::npos) break;
    const std::size_t key = text_.find_first_not_of(" \t\r\n", at + 1);
    if (key == std::string_view::npos || text_[key] == '"') break;
  }
  scan_.move_to(std::min(at, text_.size()));
}

void take_events(EventScan& scan, const TakeEvent& take) {
  RawEvent raw;
  while (scan.next(raw)) take(raw);
}

void take_events_ahead(EventScan& scan, const TakeEvent& take) {
  Ring ring;
  std::thread reader([&] { fill(scan, ring); });
  try {
    while (true) {
      const Batch* const batch = ring.to_empty();
      for (std::size_t i = 0; i < batch->count; ++i) take(batch->events[i]);
      if (batch->count == 0) break;
      ring.was_emptied();
    }
  } catch (...) {
    ring.stop();
    reader.join();
    throw;
  }
  reader.join();
}

}  // namespace orrery
