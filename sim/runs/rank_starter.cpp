#include "sim/runs/rank_starter.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <initializer_list>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/run/rank_end.h"
#include "sim/runs/launch.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// The name (at most 15 letters, prctl(2)) that ps shows for this program, to tell it from the rank that it starts.
constexpr char kStarterName[] = "orrery-start";
constexpr int kNotExecuted = 127;

// Ends this process by the signal that ended the rank. It leaves no core file: the rank has written one, if any.
[[noreturn]] void end_by(int signal) {
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace

int start_rank(const std::string& folder, char** words) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  RankEndFile file(ended_file(folder, launched_rank()));
  const pid_t parent = ::getpid(), rank = ::fork();
  if (rank < 0) throw Error(fmt::format("{}: cannot be started: {}", words[0], std::strerror(errno)), 1);
  if (rank == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) ::execv(words[0], words);
    std::fputs(fmt::format("orrery: {}: cannot be started: {}\n", words[0], std::strerror(errno)).c_str(), stderr);
    ::_exit(kNotExecuted);
  }
  file.started(rank);
  ::prctl(PR_SET_NAME, kStarterName);
  int status = 0;
  while (::waitpid(rank, &status, 0) < 0 && errno == EINTR) {
  }
  file.ended(status);
  if (WIFSIGNALED(status)) end_by(WTERMSIG(status));
  return WEXITSTATUS(status);
}

std::vector<std::string> with_starter(const std::string& folder, const std::vector<std::string>& rank) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> words = rank;
  for (const fs::path& path : {here / "orrery", here.parent_path() / "sim" / "orrery"}) {
    if (::access(path.c_str(), X_OK) != 0 || fs::is_directory(path)) continue;
    words.insert(words.begin(), {path.string(), kStartRank, folder});
    break;
  }
  return words;
}

}  // namespace orrery
