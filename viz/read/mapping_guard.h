#pragma once

#include <cstddef>

namespace orrery {

// Guards a mapped file. When another program cuts the file short, reading the missing pages raises SIGBUS, which ends
// the program; under a guard these pages read as zeros instead, and shrunk() returns true. A fault outside all guarded
// mappings ends the program as usual. Any number of threads may create and destroy guards.
class MappingGuard {
 public:
  MappingGuard(const void* begin, std::size_t bytes);
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;
  ~MappingGuard();  // must run while the file is still mapped

  bool shrunk() const;

 private:
  struct Watched;
  friend struct GuardHandler;
  Watched* watched_;
};

}  // namespace orrery
