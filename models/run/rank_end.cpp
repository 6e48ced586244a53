#include "models/run/rank_end.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr std::string_view kNotEnded = "-";

constexpr std::size_t kLength = 24;  // number of bytes of the file that notes a rank's end

struct Hint {
  int number;
  const char* text;
};
// These tables have explanations of signals, from signal(7), and of exit statuses, as a shell and ld.so(8) use them.
constexpr Hint kSignals[] = {{SIGKILL, " (by the kernel where memory ran out, or by somebody)"},
                             {SIGBUS, " (is /dev/shm or $TMPDIR full?)"},
                             {SIGXCPU, " (the limit of processor time, ulimit -t)"},
                             {SIGXFSZ, " (the limit of a file's size, ulimit -f)"}};
constexpr Hint kStatuses[] = {{126, " (it cannot be executed)"}, {127, " (a program or library is missing)"}};

template <std::size_t n>
std::string hint(const Hint (&hints)[n], int number) {
  for (const Hint& h : hints) {
    if (h.number == number) return h.text;
  }
  return "";
}

}  // namespace

std::string ended_file(const std::string& folder, std::int64_t rank) {
  return fmt::format("{}/rank_{}.ended", folder, rank);
}

RankEndFile::RankEndFile(const std::string& path)
    : descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) {
  if (descriptor_ < 0 || ::posix_fallocate(descriptor_, 0, kLength) != 0)
    throw Error(fmt::format("{}: cannot be made: {}", path, std::strerror(errno)), 1);
}

RankEndFile::~RankEndFile() { ::close(descriptor_); }

// Writes the rank's process id and its status in one call; the text's length is always the same, so that a new status
// replaces the old one completely.
void RankEndFile::write(std::string_view status) noexcept {
  std::array<char, kLength> text;
  text.fill(' ');
  fmt::format_to_n(text.begin(), kLength - 1, "{} {}", rank_, status);
  text.back() = '\n';
  [[maybe_unused]] const ssize_t written = ::pwrite(descriptor_, text.data(), text.size(), 0);
}

void RankEndFile::started(pid_t rank) noexcept {
  rank_ = rank;
  write(kNotEnded);
}

void RankEndFile::ended(int wait_status) noexcept { write(fmt::format_int(wait_status).c_str()); }

RankEnd read_rank_end(const std::string& path) {
  std::ifstream in(path);
  RankEnd end;
  std::string status;
  if (in >> end.pid >> status && status != kNotEnded) end.status = std::atoi(status.c_str());
  return end;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string end_text(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return fmt::format("was killed by {}{}", signal_name(signal), hint(kSignals, signal));
  }
  const int status = WEXITSTATUS(wait_status);
  return fmt::format("ended with status {}{}", status, hint(kStatuses, status));
}

}  // namespace orrery
