#include "sim/cli/heartbeat.h"

#include <csignal>
#include <utility>

#include <fmt/format.h>

namespace orrery {

Heartbeat::Heartbeat(Progress progress, std::string command, std::chrono::milliseconds interval)
    : progress_(std::move(progress)), command_(std::move(command)), interval_(interval) {
  sigset_t all, before;  // the new thread inherits the mask `all`, so that signals reach the working thread
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { beat(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  thread_.join();
}

void Heartbeat::say(std::string_view line) {
  const std::lock_guard lock(mutex_);
  said_ = Clock::now();
  progress_(line);
}

void Heartbeat::beat() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    end_.wait_until(lock, said_ + interval_);
    const Clock::time_point now = Clock::now();
    if (ended_ || now < said_ + interval_) continue;
    said_ = now;
    progress_(
        fmt::format("{}: {} s", command_, std::chrono::duration_cast<std::chrono::seconds>(now - begin_).count()));
  }
}

}  // namespace orrery
