#include "exec/program/watch.h"

#include <chrono>
#include <utility>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr auto kLook = std::chrono::milliseconds(500);

Seconds now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Watch::Watch(std::string folder, Plan unfolded, std::int64_t steps, Patience patience,
             std::function<void(const Fault&)> give_up)
    : folder_(std::move(folder)),
      plan_(std::move(unfolded)),
      steps_(steps),
      patience_(std::move(patience)),
      give_up_(std::move(give_up)),
      thread_([this] { run(); }) {}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watch::run() try {
  Witnesses witnesses(folder_, plan_.ranks, false, now());
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLook, [&] { return ending_; })) {
    witnesses.look(now());
    const auto fault = find_fault(plan_, witnesses.ranks(), steps_, patience_, now());
    if (!fault) continue;
    give_up_(*fault);
    return;
  }
} catch (const Error& error) {  // thrown if a progress file is not valid
  give_up_({0, error.exit_code, error.what()});
}

}  // namespace orrery
