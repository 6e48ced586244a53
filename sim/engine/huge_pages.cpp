#include "sim/engine/huge_pages.h"

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace orrery {

void prefer_huge_pages(void* data, std::size_t bytes) {
  // The bytes of a huge page on x86-64. If huge pages have another size, Linux rounds the range to that.
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (at + kHugePage - 1) / kHugePage * kHugePage, end = (at + bytes) / kHugePage * kHugePage;
  if (begin < end) madvise(static_cast<std::byte*>(data) + (begin - at), end - begin, MADV_HUGEPAGE);
}

}  // namespace orrery
