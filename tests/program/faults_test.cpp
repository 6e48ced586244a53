// `orrery run` with real ranks (orrery-rank), one of which is killed or stopped while it works: the launcher must
// notice, name it, and leave nothing behind. The moment within a step is left to chance; the rank, the step and the
// kind of fault are given. The speed of the machine is measured by a run without faults.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/run/progress_ring.h"
#include "tests/random_bits.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kLost = 5;
constexpr double kNoticed = 5;  // seconds until a killed rank is noticed; every other rank ends within ten
constexpr int kRanks = 2;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Result {
  int status = -1;  // exit status; 128 + signal
  std::string out, error;
};

// A signal that a rank gets after a number of steps and a short delay.
struct Blow {
  std::int64_t rank = 0;
  int signal = SIGKILL;
  std::uint32_t step = 1;
  milliseconds later{0};
};

std::vector<double> losses_of(const std::string& report) {
  std::vector<double> losses;
  const std::size_t begin = report.find("\"losses\": [");
  if (begin == std::string::npos) return losses;
  std::istringstream in(report.substr(begin + 11, report.find(']', begin) - begin - 11));
  for (std::string number; std::getline(in, number, ',');) losses.push_back(std::stod(number));
  return losses;
}

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    if (::access("/usr/bin/mpirun", X_OK) != 0) GTEST_SKIP() << "no mpirun";
    folder_ = "/tmp/orf" + std::to_string(::getpid());
    fs::create_directory(folder_);
    work_ = folder_ + "/t";  // $TMPDIR: must be empty in the end
    fs::create_directory(work_);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_TRUE(fs::is_empty(work_)) << fs::directory_iterator(work_)->path();
    EXPECT_EQ(alive(), 0);
    for (const auto& e : fs::directory_iterator("/dev/shm"))
      EXPECT_EQ(e.path().string().find(fmt::format("orrery-{}-", program_)), std::string::npos);
    fs::remove_all(folder_);
  }

  // Number of processes of this test, recognised by its folder: ranks by their arguments, all by their environment.
  int alive() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0 || pid == ::getpid()) continue;
      count += text_of(entry.path() / "cmdline").find(folder_ + "/") != std::string::npos ||
               text_of(entry.path() / "environ").find(folder_ + "/") != std::string::npos;
    }
    return count;
  }

  // A model of two layers over two ranks, whose steps take some milliseconds.
  std::string spec(const std::string& strategy) const {
    const std::string path = folder_ + "/spec.yaml";
    std::ofstream(path) << "model: {name: small, layers: 2, hidden: 64, heads: 4, feed_forward: 256, vocab: 512}\n"
                           "sequence: 64\ncluster: {node: localhost}\ngpus: 2\nsoftware: orrery\n"
                        << "strategy: {micro_batch: 2, global_batch: 8, precision: fp32, " << strategy << "}\n";
    return path;
  }

  void start(const std::vector<std::string>& words) {
    std::vector<std::string> copy = words;
    std::vector<char*> argv;
    for (std::string& w : copy) argv.push_back(w.data());
    argv.push_back(nullptr);
    const pid_t parent = ::getpid();
    program_ = ::fork();
    if (program_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(125);
    ::setenv("TMPDIR", work_.c_str(), 1);
    ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
    if (rank_program_.empty())
      ::unsetenv("ORRERY_RANK");
    else
      ::setenv("ORRERY_RANK", rank_program_.c_str(), 1);
    if (std::freopen((folder_ + "/out").c_str(), "w", stdout) == nullptr) ::_exit(126);
    if (std::freopen((folder_ + "/error").c_str(), "w", stderr) == nullptr) ::_exit(126);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }

  Result finish() const {
    int status = 0;
    ::waitpid(program_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_of(folder_ + "/out"),
            text_of(folder_ + "/error")};
  }

  // A rank's progress file, in whatever folder the program made for it.
  std::optional<RankProgress> progress_of(std::int64_t rank) const {
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(work_, gone)) {
      if (const auto p = read_progress(progress_file(entry.path().string(), rank))) return p;
    }
    return std::nullopt;
  }

  // Sends the signal and returns the process that got it; 0 if the program ended before.
  pid_t strike(const Blow& blow) const {
    for (;;) {
      siginfo_t ended{};
      ::waitid(P_PID, static_cast<id_t>(program_), &ended, WEXITED | WNOHANG | WNOWAIT);
      if (ended.si_pid == program_) return 0;
      const auto p = progress_of(blow.rank);
      std::uint32_t step = 0;
      if (p) {
        for (const ProgressEvent& e : p->lanes) step = std::max(step, e.step);
      }
      if (p && step >= blow.step) {
        std::this_thread::sleep_for(blow.later);
        ::kill(static_cast<pid_t>(p->pid), blow.signal);
        return static_cast<pid_t>(p->pid);
      }
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

  // The result of a run with a fault, and how long it went on after that.
  struct Struck {
    pid_t process = 0;
    Result result;
    double went_on = 0;
  };
  Struck run_struck(const std::vector<std::string>& words, const Blow& blow) {
    start(words);
    const pid_t process = strike(blow);
    const auto begin = Clock::now();
    const Result r = finish();
    EXPECT_NE(process, 0) << r.error;
    return {process, r, seconds_since(begin)};
  }

  // Losses of a run without faults.
  std::vector<double> clean_losses(const std::string& path, int steps) {
    start(command({}, path, steps, 60));
    const Result clean = finish();
    EXPECT_EQ(clean.status, 0) << clean.error;
    std::vector<double> losses = losses_of(clean.out);
    EXPECT_EQ(losses.size(), static_cast<std::size_t>(steps));
    EXPECT_LT(losses.empty() ? 0 : losses.back(), losses.empty() ? 1 : losses.front());
    return losses;
  }

  // Duration of a run of few steps on this machine, from start to end.
  double clean_run(const std::vector<std::string>& launcher, const std::string& path) {
    const auto begin = Clock::now();
    start(command(launcher, path, 3, 60));
    const Result r = finish();
    EXPECT_EQ(r.status, 0) << r.error;
    return seconds_since(begin);
  }

  static std::vector<std::string> command(const std::vector<std::string>& launcher, const std::string& path, int steps,
                                          double hang) {
    std::vector<std::string> words = launcher;
    words.insert(words.end(), {ORRERY_PROGRAM, "run", path, "--steps", std::to_string(steps), "--hang-timeout",
                               fmt::format("{}", hang), "--json"});
    return words;
  }

  static std::vector<std::string> users_mpirun() {
    std::vector<std::string> words = {"/usr/bin/mpirun"};
    if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
    words.insert(words.end(), {"--oversubscribe", "--mca", "btl_vader_single_copy_mechanism", "none", "--mca", "pml",
                               "ob1", "--mca", "btl", "self,vader", "--mca", "mpi_yield_when_idle", "1", "-n", "2"});
    return words;
  }

  // Replaces orrery-rank by a script: rank 1 runs these lines of shell, then all become ranks.
  void first(const std::string& lines) {
    rank_program_ = folder_ + "/rank";
    std::ofstream(rank_program_) << "#!/bin/sh\nif [ $OMPI_COMM_WORLD_RANK = 1 ]; then " << lines << "; fi\nexec "
                                 << fs::path(ORRERY_PROGRAM).parent_path().string() << "/orrery-rank \"$@\"\n";
    fs::permissions(rank_program_, fs::perms::owner_all);
  }

  std::string folder_, work_, rank_program_;
  pid_t program_ = 0;
};

constexpr int kManySteps = 1'000'000;  // more steps than there is time for

Blow blow(std::uint64_t seed, int signal) {
  return {static_cast<std::int64_t>(test::random_bits(seed) % kRanks), signal,
          static_cast<std::uint32_t>(1 + test::random_bits(seed + 100) % 4),
          milliseconds(test::random_bits(seed + 200) % 30)};
}

const char* const kStrategies[] = {"tensor: 2, data: 1", "pipeline: 2, data: 1", "data: 2, sharding: zero3"};

TEST_F(Faults, AKilledOrStoppedRankIsNamed) {
  const double clean = clean_run({}, spec(kStrategies[0]));
  // On a machine where a start takes longer than the timeout, a rank may be paused for longer than that, too.
  const double hang = std::max(2.0, clean);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Blow b = blow(i, i % 2 == 0 ? SIGKILL : SIGSTOP);
    const auto [struck, r, went_on] = run_struck(command({}, spec(kStrategies[i]), kManySteps, hang), b);
    ASSERT_NE(struck, 0);
    EXPECT_LT(went_on, kNoticed + clean + (b.signal == SIGSTOP ? hang : 0));
    EXPECT_EQ(r.status, kLost) << r.error;
    EXPECT_EQ(r.out, "");
    const std::string what =
        b.signal == SIGKILL
            ? fmt::format(R"(rank {} was lost \(process {} has ended\))", b.rank, struck)
            : fmt::format(R"(rank {} stands still for [\d.]+ s \(process {}, stopped\))", b.rank, struck);
    // The line names the op, or the transfer in which a rank waits, the ranks that have entered it, and whether the
    // faulty rank has.
    const std::regex line(
        fmt::format(R"(^orrery: {} in step \d+ of {}, (in|after) .*; .* of \w+ group 0 1 \(.*\): entered by rank.*\n$)",
                    what, kManySteps));
    EXPECT_TRUE(std::regex_match(r.error, line)) << r.error;
    EXPECT_EQ(::kill(struck, 0), -1);
  }
}

