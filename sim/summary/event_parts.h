#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "sim/summary/event.h"

namespace orrery {

// Reads events on several threads: cuts a text into parts where events seem to begin, reads the parts at the same time,
// and passes on what they hold in the order of the text. A cut may be wrong, since a string or an argument may look
// like the beginning of an event; then the part before it does not end there, and the parts behind it are read again.
class EventParts {
 public:
  struct Size {
    std::size_t threads = 0;                    // 0: as many as the machine has, but four at most
    std::size_t least = std::size_t{64} << 10;  // bytes of the shortest part that is worth a thread
  };
  explicit EventParts(const std::function<std::unique_ptr<PartReader>()>& make_reader) : EventParts(make_reader, {}) {}
  EventParts(const std::function<std::unique_ptr<PartReader>()>& make_reader, Size size);
  EventParts(const EventParts&) = delete;
  EventParts& operator=(const EventParts&) = delete;
  ~EventParts();

  // Reads the events that begin the text, and returns the length of the text whose events are passed on. What follows
  // is an event that is cut off, the end of the list, or something that must be read one by one, as a text is that is
  // too short for two parts.
  std::size_t read(std::string_view text);

 private:
  struct Part {
    std::unique_ptr<PartReader> reader;
    std::size_t begin = 0, end = 0;  // offsets in the text; the part's last event may reach beyond the end
    std::size_t read_to = 0;         // offset of the first byte that is not read
    bool failed = false;             // whether the reader threw an exception
  };

  std::size_t cut();
  void read_part(Part& part) const;
  void read_parts();
  void help();
  void start_threads();
  std::size_t pass_on();

  Size size_;
  std::string_view text_;
  std::vector<Part> parts_;
  std::size_t used_ = 0;              // number of parts of the present text
  std::atomic<std::size_t> next_{0};  // the first part that no thread has taken
  bool gave_up_ = false;  // whether a part could not be passed on, so that the file is read by one thread from there
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t round_ = 0;  // number of texts so far
  std::size_t helping_ = 0;  // number of further threads that read parts of the present text
  bool open_ = false;        // whether a thread may take parts
  bool stop_ = false;
};

}  // namespace orrery
