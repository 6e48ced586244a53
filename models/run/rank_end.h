#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery {

// Returns the name of the file in which the process that starts a rank notes the rank's process id and how the rank
// ended: "folder/rank_3.ended".
std::string ended_file(const std::string& folder, std::int64_t rank);

// The file in which the end of a rank is noted. It is created with its full size before the rank starts, so that a full
// disk cannot prevent the note.
class RankEndFile {
 public:
  explicit RankEndFile(const std::string& path);  // throws Error if the file cannot be created
  ~RankEndFile();
  RankEndFile(const RankEndFile&) = delete;
  RankEndFile& operator=(const RankEndFile&) = delete;
  void started(pid_t rank) noexcept;
  void ended(int wait_status) noexcept;  // notes that the rank ended. wait_status: as returned by waitpid(2)

 private:
  void write(std::string_view status) noexcept;
  int descriptor_;
  pid_t rank_ = 0;
};

struct RankEnd {
  std::int64_t pid = 0;       // process id; 0: the rank has not started
  std::optional<int> status;  // wait status (waitpid(2)) with which the rank ended; none: the rank has not ended
};
// Reads how a rank ended; if the file is absent or incomplete, all fields are empty.
RankEnd read_rank_end(const std::string& path);

// Returns the name of a signal: "SIGBUS"; "signal 64" if it has no name.
std::string signal_name(int signal);

// Returns a wait status (waitpid(2)) as words for a message: "was killed by SIGBUS (is /dev/shm or $TMPDIR full?)",
// "ended with status 127 (a program or library is missing)".
std::string end_text(int wait_status);

}  // namespace orrery
