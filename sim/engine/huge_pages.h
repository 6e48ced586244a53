#pragma once

#include <cstddef>

namespace orrery {

// Asks the operating system to back memory that has not been touched yet with huge pages, which saves page faults, and
// TLB misses when addresses far apart are written in turn. The request changes no simulated result. Memory smaller than
// one huge page stays as it is.
void prefer_huge_pages(void* data, std::size_t bytes);

}  // namespace orrery
