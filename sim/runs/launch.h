#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

// A program to start, with arguments and with environment variables ("KEY=VALUE") beyond those of this process.
struct Command {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

// The command-line arguments of orrery-rank (models/trace/trace_file.h says how they are used).
struct RankArguments {
  std::string spec;
  std::vector<std::string> overrides;
  std::string folder;
  std::int64_t steps = 1;
  // Seconds in an op after which a rank counts as hung; 0: ranks do not watch each other for hangs.
  double hang_timeout = 0;
  std::int64_t mark_every = 1;  // GPU ranks time single tasks in every mark_every-th step
  bool turns = false;           // whether the ranks run one after another
  // Index of the first step to run; it starts from the snapshots in the folder `snapshots`.
  std::int64_t first_step = 0;
  std::string snapshots;  // path of the folder with snapshots; "": none
};
std::vector<std::string> rank_arguments(const std::string& program, const RankArguments& arguments);

// The path of the program that executes ranks on a device ("cpu", "cuda"): $ORRERY_RANK, else orrery-rank or
// orrery-rank-cuda in the folder of this program or in ../exec. Throws Error if there is no such file.
std::string find_rank_program(const std::string& device);

// The path of the program `name` in a folder of PATH; "" where there is none.
std::string find_on_path(const std::string& name);

// The folders of a run by mpirun: `temporary` for what ranks write, `sockets` for mpirun's own files (may be the same),
// `shared` for memory that ranks share ("": the library's default).
struct RunFolders {
  std::string temporary, sockets, shared;
};

// The command with which Open MPI's mpirun starts n ranks on this machine. rank: the command of one rank. mpirun and
// the ranks keep all their files in `folders`. A rank that dies does not end the other ranks; the process that watches
// the ranks does that. Throws Error if PATH has no mpirun.
Command mpirun(std::int64_t n, const std::vector<std::string>& rank, const RunFolders& folders);

// The rank number that a launcher (mpirun, srun) has given to this process; -1: none.
std::int64_t launched_rank();

// The path of a folder for a launched job: the same in all processes of the job, and different for every job.
std::string job_folder();

// A new folder in `parent` that only this user may read, locked (flock(2)) while this process lives. The destructor
// removes it with all files in it. Throws Error if it cannot be made.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

// Removes the folders in `parent` that this user's TemporaryFolder objects left because their processes were killed: a
// dead process holds no lock. (A live process in another container still holds its lock, though its process id is
// unknown here.)
void sweep_temporary_folders(const std::string& parent);

// The folder for temporary files: $TMPDIR, else /tmp.
std::string temporary_parent();

// The folder in which mpirun may keep its files beside a run's own folder: Open MPI binds a socket whose path is some
// 48 characters longer, and 107 are allowed at most (unix(7)). Returns `folder` if it is short enough, else /tmp.
std::string socket_parent(const std::string& folder);

}  // namespace orrery
