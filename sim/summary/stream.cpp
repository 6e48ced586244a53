#include "sim/summary/stream.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr std::size_t kMostWindow = std::size_t{256} << 20;

// Counts by sums of bytes over blocks so short that a byte holds them, for which compilers emit vector instructions.
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

}  // namespace

TraceStream::TraceStream(const std::string& path) : path_(path), file_(path), buffer_(2 * ReadAhead::kPiece) {}

void TraceStream::make_room() {
  lines_ += line_breaks({buffer_.data(), from_});
  std::memmove(buffer_.data(), buffer_.data() + from_, to_ - from_);
  to_ -= from_;
  from_ = 0;
  if (to_ + ReadAhead::kPiece <= buffer_.size()) return;
  if (buffer_.size() >= kMostWindow)
    throw Error(place() + ": a value of more than 256 MiB begins here; the file is damaged");
  buffer_.resize(2 * buffer_.size());
}

bool TraceStream::more() {
  make_room();
  const std::size_t got = file_.next(buffer_.data() + to_);
  if (!file_.failure().empty())
    throw Error(fmt::format("{}: cannot be read further: {}; copy or record it again", place(), file_.failure()));
  to_ += got;
  return got > 0;
}

std::string TraceStream::place() const {
  return fmt::format("{}:{}", path_, lines_ + line_breaks({buffer_.data(), from_}) + 1);
}

}  // namespace orrery
