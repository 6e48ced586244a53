#pragma once

#include <cstddef>

namespace orrery {

// Guards a mapped file. When another program cuts the file short, the kernel ends a program that reads the missing
// pages by SIGBUS; under a guard these pages read as zeros instead, and shrunk() says so. A fault outside any guarded
// mapping ends the program as usual. Guards of any number of threads may come and go.
class MappingGuard {
 public:
  MappingGuard(const void* begin, std::size_t bytes);
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;
  ~MappingGuard();  // must run before the file is unmapped

  bool shrunk() const;

 private:
  struct Watched;
  friend struct GuardHandler;
  Watched* watched_;
};

}  // namespace orrery
