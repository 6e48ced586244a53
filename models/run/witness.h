#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "models/run/progress_ring.h"

namespace orrery {

// The state of one rank as another process observes it.
struct Witness {
  // progress that the rank noted; none: the rank has not created its progress file yet
  std::optional<RankProgress> progress;
  std::int64_t pid = 0;      // process id that the launcher reports, until the rank writes its own; 0: not known
  bool gone = false;         // whether the rank's process has ended
  std::optional<int> end{};  // wait status with which the process ended, if it was noted (rank_end.h)
  bool stopped = false;      // whether the rank's process is stopped (SIGSTOP, a debugger)
  Seconds stopped_at = 0;    // time on the observer's clock when the stop was first observed, if the rank is stopped
  bool spared = false;       // whether the run continues without this rank
  Seconds moved = 0;         // time on the observer's clock when the rank's last event was observed
};

// The processes that exist of each rank, by rank number, found before the ranks have written progress files. The
// outermost process of a rank is the first (such as a wrapper script before the rank itself).
using RankProcesses = std::map<std::int64_t, std::vector<pid_t>>;

// The state of all ranks of one run, read from their progress files. find_fault() looks for faults in it.
class Witnesses {
 public:
  // processes: whether the ranks are processes of this machine, so that they can be looked up by process id. find:
  // lists these processes, for launchers that start all of them at the same time.
  Witnesses(std::string folder, std::int64_t ranks, bool processes, Seconds now,
            std::function<RankProcesses()> find = {});

  void look(Seconds now);
  const std::vector<Witness>& ranks() const { return ranks_; }
  void spare(std::int64_t rank) { ranks_[static_cast<std::size_t>(rank)].spared = true; }
  bool all_finished() const;   // whether all ranks have finished, except those without which the run continues (spared)
  std::uint32_t step() const;  // step that the slowest rank is in, counted from 0

 private:
  void look_before_first_word(Seconds now);
  void look_at_process(Witness& witness, Seconds now) const;

  std::string folder_;
  bool processes_;
  std::function<RankProcesses()> find_;
  std::optional<Seconds> first_seen_;  // time when the first process of any rank was seen
  std::vector<Witness> ranks_;
};

// The times without progress after which a rank counts as hung.
struct Patience {
  Seconds hang = 30;
  // predicted time of each op of the plan; an op may take ten times as long; empty: not known
  std::vector<Seconds> predicted;
};

// The fault that ended a run, as a message of one line:
//   rank 1 was lost (process 4711 has ended) in step 2 of 5, in B micro-batch 1 layer 0, mlp up input gradient;
//   all_reduce "mlp gradient all-reduce" of tensor group 0 1 (F micro-batch 0 layer 1): entered by rank 0; not by rank
//   1
struct Fault {
  std::int64_t rank = 0;
  int exit_code = 0;
  std::string line;
};
inline constexpr int kRankLost = 5;  // exit status of a run in which a rank was lost or hung

// Returns a parameter server whose process has ended during the run while another server of its chain (Plan::copies)
// continues, if there is one. The run can continue without it, provided that every rank has begun, because then all
// ranks have connected.
std::optional<std::int64_t> lost_replica(const Plan& unfolded, std::span<const Witness> ranks);

// Returns the first fault, in this order: a rank that failed and noted why; a rank whose process has ended before it
// was done; a rank that makes no progress. Among ranks that wait for each other, the rank at the end of the chain is
// named: a stopped rank, or one that is in a task which waits for no other rank. Before its first task and after the
// tasks of the last step (while it starts, or writes its results) a rank may make no progress for ten minutes, but may
// be stopped only for a few seconds.
std::optional<Fault> find_fault(const Plan& unfolded, std::span<const Witness> ranks, std::int64_t steps,
                                const Patience& patience, Seconds now);

}  // namespace orrery
