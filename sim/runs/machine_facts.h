#pragma once

#include <cstdint>
#include <string>

#include "sim/runs/room.h"

namespace orrery {

// Parts of this machine that commands need beyond the program itself. Paths are "" where a thing is missing.
struct MachineFacts {
  std::string rank_program, rank_version;  // orrery-rank, and the line that it prints: its libraries are there
  std::string cuda_program;                // orrery-rank-cuda
  std::string peers_plugin, viewer;
  std::string mpirun, mpi_version;  // on PATH
  std::int64_t cores = 1;           // that this process may use
  Room room;
  bool shared_folder = true;  // whether /dev/shm may be written
  std::string temporary;      // folder of temporary files
  std::int64_t gpus = 0;      // NVIDIA GPUs of the driver
  std::string cuda_said;      // the last line of orrery-rank-cuda --describe; "" where it was not asked
  std::string nccl;           // path of the library
  std::string display;        // value of WAYLAND_DISPLAY or DISPLAY
};

// Looks at this machine. Starts mpirun and the rank programs to print their versions, and nothing else; loads no
// library.
MachineFacts facts_here();

}  // namespace orrery
