#pragma once

#include <cstdint>
#include <string>

#include "models/base/units.h"

namespace orrery {

// Resources of which mpirun and its ranks need enough: without, they hang or die in ways that do not show the cause.
struct Room {
  std::int64_t files = 0;      // number of files that a process may open at the same time
  Bytes addresses = 0;         // bytes of address space that a process may map
  Bytes shared = 0, disk = 0;  // free bytes in /dev/shm, and on the disk of temporary files
};

// The number of open files to which the soft limit of this process is raised at most.
inline constexpr std::uint64_t kMostFiles = 65536;

// The limits of this process, and the free bytes in the folders `shared` ("": none) and `temporary`. Also raises the
// soft limit of open files as far as allowed, up to kMostFiles.
Room room_here(const std::string& shared, const std::string& temporary);

// The most ranks that can start together with the resources of `room`; 0: not one.
std::int64_t most_ranks(const Room& room);

// Throws Error with status 1 if the resources of `room` are too few to start `ranks` ranks.
void check_room(const Room& room, std::int64_t ranks, const std::string& temporary);

}  // namespace orrery