// Before main() a rank cannot report anything; the launcher waits for the other ranks, which wait for it.
TEST_F(Faults, ARankThatEndsOrStopsBeforeItsFirstWordIsNamed) {
  const std::string path = spec(kStrategies[0]);
  const double clean = clean_run({}, path);
  const std::pair<std::string, std::string> cases[] = {
      {"exit 127", "was lost .*; it ended with status 127 \\(a program or library is missing\\)"},
      {"exit 0", "was lost .*; it ended with status 0"},
      {"kill -KILL $$", "was lost .*; it was killed by SIGKILL .*"},
      {"kill -SEGV $$", "was lost .*; it was killed by SIGSEGV"},
      {"echo no such library >&2; exit 3",
       "was lost .*; it ended with status 3; the launcher's last line: no such library"},
      {"kill -STOP $$", "stands still for [\\d.]+ s \\(process \\d+, stopped\\) before its first task.*"}};
  for (const auto& [lines, line] : cases) {
    first(lines);
    const auto begin = Clock::now();
    start(command({}, path, kManySteps, 60));
    const Result r = finish();
    EXPECT_LT(seconds_since(begin), clean + kNoticed) << lines;
    EXPECT_EQ(r.status, kLost) << r.error;
    EXPECT_TRUE(std::regex_match(r.error, std::regex("^orrery: rank 1 " + line + "\\n$"))) << r.error;
  }
}

