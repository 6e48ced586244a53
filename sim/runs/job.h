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
  // Path of the profile from which op times are predicted, to tell a hung rank from a slow one; "": the built-in
  // profile.
  std::string profile;
  std::string device = "cpu";   // "cpu" or "cuda"
  std::int64_t ranks = 0;       // number of ranks; 0: as many as the spec says
  std::int64_t steps = 0;       // number of steps; 0: as many as the spec says
  std::int64_t mark_every = 1;  // GPU ranks time single tasks in every mark_every-th step
  double hang_timeout = 30;     // seconds in an op after which a rank counts as hung
  std::string trace;
  // Whether GPU ranks run one by one, and the step is composed of what they measure (compose.h).
  bool composed = false;
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

// The most ranks that a run may have without the option --ranks on a machine with this number of cores.
std::int64_t most_ranks_unasked(std::int64_t cores);

// Throws Error where the spec has many more ranks than this machine has cores, unless --ranks asks for that number:
// such a spec describes a cluster and is meant for `simulate`.
void check_cores(const Job& job, std::int64_t cores);

// A line such as "8 steps instead of 6: the plan of pipedream-2bw fills its pipeline and empties it over 4"; "" if the
// run has exactly as many steps as were asked for.
std::string rounded_steps(const Job& job);

// The command-line arguments of the ranks of a job. folder: where the ranks write their files.
RankArguments arguments_for(const Job& job, const std::string& folder);

// Starts the ranks of a job by mpirun, watches them, and returns what they measured. Throws Error with status 5
// (kRankLost) if a rank was lost or hung, and Interrupted (processes.h) if the user stopped it; either way no process
// and no file remains. session: if not null, the session's process runs the job, and stays for the next job.
std::vector<RankRun> run_job(const Job& job, const Common& common, RankSession* session = nullptr);

// The end of what a program has printed into the file `log`.
std::string tail_of(const std::string& log);

}  // namespace orrery
