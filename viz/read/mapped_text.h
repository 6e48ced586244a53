#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "viz/read/mapping_guard.h"

namespace orrery {

// A function that is called while a file is opened, with the finished share of the work (0 to 1). If it returns false,
// opening ends with the exception Cancelled.
using LoadProgress = std::function<bool(double)>;
struct Cancelled {};

// A file's bytes, mapped instead of read into memory; a gzip file is first inflated into a temporary file without a
// name. If a gzip file is cut or corrupt, the part before the fault is used; if another program cuts the file short
// while it is mapped, the missing part reads as zeros. In both cases `damage` has a text about the fault. The class is
// written by hand because boost::iostreams maps a file by its name, which the inflated file does not have, and because
// with boost::iostreams the program dies if a file is cut short.
class MappedText {
 public:
  // Maps a file into memory. Throws Error "path: cannot be read: reason".
  explicit MappedText(const std::string& path, const LoadProgress& progress = {});
  MappedText(const MappedText&) = delete;
  MappedText& operator=(const MappedText&) = delete;
  ~MappedText();

  // Returns the text, without a byte order mark at its begin.
  std::string_view text() const { return {data_ + mark_, size_ - mark_}; }
  std::string damage() const;

 private:
  int inflate(int file, const std::string& path, const LoadProgress& progress);

  const char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mark_ = 0;  // bytes of the mark
  std::string damage_;
  // guards the mapping against a file that shrinks; destroyed before the mapping
  std::unique_ptr<const MappingGuard> guard_;
};

// Returns the first bytes of a file's text, inflated if it is compressed; the rest is not read. Throws as MappedText
// does.
std::string beginning_of(const std::string& path, std::size_t bytes);

}  // namespace orrery
