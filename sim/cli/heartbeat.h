#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "sim/print/progress.h"

namespace orrery {

// Prints that a command is still at work, "simulate: 6 s", whenever the command has printed nothing for an interval:
// from a thread of its own, until the object is destroyed. Nothing is printed in the first interval.
class Heartbeat {
 public:
  Heartbeat(Progress progress, std::string command, std::chrono::milliseconds interval = std::chrono::seconds(3));
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Passes on a line that the command itself prints.
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
