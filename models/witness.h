#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/plan.h"
#include "models/progress_ring.h"
#include "models/units.h"

namespace orrery {

// How one rank looks from outside.
struct Witness {
  std::optional<RankProgress> progress;  // none: it has not begun
  bool gone = false;                     // its process has ended
  bool stopped = false;                  // its process is stopped (SIGSTOP, a debugger)
  bool spared = false;                   // the run goes on without it
  Seconds moved = 0;                     // on the observer's clock: when its last event was seen
};

// The ranks of one run, seen through their progress files. It judges nothing.
class Witnesses {
 public:
  // processes: whether the ranks are processes of this machine, to be looked up by id.
  Witnesses(std::string folder, std::int64_t ranks, bool processes, Seconds now);

  void look(Seconds now);
  const std::vector<Witness>& ranks() const { return ranks_; }
  void spare(std::int64_t rank) { ranks_[static_cast<std::size_t>(rank)].spared = true; }
  bool all_finished() const;   // but those that were spared
  std::uint32_t step() const;  // that the slowest rank is in, 0, 1, ...

 private:
  std::string folder_;
  bool processes_;
  std::vector<Witness> ranks_;
};

// How long a rank may do nothing before it counts as hung.
struct Patience {
  Seconds hang = 30;
  std::vector<Seconds> predicted;  // by op of the plan; empty: not known. Ten times as long is allowed
};

// What ended a run, told in one line:
//   rank 1 was lost (process 4711 has ended) in step 2 of 5, in B micro-batch 1 layer 0, mlp up input gradient;
//   all_reduce "mlp gradient all-reduce" of tensor group 0 1 (F micro-batch 0 layer 1): entered by rank 0; not by rank
//   1
struct Fault {
  std::int64_t rank = 0;
  int exit_code = 0;
  std::string line;
};
inline constexpr int kRankLost = 5;  // exit status: a rank was lost or hung

// A server whose process has ended in mid-run while another of its chain (Plan::copies) goes on: the run can do without
// it, once every rank has begun and so reached all others.
std::optional<std::int64_t> lost_replica(const Plan& unfolded, std::span<const Witness> ranks);

// The first of: a rank that failed and said why; one whose process has ended before it was done; one that stands still.
// Of ranks that wait for each other, the one at the end of the chain is named: who is stopped, or has a task open that
// waits for nobody. Before its first task and after those of the last step (it starts, it
// writes its results) a rank may be silent for ten minutes, unless it is stopped.
std::optional<Fault> find_fault(const Plan& unfolded, std::span<const Witness> ranks, std::int64_t steps,
                                const Patience& patience, Seconds now);

}  // namespace orrery
