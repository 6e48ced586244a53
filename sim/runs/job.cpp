#include "sim/runs/job.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "models/base/names.h"
#include "models/generation/generation_plan.h"
#include "models/load/load_spec.h"
#include "models/plan/hash.h"
#include "models/plan/unfold.h"
#include "models/run/lost_ranks.h"
#include "models/run/rank_end.h"
#include "models/run/witness.h"
#include "sim/cost/costs.h"
#include "sim/predict/predict.h"
#include "sim/runs/measured.h"
#include "sim/runs/processes.h"
#include "sim/runs/rank_starter.h"
#include "sim/runs/room.h"

namespace orrery {
namespace {

// Seconds to wait after a fault before the error is reported: meanwhile the other ranks come to wait for the lost rank,
// so that the message can name them.
constexpr Seconds kSettle = 0.5;
constexpr Seconds kLinger = 5;  // seconds that mpirun may take to end after its ranks, before it is killed
// Seconds for which mpirun may be suspended before the run ends with an error; for a rank the limit is the same.
constexpr Seconds kStopped = 3;
constexpr char kSharedMemory[] = "/dev/shm";
// Most characters of the last output of mpirun and its ranks that are kept.
constexpr std::size_t kMostLog = 4000;

// How long a rank may take for an op before it counts as hung: the longer of the timeout (--hang-timeout) and a
// multiple of the op's predicted time. If there is no profile to predict from, only the timeout counts.
Patience patience_for(const Job& job) {
  Patience patience{.hang = job.options.hang_timeout};
  Profile profile;
  try {
    profile = profile_for(job.spec, job.options.profile);
  } catch (const Error&) {
    if (!job.options.profile.empty()) throw;
    return patience;
  }
  const Costs costs = costs_of(job.plan, job.spec, profile);
  patience.predicted.resize(job.plan.ops.size(), 0);
  for (const auto& row : costs.timing.rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      patience.predicted[i] = std::max(patience.predicted[i], seconds(row[i].duration));
  }
  return patience;
}

// Throws the Error for a launcher (mpirun, or the program that starts GPU ranks) that has ended before any rank
// reported a reason.
[[noreturn]] void ended_early(const Witnesses& witnesses, int status, const std::string& log) {
  std::fputs(tail_of(log).c_str(), stderr);
  std::int64_t first = 0;
  while (witnesses.ranks()[first].progress && witnesses.ranks()[first].progress->state == RankState::finished) ++first;
  throw Error(
      fmt::format("rank {} was lost before its first task: what started it ended with status {}", first, status),
      kRankLost);
}

void tell(const Common& common, const Witnesses& witnesses, std::int64_t steps) {
  common.progress(fmt::format("step {} of {}", std::min<std::int64_t>(witnesses.step() + 1, steps), steps));
}

// The exit status that ProcessTree::status() gives for a program that a signal killed is this number plus the signal's.
constexpr int kKilled = 128;

// A part of an error message that says that the launcher was killed; "" if it was not. Ranks die with their launcher.
std::string launcher_end(const ProcessTree& tree) {
  const std::optional<int> status = tree.status();
  if (!status || *status <= kKilled) return "";
  return fmt::format("; the launcher was killed by {}", signal_name(*status - kKilled));
}

constexpr std::string_view kLauncherNoise = "PMIX ERROR";  // Open MPI prints such a line for every lost rank

// The last line that the launcher, or a rank through it, has printed. Lines of '-' and '=' only, and Open MPI's lines
// about lost ranks, do not count.
std::string last_words(const std::string& log) {
  std::istringstream in(tail_of(log));
  std::string last;
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
    if (line.find_first_not_of("-= ") != std::string::npos && line.find(kLauncherNoise) == std::string::npos)
      last = line;
  }
  return last.empty() ? "" : fmt::format("; the launcher's last line: {}", printable(last));
}

// Makes the Error of a failed run. Waits kSettle seconds first, so that the message can name the ranks that wait for
// the lost rank; then kills all processes.
Error settled(Fault fault, const Job& job, const Patience& patience, Witnesses& witnesses, ProcessTree& tree,
              const std::string& log) {
  for (const Seconds start = now(); now() < start + kSettle;) tree.wait(kLook);
  witnesses.look(now());
  const auto later = find_fault(job.plan, witnesses.ranks(), job.steps, patience, now());
  if (later && later->rank == fault.rank && later->exit_code == fault.exit_code) fault.line = later->line;
  if (fault.exit_code == kRankLost) fault.line += launcher_end(tree) + last_words(log);
  tree.kill_all();
  return Error(fault.line, fault.exit_code);
}

// Handles lost parameter servers for which another server of the same chain holds a replica of the states: the
// remaining servers of the chain are told and take over, and the run goes on.
void spare_replicas(Witnesses& witnesses, const Job& job, const std::string& folder) {
  while (const auto lost = lost_replica(job.plan, witnesses.ranks())) {
    witnesses.spare(*lost);
    note_lost(lost_file(folder), *lost);
    std::fputs(fmt::format("orrery: rank {} was lost (process {} has ended); the rest of its chain goes on\n", *lost,
                           witnesses.ranks()[*lost].progress->pid)
                   .c_str(),
               stderr);
  }
}

// Detects that the launcher, or a process that the launcher has forked and that is not a rank yet, is suspended: the
// ranks may go on, but a suspended launcher would not see their end.
class LauncherWatch {
 public:
  // Throws Error once a process has been suspended for kStopped seconds.
  void look(ProcessTree& tree) {
    const std::optional<pid_t> stopped = tree.stopped();
    if (stopped != process_) since_ = now();
    process_ = stopped;
    if (!stopped || now() - since_ < kStopped) return;
    tree.kill_all();
    throw Error(fmt::format("the launcher of the ranks, or a process that it started, stands still for {:.1f} s "
                            "(process {}, stopped by SIGSTOP or a "
                            "debugger); run again",
                            now() - since_, *stopped),
                kRankLost);
  }

