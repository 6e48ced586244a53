// `orrery run` with a stand-in for orrery-rank (fake_rank.cpp), which dies, stops and reports wrong results on request.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/run/witness.h"
#include "sim/cli/commands.h"
#include "sim/runs/launch.h"
#include "sim/runs/processes.h"
#include "tests/sim/small_plans.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kRunSpec = ORRERY_SOURCE_DIR "/examples/cpu-small.yaml";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Nothing of a run is left when it is over, however it ended. Every test has a separate folder, since other tests run
// at the same time.
class CommandRun : public testing::Test {
 protected:
  void SetUp() override {
    if (::access("/usr/bin/mpirun", X_OK) != 0) GTEST_SKIP() << "no mpirun";
    folder_ = "/tmp/o" + std::to_string(::getpid());
    fs::create_directory(folder_);
    if (const char* before = std::getenv("TMPDIR")) temporary_ = before;
    ::setenv("TMPDIR", folder_.c_str(), 1);
    ::setenv("ORRERY_RANK", ORRERY_FAKE_RANK, 1);
    ::unsetenv("FAKE_FAULT");
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(ranks_alive(), 0);
    EXPECT_TRUE(fs::is_empty(folder_));
    EXPECT_FALSE(shares_memory(::getpid()));
    fs::remove_all(folder_);
    if (temporary_.empty())
      ::unsetenv("TMPDIR");
    else
      ::setenv("TMPDIR", temporary_.c_str(), 1);
  }

  // Number of living ranks of this test: their command lines contain its folder.
  int ranks_alive() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::ifstream in(entry.path() / "cmdline");
      std::ostringstream words;  // inserting the buffer reports no error where the process ends meanwhile
      words << in.rdbuf();
      if (contains(words.str(), folder_)) ++count;
    }
    return count;
  }
  static bool shares_memory(pid_t owner) {
    const std::string mine = "orrery-" + std::to_string(owner) + "-";
    const fs::directory_iterator all("/dev/shm");
    return std::any_of(begin(all), end(all), [&](const auto& e) { return contains(e.path().string(), mine); });
  }

  static Outcome run(RunOptions options) {
    options.spec = kRunSpec;
    return run_command(options, {.json = true, .progress = [](std::string_view) {}});
  }
  static Error error_of(const std::string& fault, RunOptions options = {.steps = 3}) {
    ::setenv("FAKE_FAULT", fault.c_str(), 1);
    try {
      run(std::move(options));
    } catch (const Error& e) {
      return e;
    }
    return Error("no error", 0);
  }

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_, temporary_;
};

TEST_F(CommandRun, ReportsWhatTheRanksMeasured) {
  const test::TemporaryFolder folder;
  const std::string trace = folder.path("trace.json");
  const json report = json::parse(run({.steps = 3, .trace = trace}).text);
  EXPECT_EQ(report["source"], "measured");
  EXPECT_EQ(report["simulation"]["ranks"], 4);
  EXPECT_EQ(report["losses"].size(), 3U);
  EXPECT_TRUE(report["mfu"].is_null());
  EXPECT_EQ(report["memory"]["peak_bytes"], 1003);
  double sum = 0;
  for (const auto& part : report["time_s"]) sum += part.get<double>();
  EXPECT_NEAR(sum / report["step_time_s"].get<double>(), 1, 1e-6);
  std::ifstream in(trace);
  EXPECT_TRUE(json::parse(in).contains("traceEvents"));
}

// mpirun's sockets cannot lie in a folder with a long path; the ranks' files do.
TEST_F(CommandRun, TakesATemporaryFolderWithALongPath) {
  const fs::path deep = fs::path(folder()) / std::string(80, 'd');
  fs::create_directory(deep);
  ::setenv("TMPDIR", deep.c_str(), 1);
  const json report = json::parse(run({.steps = 2}).text);
  EXPECT_EQ(report["losses"].size(), 2U);
  EXPECT_TRUE(fs::is_empty(deep));
  fs::remove(deep);
}

TEST_F(CommandRun, RanksOverrideTheSpec) {
  const json report =
      json::parse(run({.overrides = {"strategy={tensor: 2, micro_batch: 2, global_batch: 8}"}, .ranks = 2}).text);
  EXPECT_EQ(report["simulation"]["ranks"], 2);
}

TEST_F(CommandRun, NamesAKilledRankWithinFiveSeconds) {
  const auto timed = [](const auto& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::steady_clock::now() - start;
  };
  Error e("", 0);
  const auto whole = timed([&] { run({.steps = 3}); });
  const auto cut = timed([&] { e = error_of("1 1 5 kill"); });
  EXPECT_LT(cut, whole + std::chrono::seconds(5));
  EXPECT_EQ(e.exit_code, kRankLost);
  const std::string line = e.what();
  EXPECT_TRUE(line.starts_with("rank 1 was lost (process ")) << line;
  EXPECT_TRUE(contains(line, "in step 2 of 3")) << line;
  EXPECT_TRUE(contains(line, "of tensor group 0 1 (")) << line;
}

