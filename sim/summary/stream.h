#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/summary/read_ahead.h"

namespace orrery {

// The text of a trace file, gzipped or not, read piece by piece: memory holds only the window, which is the text from
// the first byte that is not yet consumed to the last byte that is read. Throws Error "file: what" for a file that
// cannot be read, is damaged, or has a value of more than 256 MiB. A byte order mark before the text is passed over.
class TraceStream {
 public:
  explicit TraceStream(const std::string& path);

  std::string_view window() const { return {buffer_.data() + from_, to_ - from_}; }
  bool more();  // adds a piece to the window, which moves the window's text; returns false at the end of the file
  void consume(std::size_t bytes) { from_ += bytes; }
  std::string place() const;  // "file:line" of the window's first byte

 private:
  void take_over(ReadAhead::Piece piece);
  void append(ReadAhead::Piece piece);

  std::string path_;
  ReadAhead file_;
  std::vector<char> buffer_;
  std::size_t from_ = 0, to_ = 0;
  bool begun_ = false;     // whether the first piece is read
  std::size_t lines_ = 0;  // number of line breaks in the text read so far
};

}  // namespace orrery