 private:
  std::optional<pid_t> process_;
  Seconds since_ = 0;  // time when the process was first seen suspended
};

// Watches the ranks until all have finished. Throws Error for the fault that ended the run.
void watch(ProcessTree& tree, const Job& job, const std::string& folder, const std::string& log, const Common& common) {
  const Patience patience = patience_for(job);
  const bool by_mpirun = job.options.device != "cuda";
  Witnesses witnesses(folder, job.plan.ranks, true, now(),
                      by_mpirun ? [&] { return tree.ranks(); } : std::function<RankProcesses()>());
  LauncherWatch launcher;
  for (;;) {
    // The launcher's status is read before the ranks' files, so that these files are complete if the run has ended.
    const bool ended = tree.status().has_value();
    witnesses.look(now());
    spare_replicas(witnesses, job, folder);
    if (witnesses.all_finished()) break;
    if (const auto fault = find_fault(job.plan, witnesses.ranks(), job.steps, patience, now())) {
      throw settled(*fault, job, patience, witnesses, tree, log);
    }
    if (ended) ended_early(witnesses, *tree.status(), log);
    launcher.look(tree);
    tell(common, witnesses, job.steps);
    tree.wait(kLook);
  }
}

}  // namespace

Job make_job(const RunOptions& given) {
  Job job{.options = given};
  if (given.composed && given.device != "cuda") throw Error("--composed: ranks take turns on a GPU; add --device cuda");
  if (given.ranks > 0) job.options.overrides.push_back(fmt::format("gpus={}", given.ranks));
  job.spec = load_spec(given.spec, job.options.overrides);
  const Plan folded = make_executed_plan(job.spec);
  // job.steps counts runs of the plan, not training steps: one plan may hold several of these.
  job.steps = ceil_div(given.steps > 0 ? given.steps : job.spec.steps, folded.steps);
  job.hash = plan_hash(folded);
  job.plan = unfold(folded);
  return job;
}

std::int64_t most_ranks_unasked(std::int64_t cores) {
  // a run with at most this many ranks is allowed on any number of cores: on few cores it is slow but correct
  constexpr std::int64_t kAlways = 8;
  return std::max(cores, kAlways);
}

void check_cores(const Job& job, std::int64_t cores) {
  const std::int64_t ranks = job.plan.ranks;
  if (job.options.device == "cuda" || job.options.ranks == ranks || ranks <= most_ranks_unasked(cores)) return;
  throw Error(
      fmt::format("{}: gpus: {} ranks for {} cores of this machine; give --ranks {} to start them all the same, "
                  "or --ranks N for fewer (or orrery simulate, for a prediction)",
                  job.options.spec, ranks, cores, ranks));
}

std::string rounded_steps(const Job& job) {
  const std::int64_t asked = job.options.steps > 0 ? job.options.steps : job.spec.steps;
  if (job.steps * job.plan.steps == asked) return "";
  return fmt::format("{} steps instead of {}: the plan of {} fills its pipeline and empties it over {}",
                     job.steps * job.plan.steps, asked, job.spec.strategy.schedule, job.plan.steps);
}

