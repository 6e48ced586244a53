#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

// A program to start, with its arguments and the environment variables that it gets in addition to those of this
// process.
struct Command {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

// The arguments of orrery-rank (models/trace/trace_file.h describes their use).
struct RankArguments {
  std::string spec;
  std::vector<std::string> overrides;
  std::string folder;
  std::int64_t steps = 1;
  double hang_timeout = 0;      // 0: ranks do not watch each other for hangs
  std::int64_t mark_every = 1;  // GPU ranks time the tasks of each so many steps
  bool turns = false;           // whether the ranks run one by one
  std::int64_t first_step = 0;  // index of the first step to run, from the snapshots in the folder `snapshots`
  std::string snapshots;        // path of the folder with snapshots; "": none
};
std::vector<std::string> rank_arguments(const std::string& program, const RankArguments& arguments);

// The program that executes ranks on a device ("cpu", "cuda"): $ORRERY_RANK, else orrery-rank or orrery-rank-cuda
// beside this program or in ../exec. Throws Error if it is not there.
std::string find_rank_program(const std::string& device);

// The path of a program on PATH; "" where there is none.
std::string find_on_path(const std::string& name);

// The command of Open MPI's mpirun with n ranks on this machine. mpirun and its ranks keep all their files in
// `temporary` and `shared` ("": in their default folders). A rank that dies does not end the other ranks: the process
// that watches the ranks does. Throws Error if there is no mpirun on PATH.
Command mpirun(std::int64_t n, const std::vector<std::string>& rank, const std::string& temporary,
               const std::string& shared);

// The rank that a launcher (mpirun, srun) has given this process; -1: none.
std::int64_t launched_rank();

// The name of a folder, the same in all processes of the launcher's job and in no other job.
std::string job_folder();

// A new folder in `parent`, only for this user, removed with all that is in it, and locked (flock(2)) while this
// process lives. Throws Error if it cannot be made.
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

// Removes the folders that TemporaryFolder made for this user in `parent` and whose processes were killed: dead
// processes hold no lock. (A live process in another container holds its lock, though its process number is unknown
// here.)
void sweep_temporary_folders(const std::string& parent);

// $TMPDIR or /tmp. Open MPI binds a socket whose path is some 70 characters longer, and at most 107 are allowed
// (unix(7)): a long $TMPDIR is therefore not used.
std::string short_temporary();

}  // namespace orrery
