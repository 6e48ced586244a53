#include "sim/summary/event_parts.h"

#include <algorithm>
#include <exception>
#include <system_error>

namespace orrery {
namespace {

constexpr std::size_t kMostThreads = 4;     // the file is read by one thread, which is busy for a fourth of the time
constexpr std::size_t kPartsPerThread = 2;  // so that a thread that is done early takes another part

// The offset of a bracket that opens behind another's end and a comma, as events follow each other; the text's size if
// there is none at or behind `from`.
std::size_t beginning_of_event(std::string_view text, std::size_t from) {
  constexpr std::string_view blanks = " \n\t\r";
  for (std::size_t at = text.find('{', from); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const std::size_t comma = text.find_last_not_of(blanks, at - 1);
    if (comma == std::string_view::npos || comma == 0 || text[comma] != ',') continue;
    const std::size_t bracket = text.find_last_not_of(blanks, comma - 1);
    if (bracket != std::string_view::npos && text[bracket] == '}') return at;
  }
  return text.size();
}

std::size_t threads_of_machine() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
}

}  // namespace

EventParts::EventParts(const std::function<std::unique_ptr<PartReader>()>& make_reader, Size size) : size_(size) {
  if (size_.threads == 0) size_.threads = threads_of_machine();
  parts_.resize(kPartsPerThread * size_.threads);
  for (Part& part : parts_) part.reader = make_reader();
}

EventParts::~EventParts() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// Cuts the text into parts and returns their number.
std::size_t EventParts::cut() {
  const std::size_t wanted = std::min(parts_.size(), text_.size() / size_.least);
  std::size_t count = 0, begin = 0;
  for (std::size_t i = 1; i <= wanted && begin < text_.size(); ++i) {
    const std::size_t from = std::max(text_.size() / wanted * i, begin + 1);
    const std::size_t end = i == wanted ? text_.size() : beginning_of_event(text_, from);
    Part& part = parts_[count++];
    part.begin = part.read_to = begin;
    part.end = begin = end;
    part.failed = false;
  }
  return count;
}

void EventParts::read_part(Part& part) const {
  JsonScan scan(text_, part.begin);
  TraceEvent event;
  try {
    while (true) {
      scan.take(',');
      if (scan.peek() != '{') return;
      part.read_to = scan.position();
      if (part.read_to >= part.end || !read_trace_event(scan, text_, event)) return;
      part.reader->event(event);
      part.read_to = scan.position();
    }
  } catch (const std::exception&) {  // thrown again on the caller's thread, which reads the part one by one
    part.failed = true;
  }
}

void EventParts::read_parts() {
  for (std::size_t i = next_++; i < used_; i = next_++) read_part(parts_[i]);
}

// The function that each further thread runs.
void EventParts::help() {
  std::uint64_t done = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || (open_ && round_ != done); });
    if (stop_) return;
    done = round_;
    ++helping_;
    lock.unlock();
    read_parts();
    lock.lock();
    if (--helping_ == 0) changed_.notify_all();
  }
}

// Passes on the parts up to the first one that does not end where the next one begins.
std::size_t EventParts::pass_on() {
  std::size_t end = 0;
  bool good = !gave_up_;
  for (std::size_t i = 0; i < used_; ++i) {
    Part& part = parts_[i];
    good = good && part.begin == end;
    if (good && (part.failed || !part.reader->pass_on())) {
      gave_up_ = true;
      good = false;
    }
    if (good)
      end = part.read_to;
    else
      part.reader->drop();
  }
  return end;
}

// Starts the further threads; where the system gives no more, the caller's thread reads what is left to read.
void EventParts::start_threads() {
  try {
    while (threads_.size() + 1 < size_.threads) threads_.emplace_back([this] { help(); });
  } catch (const std::system_error&) {
    size_.threads = threads_.size() + 1;
  }
}

std::size_t EventParts::read(std::string_view text) {
  if (gave_up_ || size_.threads < 2 || text.size() < 2 * size_.least) return 0;
  text_ = text;
  used_ = cut();
  next_ = 0;
  start_threads();
  {
    const std::lock_guard lock(mutex_);
    ++round_;
    open_ = true;
  }
  changed_.notify_all();
  read_parts();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return helping_ == 0; });
    open_ = false;
  }
  return pass_on();
}

}  // namespace orrery
