#include "sim/runs/launch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/installed.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestSocketFolder = 46;
// The beginning of the name of a TemporaryFolder; the id of the process that made the folder follows it.
constexpr char kFolderPrefix[] = "orrery-";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_program(const fs::path& path) { return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0; }

// Flags of mpirun for use in containers: ranks may not read each other's memory (vader's single copy), there is no
// network to look for, and there may be more ranks than cores, so that waiting ranks must yield and no rank is bound to
// a core.
constexpr std::string_view kMpirunFlags[] = {"--oversubscribe",
                                             "--enable-recovery",
                                             "--bind-to",
                                             "none",
                                             "--mca",
                                             "btl_vader_single_copy_mechanism",
                                             "none",
                                             "--mca",
                                             "pml",
                                             "ob1",
                                             "--mca",
                                             "btl",
                                             "self,vader",
                                             "--mca",
                                             "mpi_yield_when_idle",
                                             "1"};

constexpr const char* kRankVariables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
constexpr const char* kJobVariables[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_JOB_ID",
                                         "SLURM_STEP_ID"};

}  // namespace

std::string find_on_path(const std::string& name) {
  std::istringstream folders(variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path path = fs::path(folder.empty() ? "." : folder) / name;
    if (is_program(path)) return path.string();
  }
  return "";
}

std::vector<std::string> rank_arguments(const std::string& program, const RankArguments& a) {
  std::vector<std::string> words = {program, "--spec", fs::absolute(a.spec).string()};
  for (const std::string& o : a.overrides) words.insert(words.end(), {"--set", o});
  words.insert(words.end(), {"--out", a.folder, "--steps", fmt::format("{}", a.steps)});
  if (a.hang_timeout > 0) words.insert(words.end(), {"--hang-timeout", fmt::format("{}", a.hang_timeout)});
  if (a.mark_every > 1) words.insert(words.end(), {"--mark-every", fmt::format("{}", a.mark_every)});
  if (a.turns) words.emplace_back("--turns");
  if (!a.snapshots.empty())
    words.insert(words.end(), {"--snapshots", a.snapshots, "--first-step", fmt::format("{}", a.first_step)});
  return words;
}

std::string find_rank_program(const std::string& device) {
  if (std::string given = variable("ORRERY_RANK"); !given.empty()) {
    if (!is_program(given)) throw Error(fmt::format("ORRERY_RANK: {} is no program", given));
    return given;
  }
  const std::string name = device == "cuda" ? "orrery-rank-cuda" : "orrery-rank";
  if (std::string path = companion(name); is_program(path)) return path;
  throw Error(fmt::format("{}: is not beside {}; it is built where {}", name, program_folder(),
                          device == "cuda" ? "the CUDA toolkit and NCCL are"
                                           : "Open MPI and OpenBLAS are (libopenmpi-dev, libopenblas-dev)"),
              1);
}

Command mpirun(std::int64_t n, const std::vector<std::string>& rank, const RunFolders& folders) {
  Command launch;
  launch.arguments = {find_on_path("mpirun")};
  if (launch.arguments[0].empty()) throw Error("mpirun: is not on PATH; install Open MPI (openmpi-bin)", 1);
  if (::geteuid() == 0) launch.arguments.emplace_back("--allow-run-as-root");
  launch.arguments.insert(launch.arguments.end(), std::begin(kMpirunFlags), std::end(kMpirunFlags));
  if (!folders.shared.empty())
    launch.arguments.insert(launch.arguments.end(), {"--mca", "btl_vader_backing_directory", folders.shared});
  if (folders.sockets != folders.temporary)
    launch.arguments.insert(launch.arguments.end(), {"-x", "TMPDIR=" + folders.temporary});
  launch.arguments.insert(launch.arguments.end(), {"-n", fmt::format("{}", n)});
  launch.arguments.insert(launch.arguments.end(), rank.begin(), rank.end());
  launch.environment = {"TMPDIR=" + folders.sockets, "OPENBLAS_NUM_THREADS=1"};
  return launch;
}

std::int64_t launched_rank() {
  for (const char* name : kRankVariables) {
    if (const std::string value = variable(name); !value.empty()) return std::strtoll(value.c_str(), nullptr, 10);
  }
  return -1;
}

std::string job_folder() {
  std::string name = fmt::format("{}/orrery-{}", temporary_parent(), ::geteuid());
  for (const char* key : kJobVariables) {
    if (const std::string value = variable(key); !value.empty()) name += '-' + value;
  }
  return name;
}

TemporaryFolder::TemporaryFolder(const std::string& parent)
    : path_(fmt::format("{}/{}{}-XXXXXX", parent, kFolderPrefix, ::getpid())) {
  if (::mkdtemp(path_.data()) == nullptr)
    throw Error(fmt::format("{}: no folder can be made there: {}", parent, std::strerror(errno)), 1);
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0) ::flock(lock_, LOCK_EX | LOCK_NB);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // nobody is left to whom an error could be reported
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

namespace {

// The id of the process that made a temporary folder, as the folder's name says; 0 if the name says none. The folder of
// a launched job has the user's id in that place of its name, which does not count as a process.
pid_t maker_of(const std::string& name) {
  int length = 0;
  long pid = 0;
  const std::string form = fmt::format("{}%ld-%n", kFolderPrefix);
  if (std::sscanf(name.c_str(), form.c_str(), &pid, &length) != 1 || length == 0) return 0;
  // Whether the name ends with the six random characters that mkdtemp(3) appends.
  const bool six = name.size() == static_cast<std::size_t>(length) + 6;
  return six && pid > 0 && pid != static_cast<long>(::geteuid()) ? static_cast<pid_t>(pid) : 0;
}

bool is_stale(const fs::path& path) {
  const pid_t maker = maker_of(path.filename().string());
  struct stat status {};
  if (maker == 0 || ::lstat(path.c_str(), &status) != 0) return false;
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid()) return false;
  if (::kill(maker, 0) == 0 || errno != ESRCH) return false;
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return false;
  const bool free = ::flock(folder, LOCK_EX | LOCK_NB) == 0;
  ::close(folder);
  return free;
}

}  // namespace

void sweep_temporary_folders(const std::string& parent) {
  // Folders that cannot be read or removed belong to another user, and are skipped.
  std::error_code ignored;
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    if (is_stale(entry.path())) stale.push_back(entry.path());
  }
  for (const fs::path& path : stale) fs::remove_all(path, ignored);
}

std::string temporary_parent() {
  std::string given = variable("TMPDIR");
  return given.empty() ? "/tmp" : given;
}

std::string socket_parent(const std::string& folder) { return folder.size() <= kLongestSocketFolder ? folder : "/tmp"; }

}  // namespace orrery
