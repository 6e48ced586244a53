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

// Thrown when the user has stopped the program (SIGINT, SIGTERM, SIGHUP), through everything that cleans up; main ends
// itself by the same signal.
struct Interrupted {
  int signal = 0;
};

// While this object lives, SIGINT, SIGTERM and SIGHUP do not end this process but arrive in ProcessTree::wait(), unless
// they were ignored before; a signal that comes later arrives when the object ends, after everything younger is cleaned
// up.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  const sigset_t& held() const { return held_; }  // held signals, with SIGCHLD
  const sigset_t& before() const { return before_; }

 private:
  sigset_t held_{}, before_{};
};

inline constexpr Seconds kLook = 0.1;  // seconds between two looks at processes
Seconds now();                         // the time on a steady clock

// A program and all processes that it starts in turn, as one thing that is gone when this object is: the destructor
// kills the processes that are left, and waits until there are none. Orphans of the program become children of this
// process, so none can hide; stopped processes die too. Only one tree at a time; for a process without other threads
// that start programs.
class ProcessTree {
 public:
  explicit ProcessTree(const HeldSignals& signals);
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  // Starts arguments[0] with further environment ("KEY=VALUE"), no input, and both outputs in the file `log`. It dies
  // with this process. Throws Error if it cannot be started.
  void start(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
             const std::string& log);
  // Waits until a child ends, a time has passed, or the user stops the program: then throws Interrupted.
  void wait(Seconds at_most);
  // Exit status of the program started, or 128 + signal; nullopt while it runs.
  std::optional<int> status() const { return status_; }
  // A process of the tree, none of a rank, that runs no further for now (SIGSTOP, a debugger); nothing if there is
  // none.
  std::optional<pid_t> stopped() const;
  // The processes that the program has started as ranks, by the launcher's variable in their environment: the outermost
  // process of a rank first.
  std::map<std::int64_t, std::vector<pid_t>> ranks() const;
  // Sends SIGKILL to all, the program first; returns when they are gone.
  void kill_all();

 private:
  void reap();
  std::vector<pid_t> descendants() const;

  pid_t program_ = 0;
  std::optional<int> status_;
  std::vector<pid_t> others_;  // children that this process had before
  int was_subreaper_ = 0;
  const HeldSignals& signals_;
};

}  // namespace orrery
