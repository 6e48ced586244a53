#pragma once

#include <istream>
#include <optional>

#include <sys/types.h>

namespace orrery {

// State of a process as Linux tells it (proc(5), /proc/PID/stat).
struct ProcessStat {
  char state = '?';  // 'R' running, 'S' sleeping, 'T' stopped, 'Z' ended and not yet waited for
  pid_t parent = 0;
};

// The state of a process; nothing when there is no such process. A process that is reaped between opening and reading
// its file makes the read fail (ESRCH), which is no error of ours.
std::optional<ProcessStat> process_stat(pid_t pid);
std::optional<ProcessStat> process_stat(std::istream& file);

}  // namespace orrery