// Ranks go on while their launcher stands still, but nobody would hear their end.
TEST_F(Faults, ALauncherThatStandsStillIsNamed) {
  const std::string path = spec(kStrategies[0]);
  const double clean = clean_run({}, path);
  first(
      "p=$PPID; while [ \"$(cat /proc/$p/comm)\" != mpirun ]; do p=$(awk '/^PPid/ {print $2}' /proc/$p/status); done; "
      "kill -STOP $p");
  const auto begin = Clock::now();
  start(command({}, path, kManySteps, 60));
  const Result r = finish();
  EXPECT_LT(seconds_since(begin), clean + kNoticed);
  EXPECT_EQ(r.status, kLost);
  const std::regex line(
      "orrery: the launcher of the ranks, or a process that it started, stands still for [\\d.]+ s \\(process \\d+, "
      "stopped .*\n");
  EXPECT_TRUE(std::regex_match(r.error, line)) << r.error;
}

TEST_F(Faults, ASignalIsNamed) {
  const std::string path = spec(kStrategies[0]);
  for (const auto& [signal, name] : {std::pair(SIGSEGV, "SIGSEGV"), std::pair(SIGBUS, "SIGBUS")}) {
    const auto [struck, r, went_on] = run_struck(command({}, path, kManySteps, 60), {.rank = 1, .signal = signal});
    EXPECT_EQ(r.status, kLost);
    EXPECT_NE(r.error.find(fmt::format("; it was killed by {}", name)), std::string::npos) << r.error;
  }
}

