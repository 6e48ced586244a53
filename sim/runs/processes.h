#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/base/units.h"

namespace orrery {

// Thrown when the user has stopped the program (SIGINT, SIGTERM, SIGHUP), so that all destructors clean up; main() then
// ends the process by this signal.
struct Interrupted {
  int signal = 0;
};

// While an object of this class lives, SIGINT, SIGTERM and SIGHUP do not end this process but are reported by
// ProcessTree::wait(), unless they were ignored before. A signal that arrives later takes effect when the object is
// destroyed, after all objects made after it have cleaned up.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  const sigset_t& held() const { return held_; }  // the signals that this object holds back, and SIGCHLD
  const sigset_t& before() const { return before_; }

 private:
  sigset_t held_{}, before_{};
};

inline constexpr Seconds kLook = 0.1;  // seconds between two checks of the processes
Seconds now();                         // time of a steady clock in seconds

// A program and all processes that it starts, directly or not. The destructor kills those that still run or are
// suspended, and waits until all are gone. Orphans among them become children of this process, so that none escapes.
// Only one ProcessTree may exist at a time, and no other thread of this process may start programs.
class ProcessTree {
 public:
  explicit ProcessTree(const HeldSignals& signals);
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  // Starts the program arguments[0] with additional environment variables ("KEY=VALUE"), without standard input, and
  // with standard output and standard error in the file `log`. The program dies with this process. Throws Error if it
  // cannot be started.
  void start(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
             const std::string& log);
  // Waits until a child process ends or `at_most` seconds have passed; throws Interrupted if the user stops the
  // program.
  void wait(Seconds at_most);
  // Exit status of the program, or 128 + the number of the signal that killed it; nullopt while it runs.
  std::optional<int> status() const { return status_; }
  // A process of the tree that is suspended (by SIGSTOP or a debugger) and is not part of a rank; nullopt if there is
  // none.
  std::optional<pid_t> stopped() const;
  // The ids of the processes that are ranks, by rank number, outermost process of a rank first. They are found by the
  // launcher's variable in their environment.
  std::map<std::int64_t, std::vector<pid_t>> ranks() const;
  // Sends SIGKILL to all processes of the tree, the program first; returns when they are gone.
  void kill_all();

 private:
  void reap();
  std::vector<pid_t> descendants() const;

  pid_t program_ = 0;
  std::optional<int> status_;
  std::vector<pid_t> others_;  // children that this process had before the program was started
  int was_subreaper_ = 0;
  const HeldSignals& signals_;
};

}  // namespace orrery
