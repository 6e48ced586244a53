#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "viz/read/mapping_guard.h"

namespace orrery {

// Told how much of the work is done, 0 to 1; returns whether to go on. Where it returns false, the work throws
// Cancelled.
using LoadProgress = std::function<bool(double)>;
struct Cancelled {};

// A file's bytes in address space, not in memory: mapped, and where gzip has compressed them inflated into a nameless
// temporary file first. What a cut or corrupt gzip file held up to the fault is kept, and `damage` says so; so it does
// where somebody else cuts the file short while it is mapped, from when the missing part is looked at: it reads as
// zeros.
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
  std::unique_ptr<const MappingGuard> guard_;  // goes before the mapping
};

// The first bytes of a file, inflated where it is compressed; nothing more is read. Throws as MappedText does.
std::string beginning_of(const std::string& path, std::size_t bytes);

}  // namespace orrery
