#pragma once

#include <cstdint>
#include <string>

#include "models/base/units.h"

namespace orrery {

// What there is of that without which mpirun and its ranks hang or die in ways that say nothing of the cause.
struct Room {
  std::int64_t files = 0;      // that a process may have open
  Bytes addresses = 0;         // that a process may map
  Bytes shared = 0, disk = 0;  // that are free in /dev/shm, and where temporary files lie
};

// To how many files the soft limit is raised at most.
inline constexpr std::uint64_t kMostFiles = 65536;

// Of this process and these folders; the soft limit of open files is raised as far as it may be. shared: "" = none.
Room room_here(const std::string& shared, const std::string& temporary);

// Throws Error with status 1 where that is not enough to start so many ranks.
void check_room(const Room& room, std::int64_t ranks, const std::string& temporary);

}  // namespace orrery