RankArguments arguments_for(const Job& job, const std::string& folder) {
  return {.spec = job.options.spec,
          .overrides = job.options.overrides,
          .folder = folder,
          .steps = job.steps,
          .mark_every = job.options.mark_every,
          .turns = job.options.composed};
}

std::string tail_of(const std::string& log) {
  std::ifstream in(log);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (text.size() > kMostLog) text = text.substr(text.size() - kMostLog);
  return text;
}

namespace {

std::int64_t snapshot_every(const Job& job) {
  const auto& servers = job.spec.strategy.parameter_server;
  return servers && job.options.device != "cuda" ? servers->snapshot_every : 0;
}

// The last step for which every rank has written a snapshot; 0: there is none.
std::int64_t last_snapshot(const Job& job, const std::string& folder) {
  const std::int64_t every = snapshot_every(job);
  for (std::int64_t step = (job.steps - 1) / every * every; step > 0; step -= every) {
    std::int64_t rank = 0;
    while (rank < job.plan.ranks && std::filesystem::exists(snapshot_file(folder, rank, step))) ++rank;
    if (rank == job.plan.ranks) return step;
  }
  return 0;
}

std::vector<RankRun> run_from(const Job& job, const std::string& snapshots, std::int64_t first, const Common& common) {
  const HeldSignals signals;
  const std::string program = find_rank_program(job.options.device);
  for (const std::string& parent : {std::string(kSharedMemory), temporary_parent(), std::string("/tmp")})
    sweep_temporary_folders(parent);
  std::optional<TemporaryFolder> shared;
  if (::access(kSharedMemory, W_OK) == 0) shared.emplace(kSharedMemory);
  if (job.options.device != "cuda")
    check_room(room_here(shared ? kSharedMemory : "", temporary_parent()), job.plan.ranks, temporary_parent());
  const TemporaryFolder folder(temporary_parent());
  std::optional<TemporaryFolder> sockets;
  if (const std::string parent = socket_parent(folder.path()); parent != folder.path()) sockets.emplace(parent);
  const std::string log = folder.path() + "/log";
  RankArguments arguments = arguments_for(job, folder.path());
  arguments.snapshots = snapshots;
  arguments.first_step = first;
  const std::vector<std::string> words = rank_arguments(program, arguments);
  // orrery-rank-cuda starts the GPU ranks itself, without mpirun.
  const Command launch = job.options.device == "cuda" ? Command{words, {}}
                                                      : mpirun(job.plan.ranks, with_starter(folder.path(), words),
                                                               {.temporary = folder.path(),
                                                                .sockets = sockets ? sockets->path() : folder.path(),
                                                                .shared = shared ? shared->path() : ""});
  {
    ProcessTree tree(signals);
    tree.start(launch.arguments, launch.environment, log);
    watch(tree, job, folder.path(), log, common);
    for (const Seconds start = now(); !tree.status() && now() < start + kLinger;) tree.wait(kLook);
  }
  return read_runs(folder.path(), job.plan, job.hash);
}

std::vector<RankRun> run_in(RankSession& session, const Job& job, const Common& common) {
  const TemporaryFolder folder(temporary_parent());
  std::vector<std::string> words = rank_arguments("", arguments_for(job, folder.path()));
  words.erase(words.begin());
  try {
    watch(session.give(words), job, folder.path(), session.log(), common);
  } catch (...) {
    session.abandon();
    throw;
  }
  return read_runs(folder.path(), job.plan, job.hash);
}

}  // namespace

// Runs the plan. If parameter servers write snapshots, the run starts again after a fault from the last snapshot. If
// there is no later snapshot than the one that the failed run began with, the Error of the fault is thrown.
std::vector<RankRun> run_job(const Job& job, const Common& common, RankSession* session) {
  if (session != nullptr) return run_in(*session, job, common);
  if (snapshot_every(job) == 0) return run_from(job, "", 0, common);
  const TemporaryFolder snapshots(temporary_parent());
  for (std::int64_t first = 0;;) {
    try {
      return run_from(job, snapshots.path(), first, common);
    } catch (const Error& e) {
      const std::int64_t last = e.exit_code == kRankLost ? last_snapshot(job, snapshots.path()) : 0;
      if (last <= first) throw;
      std::fputs(fmt::format("orrery: {}\norrery: goes on after step {}, from the servers' snapshots\n", e.what(), last)
                     .c_str(),
                 stderr);
      first = last;
    }
  }
}

}  // namespace orrery
