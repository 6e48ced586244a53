#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "models/witness.h"
#include "sim/chrome_trace.h"
#include "sim/commands.h"
#include "sim/compose.h"
#include "sim/job.h"
#include "sim/live_memory.h"
#include "sim/measured.h"
#include "sim/processes.h"
#include "sim/report_text.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

Outcome report_run(const Job& job, const std::vector<RankRun>& runs, Seconds started, const Common& common) {
  std::optional<Prediction> predicted;
  if (job.options.composed) predicted = predict(job.spec, true, job.options.profile);
  const Trace trace =
      predicted ? compose(*predicted, runs) : measured_trace(job.plan, runs, median_step(step_times(runs)));
  if (!job.options.trace.empty())
    write_chrome_trace(job.options.trace, job.plan, trace, live_memory(job.plan, trace), {.device = runs[0].device});
  Report report = predicted ? composed_report(job.spec, job.plan, runs, trace, predicted->prices.notes)
                            : measured_report(job.spec, job.plan, runs, trace, job.options.device == "cuda");
  report.simulation.wall_s = now() - started;
  return {common.json ? to_json(report) : report_text(job.spec, report, common.style)};
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
constexpr int kSignalled = 128;  // of ProcessTree::status(): killed by the signal above it

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
  if (*tree.status() > kSignalled) {
    throw Error(fmt::format("rank 0 was lost (signal {}); see {}", *tree.status() - kSignalled, log), kRankLost);
  }
  if (*tree.status() != 0) return {"", *tree.status()};
  wait_for_files(job, folder, tree);
  Outcome outcome = report_run(job, read_runs(folder, job.plan, job.hash), started, common);
  fs::remove_all(folder);
  return outcome;
}

}  // namespace

Outcome run_command(const RunOptions& options, const Common& common) {
  const Job job = make_job(options);
  const Seconds started = now();
  const std::int64_t rank = launched_rank();
  return rank < 0 ? report_run(job, run_job(job, common), started, common) : run_launched(job, rank, common);
}

}  // namespace orrery
