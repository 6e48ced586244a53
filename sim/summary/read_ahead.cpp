#include "sim/summary/read_ahead.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr std::size_t kMostAhead = 4;  // the most pieces that are read before the caller asks for them

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
  piece.text.resize(kRoom + kPiece);
  char* const text = piece.text.data() + kRoom;
  const int got = gzread(file_.get(), text, static_cast<unsigned>(kPiece));
  int error = Z_OK;
  const char* const reason = gzerror(file_.get(), &error);
  if (error == Z_BUF_ERROR)
    piece.failure = "its compressed data is cut short";
  else if (got < 0)
    piece.failure = error == Z_ERRNO ? std::strerror(errno) : reason;
  piece.size = piece.failure.empty() ? static_cast<std::size_t>(got) : 0;
  piece.lines = line_breaks({text, piece.size});
}

// The function that the thread runs: reads pieces until the file ends or the caller stops.
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

ReadAhead::Piece ReadAhead::next() {
  Piece piece;
  if (!thread_.joinable()) {
    read(piece);
    if (first_ && piece.size == kPiece) thread_ = std::thread([this] { read_on(); });
    first_ = false;
    return piece;
  }
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty(); });
    // an empty piece marks the end of the file and is kept, so that every further call returns it too
    if (ready_.front().size == 0) return ready_.front();
    piece = std::move(ready_.front());
    ready_.pop_front();
  }
  changed_.notify_all();
  return piece;
}

void ReadAhead::give_back(std::vector<char> text) {
  if (text.size() != kRoom + kPiece) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(text));
}

// Counts line breaks in sums of one byte each, over blocks so short that no sum overflows, since compilers emit vector
// instructions for that.
std::size_t line_breaks(std::string_view text) {
  static constexpr std::size_t kBlock = 128;
  std::size_t count = 0;
  for (; text.size() >= kBlock; text.remove_prefix(kBlock)) {
    std::uint8_t in_block = 0;
    for (std::size_t i = 0; i < kBlock; ++i) in_block = static_cast<std::uint8_t>(in_block + (text[i] == '\n'));
    count += in_block;
  }
  return count + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace orrery
