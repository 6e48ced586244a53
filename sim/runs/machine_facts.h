#pragma once

#include <cstdint>
#include <string>

#include "sim/runs/room.h"

namespace orrery {

// Facts about this machine that commands need besides the program itself. A path is "" where the thing is missing.
struct MachineFacts {
  // The path of orrery-rank, and the line that it prints about its version: if there is a line, its libraries were
  // found.
  std::string rank_program, rank_version;
  std::string cuda_program;  // path of orrery-rank-cuda
  std::string peers_plugin, viewer;
  std::string mpirun, mpi_version;  // mpirun on PATH: its path and version
  std::int64_t cores = 1;           // CPU cores that this process may use
  Room room;
  bool shared_folder = true;  // whether /dev/shm may be written
  std::string temporary;      // path of the folder for temporary files
  bool temporary_writable = false;
  std::int64_t gpus = 0;    // number of NVIDIA GPUs that the driver shows
  std::string cuda_said;    // last line that orrery-rank-cuda --describe printed; "": it was not started
  bool cuda_works = false;  // whether orrery-rank-cuda --describe ended with status 0
  std::string nccl;         // path of the NCCL library
  std::string display;      // value of the variable WAYLAND_DISPLAY or DISPLAY
};

// Collects the facts about the machine that it runs on. Starts mpirun and the rank programs, only to print their
// versions; loads no library.
MachineFacts facts_here();

}  // namespace orrery
