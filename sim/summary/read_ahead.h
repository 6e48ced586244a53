#pragma once

#include <zlib.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace orrery {

// The text of a file, gzipped or not, in pieces of a MiB. From the second piece on a thread reads and decompresses up
// to four pieces ahead and counts lines, while the caller parses. Throws Error "file: what" for a file that cannot be
// opened.
class ReadAhead {
 public:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;
  static constexpr std::size_t kRoom = std::size_t{1} << 16;

  explicit ReadAhead(const std::string& path);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  // A piece of the file. Its text begins after kRoom bytes, so that the caller can put the unread end of the previous
  // piece directly before it.
  struct Piece {
    std::vector<char> text;  // buffer of kRoom + kPiece bytes
    std::size_t size = 0;    // bytes of text; 0 at the end of the file, or where the file cannot be read further
    std::size_t lines = 0;   // number of line breaks
    std::string failure;     // reason why the file cannot be read further, "" if it can
  };
  Piece next();
  void give_back(std::vector<char> text);  // returns the memory of a piece for use by a later piece

 private:
  void read(Piece& piece);
  void read_on();

  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> ready_;              // pieces read but not yet taken, in the order of the file
  std::vector<std::vector<char>> free_;  // buffers of pieces that the caller gave back, to be used again
  bool first_ = true, stop_ = false;
};

std::size_t line_breaks(std::string_view text);

}  // namespace orrery
