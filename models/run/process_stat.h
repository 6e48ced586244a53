#pragma once

#include <istream>
#include <optional>

#include <sys/types.h>

namespace orrery {

// The state of a process as Linux reports it in /proc/PID/stat (proc(5)).
struct ProcessStat {
  char state = '?';  // 'R' running, 'S' sleeping, 'T' stopped, 'Z' ended and not yet waited for
  pid_t parent = 0;
};

// Returns the state of a process; nothing if there is no such process. If a process is reaped after its file was opened
// and before it is read, the read fails (ESRCH), which counts as no such process.
std::optional<ProcessStat> process_stat(pid_t pid);
std::optional<ProcessStat> process_stat(std::istream& file);

}  // namespace orrery
