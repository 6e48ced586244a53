#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace orrery {

// Asks the kernel to use large pages for `bytes` bytes of memory. With ordinary pages, the page faults of filling a
// hundred megabytes take as long as computing the data. Nothing changes where the kernel has no large pages.
inline void ask_for_large_pages(void* memory, std::size_t bytes) {
  constexpr std::uintptr_t kLarge = 2 << 20;  // bytes of a large page on x86-64
  const auto begin = reinterpret_cast<std::uintptr_t>(memory), first = (begin + kLarge - 1) / kLarge * kLarge;
  if (bytes > first - begin) ::madvise(reinterpret_cast<void*>(first), bytes - (first - begin), MADV_HUGEPAGE);
}

}  // namespace orrery
