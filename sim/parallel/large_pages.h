#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace orrery {

// Asks the kernel for large pages in `bytes` bytes of memory: filling a hundred megabytes page by page takes as long as
// computing what fills them. Nothing changes where the kernel has none.
inline void ask_for_large_pages(void* memory, std::size_t bytes) {
  constexpr std::uintptr_t kLarge = 2 << 20;  // bytes of a large page on x86-64
  const auto begin = reinterpret_cast<std::uintptr_t>(memory), first = (begin + kLarge - 1) / kLarge * kLarge;
  if (bytes > first - begin) ::madvise(reinterpret_cast<void*>(first), bytes - (first - begin), MADV_HUGEPAGE);
}

}  // namespace orrery
