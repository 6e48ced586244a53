#include "sim/runs/doctor.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/runs/job.h"

namespace orrery {
namespace {

constexpr const char* kMpi = "run, calibrate, validate";
constexpr double kBytesOfMiB = 1048576;
constexpr double kNoLimit = 4.0e18;

Finding well(const char* name, std::string found, const char* needed_for) {
  return {name, Health::good, std::move(found), needed_for, ""};
}

std::string size_text(Bytes bytes) {
  const auto size = static_cast<double>(bytes);
  return size > kNoLimit ? "unlimited" : fmt::format("{:.0f} MiB", size / kBytesOfMiB);
}

// Checks one resource that limits the number of ranks. ranks: most ranks that the resource lets start; wanted: as many
// as a run may have on this machine.
Finding room_check(const char* name, const std::string& found, std::int64_t ranks, std::int64_t wanted,
                   const char* mend) {
  const std::string text = fmt::format("{}: {} rank{} at most", found, ranks, ranks == 1 ? "" : "s");
  if (ranks >= wanted) return well(name, found, kMpi);
  return {name, Health::lacking, text, kMpi, mend};
}

Finding mpi(const MachineFacts& f) {
  if (f.mpirun.empty())
    return {"MPI", Health::lacking, "no mpirun on PATH", kMpi, "install Open MPI: apt-get install openmpi-bin"};
  if (f.mpi_version.find("Open MPI") == std::string::npos && f.mpi_version.find("OpenRTE") == std::string::npos)
    return {"MPI", Health::lacking, fmt::format("{}: {}", f.mpirun, f.mpi_version), kMpi,
            "ranks are built with Open MPI; put its mpirun first on PATH"};
  return well("MPI", fmt::format("{}: {}", f.mpirun, f.mpi_version), kMpi);
}

Finding cpu_ranks(const MachineFacts& f) {
  if (f.rank_program.empty())
    return {"CPU ranks", Health::lacking, "no orrery-rank beside this program", kMpi,
            "build it where libopenmpi-dev and libopenblas-dev are installed, or install the package again"};
  if (f.rank_version.find("orrery-rank ") != 0)
    return {"CPU ranks", Health::lacking, fmt::format("{}: {}", f.rank_program, f.rank_version), kMpi,
            "install what it cannot load: apt-get install libopenmpi3 libopenblas0"};
  return well("CPU ranks", fmt::format("{}: {}", f.rank_program, f.rank_version), kMpi);
}

Finding plugin(const MachineFacts& f) {
  constexpr const char* kNeeds = "search under mpirun or srun";
  if (!f.peers_plugin.empty()) return well("search over MPI", f.peers_plugin, kNeeds);
  return {"search over MPI", Health::lacking, "no orrery-peers.so beside this program", kNeeds,
          "build it where libopenmpi-dev is installed, or install the package again"};
}

// The largest number of ranks that can start together if this one resource (limit) were the only limit.
std::int64_t ranks_by(const Room& room, std::int64_t Room::*limit) {
  constexpr std::int64_t kEnough = std::int64_t{1} << 60;
  Room alone{kEnough, kEnough, kEnough, kEnough};
  alone.*limit = room.*limit;
  return most_ranks(alone);
}

Finding slots(const MachineFacts& f) {
  return well("slots",
              fmt::format("{} core{}: runs of up to {} ranks; more by --ranks N", f.cores, f.cores == 1 ? "" : "s",
                          most_ranks_unasked(f.cores)),
              kMpi);
}

Finding shared_memory(const MachineFacts& f, std::int64_t wanted) {
  if (!f.shared_folder)
    return {"/dev/shm", Health::lacking, "is not there, or cannot be written", kMpi,
            "mount it: mount -t tmpfs tmpfs /dev/shm; in a container: --shm-size 1g"};
  return room_check("/dev/shm", size_text(f.room.shared) + " free", ranks_by(f.room, &Room::shared), wanted,
                    "mount -o remount,size=1g /dev/shm; in a container: --shm-size 1g");
}

// Checks whether the folder for temporary files can be written. If it can, returns `room`: the finding about the free
// space in that folder.
Finding temporary(const MachineFacts& f, Finding room) {
  if (f.temporary_writable) return room;
  return {"temporary files", Health::lacking, fmt::format("{} is not there, or cannot be written", f.temporary), kMpi,
          "make that folder, or set TMPDIR to another"};
}

Finding cuda(const MachineFacts& f) {
  constexpr const char* kNeeds = "run, calibrate and validate --device cuda";
  if (f.gpus == 0)
    return {"CUDA", Health::absent, "no NVIDIA GPU (/dev/nvidia0)", kNeeds,
            "on a machine with a GPU install its driver; in a container: --gpus all"};
  if (f.cuda_program.empty())
    return {"CUDA", Health::lacking, fmt::format("{} GPUs, no orrery-rank-cuda beside this program", f.gpus), kNeeds,
            "install the package orrery-cuda, or build the target cuda where the CUDA toolkit and NCCL are"};
  if (!f.cuda_works && f.cuda_said.find("shared libraries") != std::string::npos)
    return {"CUDA", Health::lacking, f.cuda_said, kNeeds,
            "install that library: libcublas and libnccl from NVIDIA's repository of packages, others from Debian's"};
  if (!f.cuda_works)
    return {"CUDA", Health::lacking, f.cuda_said, kNeeds, "install a driver that the CUDA libraries go with"};
  return well("CUDA", fmt::format("{} GPUs; {}", f.gpus, f.cuda_said), kNeeds);
}

Finding nccl(const MachineFacts& f) {
  constexpr const char* kNeeds = "--device cuda";
  if (!f.nccl.empty() || (f.gpus > 0 && f.cuda_works))
    return well("NCCL", f.nccl.empty() ? "found by orrery-rank-cuda" : f.nccl, kNeeds);
  return {"NCCL", f.gpus > 0 ? Health::lacking : Health::absent, "no libnccl.so.2", kNeeds,
          "install it beside the CUDA toolkit: apt-get install libnccl2, from NVIDIA's repository"};
}

Finding viewer(const MachineFacts& f) {
  if (!f.viewer.empty()) return well("viewer", f.viewer, "orrery-view");
  return {"viewer", Health::absent, "no orrery-view", "orrery-view",
          "install the package orrery-viewer, or build it where qt6-base-dev and qt6-svg-dev are"};
}

Finding display(const MachineFacts& f) {
  if (!f.display.empty()) return well("display", f.display, "orrery-view");
  return {"display", Health::absent, "neither DISPLAY nor WAYLAND_DISPLAY is set", "orrery-view",
          "ssh -X; or without one: orrery-view --screenshot step.png SPEC"};
}

}  // namespace

std::vector<Finding> diagnose(const MachineFacts& f) {
  const std::int64_t wanted = most_ranks_unasked(f.cores);
  const auto limited = [&](const char* name, const std::string& found, std::int64_t Room::*which, const char* mend) {
    return room_check(name, found, ranks_by(f.room, which), wanted, mend);
  };
  return {mpi(f),
          cpu_ranks(f),
          plugin(f),
          slots(f),
          limited("open files", fmt::format("{} a process", f.room.files), &Room::files, "ulimit -n 65536"),
          limited("addresses", size_text(f.room.addresses) + " a process", &Room::addresses, "ulimit -v unlimited"),
          shared_memory(f, wanted),
          temporary(f, limited("temporary files", fmt::format("{} free in {}", size_text(f.room.disk), f.temporary),
                               &Room::disk, "set TMPDIR to a folder with room")),
          cuda(f),
          nccl(f),
          viewer(f),
          display(f)};
}

}  // namespace orrery
