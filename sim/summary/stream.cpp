#include "sim/summary/stream.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr std::size_t kStreamPiece = std::size_t{1} << 20;
constexpr std::size_t kMostWindow = std::size_t{256} << 20;

}  // namespace

TraceStream::TraceStream(const std::string& path) : path_(path), file_(nullptr, gzclose_r), buffer_(2 * kStreamPiece) {
  struct stat status {};
  const bool known = ::stat(path.c_str(), &status) == 0;
  if (known && S_ISDIR(status.st_mode)) errno = EISDIR;
  if (known && !S_ISDIR(status.st_mode)) file_.reset(gzopen(path.c_str(), "rb"));
  if (file_ == nullptr) throw Error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  gzbuffer(file_.get(), 1 << 17);
}

void TraceStream::make_room() {
  const char* const begin = buffer_.data();
  lines_ += static_cast<std::size_t>(std::count(begin, begin + from_, '\n'));
  std::memmove(buffer_.data(), begin + from_, to_ - from_);
  to_ -= from_;
  from_ = 0;
  if (to_ + kStreamPiece <= buffer_.size()) return;
  if (buffer_.size() >= kMostWindow)
    throw Error(place() + ": a value of more than 256 MiB begins here; the file is damaged");
  buffer_.resize(2 * buffer_.size());
}

bool TraceStream::more() {
  make_room();
  const int got = gzread(file_.get(), buffer_.data() + to_, static_cast<unsigned>(kStreamPiece));
  int error = Z_OK;
  const char* const reason = gzerror(file_.get(), &error);
  if (got < 0 || error == Z_BUF_ERROR) {
    const std::string_view what = error == Z_BUF_ERROR ? "its compressed data is cut short"
                                  : error == Z_ERRNO   ? std::string_view(std::strerror(errno))
                                                       : std::string_view(reason);
    throw Error(fmt::format("{}: cannot be read further: {}; copy or record it again", place(), what));
  }
  to_ += static_cast<std::size_t>(got);
  return got > 0;
}

std::string TraceStream::place() const {
  const auto breaks = std::count(buffer_.data(), buffer_.data() + from_, '\n');
  return fmt::format("{}:{}", path_, lines_ + static_cast<std::size_t>(breaks) + 1);
}

}  // namespace orrery
