#pragma once

#include <cstdint>
#include <string>

#include "models/base/units.h"

namespace orrery {

// Resources that, where they are short, make mpirun and its ranks hang or die in ways that do not show the cause.
struct Room {
  std::int64_t files = 0;      // files that a process may have open
  Bytes addresses = 0;         // bytes of addresses that a process may map
  Bytes shared = 0, disk = 0;  // bytes that are free in /dev/shm, and on the disk of temporary files
};

// The number of open files to which the soft limit is raised at most.
inline constexpr std::uint64_t kMostFiles = 65536;

// The limits of this process and free bytes of these folders; also raises the soft limit of open files as far as it
// may. shared: "" = none.
Room room_here(const std::string& shared, const std::string& temporary);

// The most ranks that these limits let start together; 0: not one.
std::int64_t most_ranks(const Room& room);

// Throws Error with status 1 where these limits are too low to start so many ranks.
void check_room(const Room& room, std::int64_t ranks, const std::string& temporary);

}  // namespace orrery
