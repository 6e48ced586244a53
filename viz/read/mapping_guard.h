#pragma once

#include <cstddef>

namespace orrery {

// Watches over a mapped file while it lives. Where somebody else cuts the file short, the kernel ends who reads the
// missing pages by SIGBUS; under a guard these pages read as zeros instead, and shrunk() says so. A fault outside any
// guarded mapping ends the program as ever. Guards of any number of threads may come and go.
class MappingGuard {
 public:
  MappingGuard(const void* begin, std::size_t bytes);
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;
  ~MappingGuard();  // before the mapping goes

  bool shrunk() const;

 private:
  struct Watched;
  friend struct GuardHandler;
  Watched* watched_;
};

}  // namespace orrery
