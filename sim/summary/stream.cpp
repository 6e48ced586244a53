#include "sim/summary/stream.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr std::size_t kMostWindow = std::size_t{256} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // U+FEFF in UTF-8 (RFC 3629, section 6)

}  // namespace

TraceStream::TraceStream(const std::string& path) : path_(path), file_(path) {}

// Makes the piece's memory the new buffer, with the window (the text that is not consumed yet) copied directly before
// the piece's text.
void TraceStream::take_over(ReadAhead::Piece piece) {
  const std::size_t left = to_ - from_, begin = ReadAhead::kRoom - left;
  if (left > 0) std::memcpy(piece.text.data() + begin, buffer_.data() + from_, left);
  buffer_.swap(piece.text);
  from_ = begin;
  to_ = ReadAhead::kRoom + piece.size;
  file_.give_back(std::move(piece.text));
}

// Appends the piece's text to the window. This is for a window (text that is not consumed yet) that is longer than
// kRoom and so does not fit before the piece's text.
void TraceStream::append(ReadAhead::Piece piece) {
  std::memmove(buffer_.data(), buffer_.data() + from_, to_ - from_);
  to_ -= from_;
  from_ = 0;
  if (to_ + piece.size > kMostWindow)
    throw Error(place() + ": a value of more than 256 MiB begins here; the file is damaged");
  if (to_ + piece.size > buffer_.size()) buffer_.resize(2 * (to_ + piece.size));
  std::memcpy(buffer_.data() + to_, piece.text.data() + ReadAhead::kRoom, piece.size);
  to_ += piece.size;
  file_.give_back(std::move(piece.text));
}

bool TraceStream::more() {
  ReadAhead::Piece piece = file_.next();
  if (!piece.failure.empty())
    throw Error(fmt::format("{}: cannot be read further: {}; copy or record it again", place(), piece.failure));
  if (piece.size == 0) return false;
  const std::size_t lines = piece.lines;
  if (to_ - from_ <= ReadAhead::kRoom) {
    take_over(std::move(piece));
  } else {
    append(std::move(piece));
  }
  lines_ += lines;
  if (!std::exchange(begun_, true) && window().starts_with(kByteOrderMark)) consume(kByteOrderMark.size());
  return true;
}

std::string TraceStream::place() const { return fmt::format("{}:{}", path_, lines_ - line_breaks(window()) + 1); }

}  // namespace orrery
