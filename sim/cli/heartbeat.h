#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "sim/print/progress.h"

namespace orrery {

// Prints a line such as "simulate: 6 s" whenever a command that is still working has printed nothing for an interval.
// The lines come from a thread of their own, until the object is destroyed; in the first interval nothing is printed.
class Heartbeat {
 public:
  Heartbeat(Progress progress, std::string command, std::chrono::milliseconds interval = std::chrono::seconds(3));
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Prints a line for the command; the interval then starts anew.
  void say(std::string_view line);

 private:
  using Clock = std::chrono::steady_clock;
  void beat();

  Progress progress_;
  std::string command_;
  std::chrono::milliseconds interval_;
  Clock::time_point begin_ = Clock::now(), said_ = begin_;
  bool ended_ = false;
  std::mutex mutex_;
  std::condition_variable end_;
  std::thread thread_;
};

}  // namespace orrery
