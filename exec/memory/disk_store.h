#pragma once

#include <cstddef>
#include <cstdint>

#include "models/base/units.h"

namespace orrery {

// Room on a disk for one rank: a file without a name in the folder for temporary files (TMPDIR, else /tmp), made at the
// first request. The file disappears with the process, however that ends. Bytes that were never written are zeros.
// Several threads may read and write different bytes at once. Throws Error when there is no room left, or the disk
// fails.
class DiskStore {
 public:
  DiskStore() = default;
  ~DiskStore();
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  std::int64_t take(Bytes bytes);  // returns the offset of the new bytes
  void read(std::byte* to, std::int64_t at, std::size_t bytes) const;
  void write(const std::byte* from, std::int64_t at, std::size_t bytes) const;
  Bytes taken() const { return end_; }

 private:
  int file_ = -1;
  Bytes end_ = 0;
};

}  // namespace orrery
