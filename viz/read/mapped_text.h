#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "viz/read/mapping_guard.h"

namespace orrery {

// Called with the part of the work that is done, 0 to 1; returns whether to go on. Where it returns false, the work
// throws Cancelled.
using LoadProgress = std::function<bool(double)>;
struct Cancelled {};

// A file's bytes, mapped instead of read into memory; a gzip file is inflated into a nameless temporary file first. The
// part of a cut or corrupt gzip file before the fault is kept, and `damage` says so. `damage` also says so when another
// program cuts the file short while it is mapped and the missing part is read: it reads as zeros. Written by hand:
// boost::iostreams maps a file by its name, and the inflated file has none; the program dies where a file is cut short.
class MappedText {
 public:
  // Throws Error "path: cannot be read: reason".
  explicit MappedText(const std::string& path, const LoadProgress& progress = {});
  MappedText(const MappedText&) = delete;
  MappedText& operator=(const MappedText&) = delete;
  ~MappedText();

  std::string_view text() const { return {data_, size_}; }
  std::string damage() const;

 private:
  int inflate(int file, const std::string& path, const LoadProgress& progress);

  const char* data_ = nullptr;
  std::size_t size_ = 0;
  std::string damage_;
  std::unique_ptr<const MappingGuard> guard_;  // destroyed before the mapping
};

// The first bytes of a file, inflated if it is compressed; nothing more is read. Throws as MappedText does.
std::string beginning_of(const std::string& path, std::size_t bytes);

}  // namespace orrery
