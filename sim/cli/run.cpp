#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/run/witness.h"
#include "sim/cli/commands.h"
#include "sim/export/chrome_trace.h"
#include "sim/generate/generated_steps.h"
#include "sim/memory/live_memory.h"
#include "sim/report/report_text.h"
#include "sim/runs/job.h"
#include "sim/runs/measured.h"
#include "sim/runs/processes.h"
#include "sim/validate/compose.h"
#include "sim/validate/measured_generation.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// Reports ranks that generated text: the times of its passes, memory, and the first tokens.
Outcome report_generation(const Job& job, const std::vector<RankRun>& runs, const Common& common) {
  if (!job.options.trace.empty()) {
    const Trace trace = measured_trace(job.plan, runs, median_step(step_times(runs)));
    const std::vector<GenerationPass> passes = generation_passes(*job.spec.generation);
    write_chrome_trace(job.options.trace, job.plan, trace, live_memory(job.plan, trace),
                       {.device = runs[0].device,
                        .passes = names_of(job.spec, passes),
                        .cache = cache_use(job.spec, job.plan, passes)});
  }
  const GenerationReport report = measured_generation(job.spec, job.plan, runs);
  if (!common.json) {
    const std::string ranks = fmt::format("\n  measured on {} CPU rank{}: {}\n", job.plan.ranks,
                                          job.plan.ranks == 1 ? "" : "s", runs[0].device);
    return {generation_text(job.spec, report, common.style) + ranks + text_of(logit_errors(runs)) + texts_text(runs)};
  }
  nlohmann::ordered_json root = nlohmann::ordered_json::parse(to_json(job.spec, report));
  root["plan_hash"] = job.hash;
  for (const auto& [number, tokens] : texts_of(runs))
    root["texts"].push_back({{"sequence", number}, {"tokens", tokens}});
  if (const LogitErrors e = logit_errors(runs); e.rows > 0)
    root["logit_errors"] = {{"rows", e.rows},
                            {"mean", e.mean},
                            {"largest", e.largest},
                            {"kl_nats", e.divergence},
                            {"same_tokens", e.same_tokens}};
  return {root.dump(2) + '\n'};
}

Outcome report_run(const Job& job, const std::vector<RankRun>& runs, Seconds started, const Common& common) {
  if (job.spec.generation) return report_generation(job, runs, common);
  std::optional<Prediction> predicted;
  if (job.options.composed) predicted = predict(job.spec, true, job.options.profile);
  const Trace trace =
      predicted ? compose(*predicted, runs) : measured_trace(job.plan, runs, median_step(step_times(runs)));
  if (!job.options.trace.empty())
    write_chrome_trace(job.options.trace, job.plan, trace, live_memory(job.plan, trace), {.device = runs[0].device});
  Report report = predicted ? composed_report(job.spec, job.plan, runs, trace, predicted->costs.notes)
                            : measured_report(job.spec, job.plan, runs, trace, job.options.device == "cuda");
  report.simulation.wall_s = now() - started;
  return {common.json ? to_json(report) : report_text(job.spec, report, common.style)};
}

// Waits for the result files of all other ranks, which may be complete only a moment after rank 0 has ended.
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

// The exit status of a program that signal n killed is this number plus n (ProcessTree::status()).
constexpr int kSignalled = 128;

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

// The folder for the files of a job that the user's launcher has started. Rank 0 removes it when the job ends, also
// after an error.
class JobFolder {
 public:
  JobFolder(std::string path, bool owner) : path_(std::move(path)), owner_(owner) {
    if (::mkdir(path_.c_str(), S_IRWXU) != 0 && errno != EEXIST)
      throw Error(fmt::format("{}: cannot be made: {}", path_, std::strerror(errno)), 1);
    check_owner();
  }
  ~JobFolder() {
    std::error_code ignored;  // an error of remove_all(), which can be reported to nobody any more
    if (owner_) fs::remove_all(path_, ignored);
  }
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  // Throws Error if the folder belongs to another user. The folder's name can be guessed: another user who creates it
  // first could put links into it, or read the ranks' files.
  void check_owner() const {
    struct stat status {};
    const bool there = ::lstat(path_.c_str(), &status) == 0;
    if (there && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & kOthers) == 0) return;
    throw Error(fmt::format("{}: is not a folder of this user alone; remove it, or set TMPDIR", path_), 1);
  }

  std::string path_;
  bool owner_;
};

std::vector<std::string> launched_arguments(const Job& job, const std::string& folder) {
  RankArguments arguments = arguments_for(job, folder);
  arguments.hang_timeout = job.options.hang_timeout;
  return rank_arguments(find_rank_program(job.options.device), arguments);
}

// Turns this process into one of the ranks of a job. The user's own launcher has started the process, and ends all
// ranks when one fails.
[[noreturn]] void become_rank(const Job& job) {
  const JobFolder folder(job_folder(), false);
  std::vector<std::string> words = launched_arguments(job, folder.path());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  throw Error(fmt::format("{}: cannot be started: {}", words[0], std::strerror(errno)), 1);
}

// Runs rank 0 of a job that the user's launcher has started, as a child process; this process reports the result and
// cleans up.
Outcome run_launched(const Job& job, const Common& common) {
  const Seconds started = now();
  const HeldSignals signals;
  const JobFolder folder(job_folder(), true);
  const std::string log = folder.path() + "/log";
  ProcessTree tree(signals);
  tree.start(launched_arguments(job, folder.path()), {}, log);
  while (!tree.status()) tree.wait(kLook);
  std::fputs(tail_of(log).c_str(), stderr);
  if (*tree.status() > kSignalled)
    throw Error(fmt::format("rank 0 was lost (signal {})", *tree.status() - kSignalled), kRankLost);
  if (*tree.status() != 0) return {"", *tree.status()};
  wait_for_files(job, folder.path(), tree);
  return report_run(job, read_runs(folder.path(), job.plan, job.hash), started, common);
}

}  // namespace

Outcome run_command(const RunOptions& options, const Common& common) {
  const Job job = make_job(options);
  const Seconds started = now();
  const std::int64_t rank = launched_rank();
  if (rank < 0) check_cores(job, std::thread::hardware_concurrency());
  if (rank > 0) become_rank(job);
  Outcome outcome = rank == 0 ? run_launched(job, common) : report_run(job, run_job(job, common), started, common);
  if (const std::string steps = rounded_steps(job); !steps.empty()) outcome.log += steps + '\n';
  return outcome;
}

}  // namespace orrery
