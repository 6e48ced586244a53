#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

enum class RankState : std::uint32_t { working, finished, failed };

// The event that a lane has entered a task, or left it. Task ids are those of the plan of this rank alone
// (instantiate(plan, rank)).
struct ProgressEvent {
  std::uint32_t step = 0;
  TaskId task = kNone;
  bool open = false;         // whether the task was entered and is not finished
  std::int64_t time_ns = 0;  // time of the event, nanoseconds of CLOCK_MONOTONIC
};

// A rank's progress at one moment. Any process can read it, while the rank runs or after it has ended.
struct RankProgress {
  std::int64_t rank = 0;
  std::int64_t pid = 0;
  std::string plan_hash;
  RankState state = RankState::working;
  int exit_code = 0;  // exit code of a rank that failed
  std::string line;   // error message of a rank that failed
  // number of events so far; if it stays the same, the rank made no progress
  std::uint64_t events = 0;
  // for each lane (LaneKind), its last event; the event's task is kNone if there is none yet
  std::vector<ProgressEvent> lanes;
  std::vector<std::vector<ProgressEvent>> recent;  // for each lane (LaneKind), its last few events in order of time
};

// The file in which a rank notes its progress, so that the notes survive a kill of the rank: a small file mapped into
// memory, with a ring buffer of the last events of every lane. The events of one lane are written by one thread;
// different lanes may be written at the same time. Noting an event takes four plain stores and one reading of the
// clock, without locks, allocations or waiting for a disk.
class ProgressRing {
 public:
  // Creates the file; the file appears under its name only when it is complete. Throws Error if it cannot be created.
  ProgressRing(const std::string& path, std::int64_t rank, std::string_view plan_hash = "");
  ~ProgressRing();
  ProgressRing(const ProgressRing&) = delete;
  ProgressRing& operator=(const ProgressRing&) = delete;

  // Notes the hash of the plan, if the plan is made only after the ring.
  void set_plan(std::string_view plan_hash) noexcept;
  void enter(LaneKind lane, std::uint32_t step, TaskId task) noexcept { note(lane, step, task, true); }
  void leave(LaneKind lane, std::uint32_t step, TaskId task) noexcept { note(lane, step, task, false); }
  // finish and fail note the end of a rank: that all results are written (finish), or its error message, one line for
  // the user (fail).
  void finish() noexcept;
  void fail(int exit_code, std::string_view line) noexcept;

 private:
  void note(LaneKind lane, std::uint32_t step, TaskId task, bool open) noexcept;
  struct File;
  friend std::optional<RankProgress> read_progress(const std::string& path);
  File* file_;
};

inline constexpr std::size_t kRecentEvents = 7;

// Returns the name of a rank's progress file: "folder/rank_3.progress".
std::string progress_file(const std::string& folder, std::int64_t rank);

// Reads a rank's progress; nullopt if the rank has not created the file yet. Throws Error if the file is no progress
// file.
std::optional<RankProgress> read_progress(const std::string& path);

}  // namespace orrery
