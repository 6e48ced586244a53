#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

enum class RankState : std::uint32_t { working, finished, failed };

// A task that a lane has entered, or left. Task ids are those of instantiate(plan, rank).
struct ProgressEvent {
  std::uint32_t step = 0;
  TaskId task = kNone;
  bool open = false;         // the task was entered and not left
  std::int64_t time_ns = 0;  // nanoseconds of CLOCK_MONOTONIC
};

// A rank's progress at one moment. Any process can read it, while the rank runs or after its end.
struct RankProgress {
  std::int64_t rank = 0;
  std::int64_t pid = 0;
  std::string plan_hash;
  RankState state = RankState::working;
  int exit_code = 0;  // exit code of a rank that failed
  std::string line;   // message of a rank that failed
  // Events so far; if the number stays the same, the rank made no progress
  std::uint64_t events = 0;
  std::vector<ProgressEvent> lanes;                // last event, by LaneKind; task kNone: none yet
  std::vector<std::vector<ProgressEvent>> recent;  // last few events, by LaneKind, the latest last
};

// A rank's progress in a form that survives a kill: a small file mapped into memory, with a ring of the last events of
// every lane. A lane's events come from one thread; different lanes may be written at once. Noting an event is four
// plain stores and a reading of the clock; nothing is locked, nothing is allocated, nothing waits for a disk.
class ProgressRing {
 public:
  // The file appears under its name when it is complete. Throws Error if it cannot be created.
  ProgressRing(const std::string& path, std::int64_t rank, std::string_view plan_hash = "");
  ~ProgressRing();
  ProgressRing(const ProgressRing&) = delete;
  ProgressRing& operator=(const ProgressRing&) = delete;

  // Notes the hash of a plan that is made after the ring.
  void set_plan(std::string_view plan_hash) noexcept;
  void enter(LaneKind lane, std::uint32_t step, TaskId task) noexcept { note(lane, step, task, true); }
  void leave(LaneKind lane, std::uint32_t step, TaskId task) noexcept { note(lane, step, task, false); }
  // The rank's last note: all results are written (finish); or what went wrong, as one line for the user (fail).
  void finish() noexcept;
  void fail(int exit_code, std::string_view line) noexcept;

 private:
  void note(LaneKind lane, std::uint32_t step, TaskId task, bool open) noexcept;
  struct File;
  friend std::optional<RankProgress> read_progress(const std::string& path);
  File* file_;
};

inline constexpr std::size_t kRecentEvents = 7;

std::string progress_file(const std::string& folder, std::int64_t rank);  // "folder/rank_3.progress"

// Reads a rank's progress; nullopt: the rank has not made the file yet. Throws Error if the file is no progress file.
std::optional<RankProgress> read_progress(const std::string& path);

}  // namespace orrery
