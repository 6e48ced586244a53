#include "sim/runs/processes.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/run/process_stat.h"

namespace orrery {
namespace {

constexpr int kNotStarted = 127;  // exit status with which a shell reports a program that it cannot start
constexpr timespec kPause = {0, 2'000'000};

// All processes of the system, as pairs (process id, id of its parent).
std::vector<std::pair<pid_t, pid_t>> all_processes() {
  std::vector<std::pair<pid_t, pid_t>> list;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    if (const std::optional<ProcessStat> stat = process_stat(pid)) list.emplace_back(pid, stat->parent);
  }
  return list;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& [pid, its_parent] : all_processes()) {
    if (its_parent == parent) children.push_back(pid);
  }
  return children;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// The environment of this process ("KEY=VALUE") with the variables in `added` added or replaced.
std::vector<std::string> merged(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view key = text.substr(0, text.find('=') + 1);
    if (std::none_of(added.begin(), added.end(), [&](const std::string& a) { return a.starts_with(key); }))
      all.emplace_back(text);
  }
  return all;
}

// Environment variables that tell a process which rank it is: mpirun's, and the one that GPU ranks get from the process
// that starts them.
constexpr std::string_view kToldRank[] = {"OMPI_COMM_WORLD_RANK=", "RANK="};

// The rank number of a process, from the process's environment; nullopt for a process that has ended and was not reaped
// yet.
std::optional<std::int64_t> rank_of(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/environ", pid));
  for (std::string entry; std::getline(in, entry, '\0');) {
    for (const std::string_view variable : kToldRank) {
      if (entry.starts_with(variable)) return std::atoll(entry.c_str() + variable.size());
    }
  }
  return std::nullopt;
}

}  // namespace

Seconds now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

HeldSignals::HeldSignals() {
  sigemptyset(&held_);
  sigaddset(&held_, SIGCHLD);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(s, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&held_, s);
  }
  ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

HeldSignals::~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

ProcessTree::ProcessTree(const HeldSignals& signals) : others_(children_of(::getpid())), signals_(signals) {
  ::prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

ProcessTree::~ProcessTree() {
  kill_all();
  ::prctl(PR_SET_CHILD_SUBREAPER, was_subreaper_);
}

void ProcessTree::start(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                        const std::string& log) {
  std::vector<std::string> words = arguments, variables = merged(environment);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (out < 0) throw Error(fmt::format("{}: cannot be written: {}", log, std::strerror(errno)), 1);
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t parent = ::getpid();
  program_ = ::fork();
  if (program_ == 0) {  // only calls that are safe after fork(2) may follow
    ::setpgid(0, 0);    // so that Ctrl-C in the terminal reaches only the parent process
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::sigprocmask(SIG_SETMASK, &signals_.before(), nullptr);
    if (::getppid() == parent && ::dup2(in, 0) >= 0 && ::dup2(out, 1) >= 0 && ::dup2(out, 2) >= 0)
      ::execve(argv[0], argv.data(), envp.data());
    ::_exit(kNotStarted);
  }
  const int error = errno;
  ::close(out);
  ::close(in);
  if (program_ < 0) throw Error(fmt::format("{}: cannot be started: {}", arguments[0], std::strerror(error)), 1);
}

void ProcessTree::wait(Seconds at_most) {
  const auto whole = static_cast<time_t>(at_most);
  const timespec time = {whole, static_cast<long>((at_most - static_cast<double>(whole)) * 1e9)};
  const int signal = ::sigtimedwait(&signals_.held(), nullptr, &time);
  reap();
  if (signal > 0 && signal != SIGCHLD) throw Interrupted{signal};
}

void ProcessTree::reap() {
  for (const pid_t child : children_of(::getpid())) {
    if (std::find(others_.begin(), others_.end(), child) != others_.end()) continue;
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) != child || child != program_) continue;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

std::vector<pid_t> ProcessTree::descendants() const {
  const std::vector<std::pair<pid_t, pid_t>> all = all_processes();
  std::vector<pid_t> found;
  const auto add_children = [&](pid_t parent) {
    for (const auto& [pid, its_parent] : all) {
      const bool other = std::find(others_.begin(), others_.end(), pid) != others_.end();
      if (its_parent == parent && !other) found.push_back(pid);
    }
  };
  add_children(::getpid());
  for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i]);
  return found;
}

std::map<std::int64_t, std::vector<pid_t>> ProcessTree::ranks() const {
  std::map<std::int64_t, std::vector<pid_t>> found;
  for (const pid_t pid : descendants()) {
    if (const std::optional<std::int64_t> rank = rank_of(pid)) found[*rank].push_back(pid);
  }
  return found;
}

std::optional<pid_t> ProcessTree::stopped() const {
  for (const pid_t pid : descendants()) {
    const std::optional<ProcessStat> stat = process_stat(pid);
    if (stat && (stat->state == 'T' || stat->state == 't') && !rank_of(pid)) return pid;
  }
  return std::nullopt;
}

void ProcessTree::kill_all() {
  if (program_ <= 0) return;
  if (!status_) ::kill(program_, SIGKILL);
  for (;;) {
    const std::vector<pid_t> left = descendants();
    if (left.empty()) return;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    reap();
    ::nanosleep(&kPause, nullptr);
  }
}

}  // namespace orrery
