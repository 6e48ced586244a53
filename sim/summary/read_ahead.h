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
// to four pieces ahead, while the caller parses. Throws Error "file: what" for a file that cannot be opened.
class ReadAhead {
 public:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;

  explicit ReadAhead(const std::string& path);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  // Copies the next piece to `to`, where there is room for kPiece bytes; returns its size, 0 at the end of the file or
  // where it cannot be read further: failure() says why.
  std::size_t next(char* to);
  std::string_view failure() const { return failure_; }  // empty: none

 private:
  struct Piece {
    std::vector<char> text;
    std::size_t size = 0;
    std::string failure;
  };
  void read(Piece& piece);
  void read_on();

  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::string failure_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> ready_;              // pieces in the order of the file
  std::vector<std::vector<char>> free_;  // texts of pieces that were taken
  bool first_ = true, stop_ = false;
};

}  // namespace orrery
