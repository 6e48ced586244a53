#include "sim/summary/read_ahead.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr std::size_t kMostAhead = 4;  // pieces

}  // namespace

ReadAhead::ReadAhead(const std::string& path) : file_(nullptr, gzclose_r) {
  struct stat status {};
  const bool known = ::stat(path.c_str(), &status) == 0;
  if (known && S_ISDIR(status.st_mode)) errno = EISDIR;
  if (known && !S_ISDIR(status.st_mode)) file_.reset(gzopen(path.c_str(), "rb"));
  if (file_ == nullptr) throw Error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  gzbuffer(file_.get(), 1 << 17);
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ReadAhead::read(Piece& piece) {
  piece.text.resize(kPiece);
  const int got = gzread(file_.get(), piece.text.data(), static_cast<unsigned>(kPiece));
  int error = Z_OK;
  const char* const reason = gzerror(file_.get(), &error);
  if (error == Z_BUF_ERROR)
    piece.failure = "its compressed data is cut short";
  else if (got < 0)
    piece.failure = error == Z_ERRNO ? std::strerror(errno) : reason;
  piece.size = piece.failure.empty() ? static_cast<std::size_t>(got) : 0;
}

// The thread: reads pieces until the file ends or the caller stops.
void ReadAhead::read_on() {
  while (true) {
    Piece piece;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || ready_.size() < kMostAhead; });
      if (stop_) return;
      if (!free_.empty()) {
        piece.text = std::move(free_.back());
        free_.pop_back();
      }
    }
    read(piece);
    const bool last = piece.size == 0;
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(piece));
    }
    changed_.notify_all();
    if (last) return;
  }
}

std::size_t ReadAhead::next(char* to) {
  Piece piece;
  if (first_) {
    read(piece);
    first_ = false;
    if (piece.size == kPiece) thread_ = std::thread([this] { read_on(); });
  } else if (thread_.joinable()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty(); });
    if (ready_.front().size == 0) {  // stays, so that the end of the file is told again
      failure_ = ready_.front().failure;
      return 0;
    }
    piece = std::move(ready_.front());
    ready_.pop_front();
  } else {
    read(piece);
  }
  failure_ = piece.failure;
  std::memcpy(to, piece.text.data(), piece.size);
  const std::size_t size = piece.size;
  if (thread_.joinable()) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(piece.text));
  }
  changed_.notify_all();
  return size;
}

}  // namespace orrery
