#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "models/make_plan.h"
#include "models/plan_hash.h"
#include "models/unfold.h"
#include "models/witness.h"
#include "sim/chrome_trace.h"
#include "sim/commands.h"
#include "sim/launch.h"
#include "sim/live_memory.h"
#include "sim/measured.h"
#include "sim/predict.h"
#include "sim/processes.h"
#include "sim/report_text.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kLook = 0.1;  // between two looks at the ranks
constexpr Seconds kLinger = 5;  // that mpirun may take to end after its ranks, before it is killed
constexpr char kShared[] = "/dev/shm";
constexpr std::size_t kMostLog = 4000;  // characters of what mpirun and its ranks said last

Seconds now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The run as it was asked for, and its plan.
struct Job {
  RunOptions options;
  Spec spec;
  Plan plan;  // of all ranks
  std::string hash;
  std::int64_t steps = 1;
};

Job make_job(const RunOptions& given) {
  Job job{.options = given};
  if (given.ranks > 0) job.options.overrides.push_back(fmt::format("gpus={}", given.ranks));
  job.spec = load_spec(given.spec, job.options.overrides);
  job.steps = given.steps > 0 ? given.steps : job.spec.steps;
  const Plan folded = make_plan(job.spec);
  job.hash = plan_hash(folded);
  job.plan = unfold(folded);
  return job;
}

// What each op is predicted to take; unknown on a device without a profile.
Patience patience_for(const Job& job) {
  Patience patience{.hang = job.options.hang_timeout};
  Profile profile;
  try {
    profile = job.options.profile.empty() ? find_profile(job.spec.cluster.gpu) : load_profile(job.options.profile);
  } catch (const Error&) {
    if (!job.options.profile.empty()) throw;
    return patience;
  }
  const Prices prices = price(job.plan, job.spec, profile);
  patience.predicted.resize(job.plan.ops.size(), 0);
  for (const auto& row : prices.timing.rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      patience.predicted[i] = std::max(patience.predicted[i], seconds(row[i].duration));
  }
  return patience;
}

// The end of what mpirun and the ranks have printed.
std::string tail_of(const std::string& log) {
  std::ifstream in(log);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (text.size() > kMostLog) text = text.substr(text.size() - kMostLog);
  return text;
}

// mpirun has ended, and no rank has told why.
[[noreturn]] void ended_early(const Witnesses& witnesses, int status, const std::string& log) {
  std::fputs(tail_of(log).c_str(), stderr);
  std::int64_t first = 0;
  while (witnesses.ranks()[first].progress && witnesses.ranks()[first].progress->state == RankState::finished) ++first;
  throw Error(fmt::format("rank {} was lost before its first task: mpirun ended with status {}", first, status),
              kRankLost);
}

void tell(const Common& common, const Witnesses& witnesses, std::int64_t steps) {
  common.progress(fmt::format("step {} of {}", std::min<std::int64_t>(witnesses.step() + 1, steps), steps));
}

// Looks at the ranks until all have finished. Throws Error for the fault that ended the run.
void watch(ProcessTree& tree, const Job& job, const std::string& folder, const std::string& log, const Common& common) {
  const Patience patience = patience_for(job);
  Witnesses witnesses(folder, job.plan.ranks, true, now());
  for (;;) {
    const bool ended = tree.status().has_value();  // before the look: what follows is its last word
    witnesses.look(now());
    if (witnesses.all_finished()) break;
    if (const auto fault = find_fault(job.plan, witnesses.ranks(), job.steps, patience, now())) {
      tree.kill_all();
      throw Error(fault->line, fault->exit_code);
    }
    if (ended) ended_early(witnesses, *tree.status(), log);
    tell(common, witnesses, job.steps);
    tree.wait(kLook);
  }
  for (const Seconds start = now(); !tree.status() && now() < start + kLinger;) tree.wait(kLook);
}

Outcome report_run(const Job& job, const std::string& folder, Seconds started, const Common& common) {
  const std::vector<RankRun> runs = read_runs(folder, job.plan, job.hash);
  const Trace trace = measured_trace(job.plan, runs, median_step(step_times(runs)));
  if (!job.options.trace.empty())
    write_chrome_trace(job.options.trace, job.plan, trace, live_memory(job.plan, trace), {.device = runs[0].device});
  Report report = measured_report(job.spec, job.plan, runs, trace);
  report.simulation.wall_s = now() - started;
  return {common.json ? to_json(report) : report_text(job.spec, report, common.style)};
}

RankArguments arguments_for(const Job& job, const std::string& folder) {
  return {.spec = job.options.spec, .overrides = job.options.overrides, .folder = folder, .steps = job.steps};
}

// This process starts the ranks and watches them.
Outcome run_here(const Job& job, const Common& common) {
  const Seconds started = now();
  const HeldSignals signals;
  const std::string program = find_rank_program(job.options.device);
  std::optional<TemporaryFolder> shared;
  if (::access(kShared, W_OK) == 0) shared.emplace(kShared);
  const TemporaryFolder folder(short_temporary());
  const std::string log = folder.path() + "/log";
  const Launch launch = mpirun(job.plan.ranks, rank_arguments(program, arguments_for(job, folder.path())),
                               folder.path(), shared ? shared->path() : "");
  {
    ProcessTree tree(signals);
    tree.start(launch.arguments, launch.environment, log);
    watch(tree, job, folder.path(), log, common);
  }
  return report_run(job, folder.path(), started, common);
}

// The other ranks' results are there when they say so, which may be a moment after rank 0 has ended.
void wait_for_files(const Job& job, const std::string& folder, ProcessTree& tree) {
  Witnesses witnesses(folder, job.plan.ranks, false, now());
  const Seconds start = now();
  for (witnesses.look(start); !witnesses.all_finished(); witnesses.look(now())) {
    if (now() > start + job.options.hang_timeout)
      throw Error(
          fmt::format("{}: not all ranks have put their results there; it must be a folder that all nodes share "
                      "(set TMPDIR)",
                      folder),
          1);
    tree.wait(kLook);
  }
}

// The user's own launcher has started this process as one of the ranks, and ends them all when one fails. Rank 0 stays,
// to report.
Outcome run_launched(const Job& job, std::int64_t rank, const Common& common) {
  const Seconds started = now();
  const std::string folder = job_folder();
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    throw Error(fmt::format("{}: cannot be made: {}", folder, std::strerror(errno)), 1);
  RankArguments arguments = arguments_for(job, folder);
  arguments.hang_timeout = job.options.hang_timeout;
  std::vector<std::string> words = rank_arguments(find_rank_program(job.options.device), arguments);
  if (rank != 0) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    throw Error(fmt::format("{}: cannot be started: {}", words[0], std::strerror(errno)), 1);
  }
  const std::string log = folder + "/log";
  const HeldSignals signals;
  ProcessTree tree(signals);
  tree.start(words, {}, log);
  while (!tree.status()) tree.wait(kLook);
  std::fputs(tail_of(log).c_str(), stderr);
  if (*tree.status() != 0) return {"", *tree.status()};
  wait_for_files(job, folder, tree);
  Outcome outcome = report_run(job, folder, started, common);
  fs::remove_all(folder);
  return outcome;
}

}  // namespace

Outcome run_command(const RunOptions& options, const Common& common) {
  const Job job = make_job(options);
  const std::int64_t rank = launched_rank();
  return rank < 0 ? run_here(job, common) : run_launched(job, rank, common);
}

}  // namespace orrery
