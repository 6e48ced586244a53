#pragma once

#include <cstddef>

namespace orrery {

// Asks the system to back memory that has not been touched yet with huge pages, for fewer page faults, and fewer TLB
// misses when addresses far apart are written in turn. It is a hint that changes no result. Memory smaller than one
// huge page stays as it is.
void prefer_huge_pages(void* data, std::size_t bytes);

}  // namespace orrery
