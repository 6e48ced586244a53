#include "sim/runs/rank_session.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr Seconds kFarewell = 20;  // seconds for the process to end after its last job

}  // namespace

std::string last_line(const std::string& log) {
  std::ifstream in(log);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

RankSession::RankSession()
    : folder_(temporary_parent()),
      program_(find_rank_program("cuda")),
      pipe_(folder_.path() + "/jobs"),
      log_(folder_.path() + "/log") {
  sweep_temporary_folders(temporary_parent());
}

RankSession::~RankSession() { abandon(); }

void RankSession::start() {
  ::unlink(pipe_.c_str());
  if (::mkfifo(pipe_.c_str(), 0600) != 0)
    throw Error(fmt::format("{}: cannot be made: {}", pipe_, std::strerror(errno)), 1);
  // The pipe is opened for reading and writing: then opening it does not block until the other process opens it, and a
  // write does not fail if that process has died (fifo(7)).
  jobs_ = ::open(pipe_.c_str(), O_RDWR | O_CLOEXEC);
  if (jobs_ < 0) throw Error(fmt::format("{}: cannot be opened: {}", pipe_, std::strerror(errno)), 1);
  tree_.emplace(signals_);
  tree_->start({program_, "--jobs", pipe_}, {}, log_);
}

ProcessTree& RankSession::give(const std::vector<std::string>& words) {
  if (tree_ && tree_->status()) abandon();
  if (!tree_) start();
  const std::string line = nlohmann::json(words).dump() + '\n';
  if (::write(jobs_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw Error(fmt::format("{}: cannot be written: {}", pipe_, std::strerror(errno)), 1);
  return *tree_;
}

void RankSession::close_pipe() {
  if (jobs_ >= 0) ::close(jobs_);
  jobs_ = -1;
}

void RankSession::abandon() {
  close_pipe();
  tree_.reset();
}

void RankSession::end() {
  if (!tree_) return;
  close_pipe();
  for (const Seconds start = now(); !tree_->status() && now() < start + kFarewell;) tree_->wait(kLook);
  const std::optional<int> status = tree_->status();
  tree_.reset();
  if (!status) throw Error(fmt::format("{}: did not end after its last job", program_), 1);
  if (*status != 0) throw Error(fmt::format("{}: ended with status {}: {}", program_, *status, last_line(log_)), 1);
}

}  // namespace orrery
