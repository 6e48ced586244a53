#include "sim/runs/room.h"

#include <algorithm>

#include <sys/resource.h>

#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr Bytes kRoomKiB = 1024, kRoomMiB = 1024 * kRoomKiB;

// Resources that ranks need, measured with Open MPI 4.1 and OpenBLAS 0.3: with 48 open files allowed 4 ranks start,
// with 40 they do not; with 96, 16 ranks start. A rank maps 555 to 666 MB of addresses before its model, and OpenBLAS
// waits for ever where it cannot map memory. 4 ranks use 648 KiB of shared memory, 16 ranks 4.4 MiB.
constexpr std::int64_t kFiles = 32, kFilesOfRank = 4;
constexpr Bytes kAddresses = 640 * kRoomMiB;
constexpr Bytes kSharedAll = 512 * kRoomKiB, kSharedOfRank = 384 * kRoomKiB;
constexpr Bytes kDiskAll = kRoomMiB, kDiskOfRank = 64 * kRoomKiB;

constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

Bytes free_in(const std::string& folder) {
  if (folder.empty()) return kUnlimited;
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder, unknown);
  return unknown || space.available > static_cast<std::uintmax_t>(kUnlimited) ? kUnlimited
                                                                              : static_cast<Bytes>(space.available);
}

std::int64_t as_number(rlim_t limit) {
  return limit > static_cast<rlim_t>(kUnlimited) ? kUnlimited : static_cast<std::int64_t>(limit);
}

[[noreturn]] void refuse(const std::string& what, std::int64_t ranks, const std::string& needed) {
  throw Error(fmt::format("run: {}, {} ranks need {}", what, ranks, needed), 1);
}

std::string in_MiB(Bytes bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kRoomMiB); }

}  // namespace

Room room_here(const std::string& shared, const std::string& temporary) {
  rlimit files{}, addresses{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_AS, &addresses);
  // The soft limit is raised to kMostFiles at most, which is enough for any run: with a limit of 2^30, programs that
  // close every file that may be open would take minutes.
  if (const rlim_t enough = std::min<rlim_t>(files.rlim_max, kMostFiles); files.rlim_cur < enough) {
    const rlimit raised = {enough, files.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) files = raised;
  }
  return {as_number(files.rlim_cur), as_number(addresses.rlim_cur), free_in(shared), free_in(temporary)};
}

std::int64_t most_ranks(const Room& room) {
  if (room.addresses < kAddresses) return 0;
  const std::int64_t by_files = (room.files - kFiles) / kFilesOfRank;
  const std::int64_t by_shared = (room.shared - kSharedAll) / kSharedOfRank;
  const std::int64_t by_disk = (room.disk - kDiskAll) / kDiskOfRank;
  return std::max<std::int64_t>(0, std::min({by_files, by_shared, by_disk}));
}

void check_room(const Room& room, std::int64_t ranks, const std::string& temporary) {
  if (const std::int64_t needed = kFiles + kFilesOfRank * ranks; room.files < needed)
    refuse(fmt::format("a process may open {} files (ulimit -n)", room.files), ranks, fmt::format("{}", needed));
  if (room.addresses < kAddresses)
    refuse(fmt::format("a process may map {} of memory (ulimit -v)", in_MiB(room.addresses)), ranks,
           fmt::format("{} each, and their model", in_MiB(kAddresses)));
  if (const Bytes needed = kSharedAll + kSharedOfRank * ranks; room.shared < needed)
    refuse(fmt::format("{} are free in /dev/shm", in_MiB(room.shared)), ranks, in_MiB(needed));
  if (const Bytes needed = kDiskAll + kDiskOfRank * ranks; room.disk < needed)
    refuse(fmt::format("{} are free in {}", in_MiB(room.disk), temporary), ranks, in_MiB(needed) + "; set TMPDIR");
}

}  // namespace orrery