// Under the user's own launcher no process watches from outside: the ranks watch each other, and the launcher ends
// them.
TEST_F(Faults, UnderTheUsersLauncherRanksWatchEachOther) {
  const std::string path = spec(kStrategies[0]);
  const double clean = clean_run(users_mpirun(), path), hang = std::max(2.0, clean);
  for (std::uint64_t i = 0; i < 2; ++i) {
    const Blow b = blow(10 + i, i % 2 == 0 ? SIGSTOP : SIGKILL);
    const auto [struck, r, went_on] = run_struck(command(users_mpirun(), path, kManySteps, hang), b);
    ASSERT_NE(struck, 0);
    // mpirun gives a rank that ignores SIGTERM some seconds.
    EXPECT_LT(went_on, 2 * kNoticed + clean + (b.signal == SIGSTOP ? hang : 0));
    EXPECT_NE(r.status, 0);
    if (b.signal == SIGSTOP) {
      EXPECT_EQ(r.status, kLost) << r.error;
      EXPECT_TRUE(std::regex_search(r.error, std::regex(fmt::format(R"(rank {} stands still for [\d.]+ s)", b.rank))))
          << r.error;
    }
  }
}

// A server that is killed, and a worker, cost the steps since the last snapshot and change no loss.
TEST_F(Faults, ServersGoOnFromTheirSnapshots) {
  constexpr int kSteps = 120;
  const std::string path =
      spec("data: 2, sharding: parameter-server, parameter_server: {servers: 2, snapshot_every: 10}");
  const std::vector<double> wanted = clean_losses(path, kSteps);
  for (const std::int64_t rank : {2, 0}) {  // ranks 2 and 3 are servers
    const Result r = run_struck(command({}, path, kSteps, 60), {.rank = rank, .step = 25}).result;
    EXPECT_EQ(r.status, 0) << r.error;
    const std::regex line(fmt::format(R"(rank {} was lost[^\n]*\norrery: goes on after step \d+, from)", rank));
    EXPECT_TRUE(std::regex_search(r.error, line)) << r.error;
    const std::vector<double> losses = losses_of(r.out);
    ASSERT_EQ(losses.size(), wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k) ASSERT_NEAR(losses[k], wanted[k], 1e-5 * wanted[k]) << k;
  }
}

// A head, a tail, or one of each chain is lost: the other servers of the chain take its place in the same step, no work
// is repeated, and no loss changes.
TEST_F(Faults, ChainsGoOnWithoutALostServer) {
  constexpr int kSteps = 120;
  const std::string path =
      spec("data: 2, clip: 0, sharding: parameter-server, parameter_server: {servers: 2, replicas: 2}");
  const std::vector<double> wanted = clean_losses(path, kSteps);
  for (const std::vector<std::int64_t>& ranks :  // 2 and 3 are heads, 4 and 5 tails
       std::vector<std::vector<std::int64_t>>{{2}, {5}, {3, 4}}) {
    start(command({}, path, kSteps, 60));
    std::uint32_t step = 20;
    for (const std::int64_t rank : ranks) {
      ASSERT_NE(strike({.rank = rank, .step = step}), 0);
      step += 20;
    }
    const Result r = finish();
    EXPECT_EQ(r.status, 0) << r.error;
    for (const std::int64_t rank : ranks)
      EXPECT_NE(r.error.find(fmt::format("rank {} was lost", rank)), std::string::npos) << r.error;
    EXPECT_EQ(r.error.find("goes on after step"), std::string::npos) << r.error;
    EXPECT_EQ(losses_of(r.out), wanted);  // to the last digit: the same sums in the same order
  }
}

// Losing all servers of one chain ends the run.
TEST_F(Faults, AChainOfNobodyEndsTheRun) {
  start(command({}, spec("data: 2, clip: 0, sharding: parameter-server, parameter_server: {servers: 2, replicas: 2}"),
                kManySteps, 60));
  ASSERT_NE(strike({.rank = 3, .step = 10}), 0);
  ASSERT_NE(strike({.rank = 5, .step = 40}), 0);
  const Result r = finish();
  EXPECT_EQ(r.status, kLost) << r.error;
  EXPECT_NE(r.error.find("rank 5 was lost"), std::string::npos) << r.error;
}

// Before there is a snapshot, or without any, a lost server ends the run.
TEST_F(Faults, WithoutASnapshotALostServerEndsTheRun) {
  const std::string path = spec("data: 2, sharding: parameter-server, parameter_server: {servers: 2}");
  const Result r = run_struck(command({}, path, kManySteps, 60), {.rank = 3, .step = 20}).result;
  EXPECT_EQ(r.status, kLost) << r.error;
}

}  // namespace
}  // namespace orrery
