#pragma once

#include <cstddef>

namespace orrery {

// Asks the system to back memory that has not been touched yet with huge pages: fewer faults, and fewer misses of the
// address cache when many places are written in turn. This is a hint: without huge pages nothing changes. Memory
// smaller than one huge page stays as it is.
void prefer_huge_pages(void* data, std::size_t bytes);

}  // namespace orrery
