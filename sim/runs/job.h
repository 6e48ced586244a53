#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "models/trace/trace_file.h"
#include "sim/print/progress.h"
#include "sim/runs/launch.h"
#include "sim/runs/rank_session.h"

namespace orrery {

// The options of `orrery run`, for run_command (commands.h).
struct RunOptions {
  std::string spec;
  std::vector<std::string> overrides;
  // Path of the profile with which op times are predicted, to tell a hung rank from a slow one; "" = the built-in
  // profile.
  std::string profile;
  std::string device = "cpu";   // or "cuda"
  std::int64_t ranks = 0;       // 0: as many as the spec says
  std::int64_t steps = 0;       // 0: as many as the spec says
  std::int64_t mark_every = 1;  // GPU ranks time the tasks of each so many steps
  double hang_timeout = 30;     // seconds
  std::string trace;
  bool composed = false;  // whether GPU ranks run one by one and the step is composed of what they measure (compose.h)
};

// A run that a user has asked for, with its spec and plan.
struct Job {
  RunOptions options;
  Spec spec;
  Plan plan;  // the unfolded plan, with all ranks
  std::string hash;
  std::int64_t steps = 1;  // number of times that the plan runs; one plan may hold several training steps
};

Job make_job(const RunOptions& options);

// The most ranks that a run has on a machine of so many cores without --ranks.
std::int64_t most_ranks_unasked(std::int64_t cores);

// Throws Error where the spec has many more ranks than this machine has cores, unless --ranks asks for so many: the
// spec is that of a cluster, meant for `simulate`.
void check_cores(const Job& job, std::int64_t cores);

// "8 steps instead of 6: the plan of pipedream-2bw fills its pipeline and empties it over 4", or "" where the run has
// exactly as many steps as were asked for.
std::string rounded_steps(const Job& job);

// The arguments of the ranks of a job; the ranks write their files to `folder`.
RankArguments arguments_for(const Job& job, const std::string& folder);

// Starts the ranks of a job by mpirun, watches them, and returns what they measured. Throws Error with status 5
// (kRankLost) when a rank was lost or hung, and Interrupted (processes.h) when the user stopped it; either way no
// process and no file is left. session: where not null, its process runs the job, and is left for the next one.
std::vector<RankRun> run_job(const Job& job, const Common& common, RankSession* session = nullptr);

// The last characters of what a program has printed into a file.
std::string tail_of(const std::string& log);

}  // namespace orrery