TEST_F(CommandRun, NamesAStoppedRank) {
  const Error e = error_of("2 0 9 stop", {.steps = 2, .hang_timeout = 3});
  EXPECT_EQ(e.exit_code, kRankLost);
  const std::string line = e.what();
  EXPECT_TRUE(line.starts_with("rank 2 stands still for 3.")) << line;
  EXPECT_TRUE(contains(line, ", stopped) in step 1 of 2")) << line;
}

// A killed or stopped rank is named, at whatever task this happens.
TEST_F(CommandRun, NamesRanksKilledOrStoppedAnywhere) {
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto rank = scrambled(1, i) % 4, step = scrambled(2, i) % 2, task = scrambled(3, i) % 60;
    const std::string what = i % 2 == 0 ? "kill" : "stop";
    // A killed rank is noticed at once; for a rank that stands still, the timeout must be longer than the pauses of a
    // busy machine.
    const Error e = error_of(fmt::format("{} {} {} {}", rank, step, task, what),
                             {.steps = 2, .hang_timeout = what == "kill" ? 60.0 : 3.0});
    EXPECT_EQ(e.exit_code, kRankLost);
    const std::string verdict = what == "kill" ? "was lost" : "stands still";
    EXPECT_TRUE(std::string(e.what()).starts_with(fmt::format("rank {} {}", rank, verdict))) << e.what();
  }
}

TEST_F(CommandRun, NamesARankThatSpins) {
  const Error e = error_of("3 0 2 spin", {.hang_timeout = 3});
  EXPECT_EQ(e.exit_code, kRankLost);
  EXPECT_TRUE(std::string(e.what()).starts_with("rank 3 stands still for 3.")) << e.what();
}

TEST_F(CommandRun, PassesOnWhatARankSays) {
  const Error e = error_of("0 0 0 fail");
  EXPECT_EQ(e.exit_code, 1);
  EXPECT_STREQ(e.what(), "rank 0: device: out of memory");
}

TEST_F(CommandRun, RefusesBrokenFilesAndOtherPlans) {
  EXPECT_TRUE(contains(error_of("0 0 0 garbage").what(), "its length is not what its header says"));
  EXPECT_TRUE(contains(std::string(error_of("3 0 0 hash").what()), "is of plan 0123456789abcdef"));
}

TEST_F(CommandRun, AProgramThatEndsAtOnceIsALostRank) {
  ::setenv("ORRERY_RANK", "/bin/false", 1);
  EXPECT_EQ(error_of("").exit_code, kRankLost);
}

// The name of a job's folder follows from the launcher's public numbers: another user who created it first could have
// put links there.
TEST_F(CommandRun, AJobsFolderIsThisUsersAlone) {
  ::setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  ::setenv("PMIX_NAMESPACE", "guessed", 1);
  const std::string folder = job_folder(), victim = folder + "-victim";
  std::ofstream(victim) << "precious";
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_all | fs::perms::others_read);
  fs::create_symlink(victim, folder + "/log");
  EXPECT_TRUE(contains(std::string(error_of("").what()), "is not a folder of this user alone"));
  fs::permissions(folder, fs::perms::owner_all);
  EXPECT_TRUE(contains(std::string(error_of("").what()), "/log: cannot be written"));  // nor through a link
  EXPECT_EQ(fs::file_size(victim), 8U);
  fs::remove_all(folder);
  fs::create_directory_symlink("/tmp", folder);
  EXPECT_TRUE(contains(std::string(error_of("").what()), "is not a folder of this user alone"));
  fs::remove(folder);
  fs::remove(victim);
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  ::unsetenv("PMIX_NAMESPACE");
}

TEST_F(CommandRun, CudaIsNotBuiltHere) {
  ::unsetenv("ORRERY_RANK");
  RunOptions options{.device = "cuda"};
  EXPECT_TRUE(contains(std::string(error_of("", options).what()), "orrery-rank-cuda: is not beside"));
}

TEST_F(CommandRun, AnInterruptLeavesNothing) {
  ::setenv("FAKE_FAULT", "0 0 3 spin", 1);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      run({});
    } catch (const Interrupted& stop) {
      ::_exit(stop.signal);
    } catch (...) {
    }
    ::_exit(99);
  }
  while (ranks_alive() < 5)  // with mpirun
    ::usleep(10'000);
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), SIGINT);
  EXPECT_FALSE(shares_memory(child));
}

}  // namespace
}  // namespace orrery
