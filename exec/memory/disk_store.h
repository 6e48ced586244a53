#pragma once

#include <cstddef>
#include <cstdint>

#include "models/base/units.h"

namespace orrery {

// Disk memory of one rank: a file without a name in the folder for temporary files (TMPDIR, else /tmp), created at the
// first request. The file disappears when the process ends, even after a crash. Bytes that were never written are
// zeros. Several threads may read and write different bytes at the same time. Throws Error if the disk is full or
// fails.
class DiskStore {
 public:
  DiskStore() = default;
  ~DiskStore();
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  std::int64_t take(Bytes bytes);  // allocates bytes and returns their offset in the file
  void read(std::byte* to, std::int64_t at, std::size_t bytes) const;
  void write(const std::byte* from, std::int64_t at, std::size_t bytes) const;
  Bytes taken() const { return end_; }

 private:
  int file_ = -1;
  Bytes end_ = 0;
};

}  // namespace orrery
