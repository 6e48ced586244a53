#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "sim/kernels/kernel_rows.h"
#include "tests/fuzz/fuzz.h"

// Reads a table of measured kernels, whose GPU is told by the file's name.
void orrery::fuzz::read_kernel_rows(std::string_view bytes) {
  static const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("h100-sxm_fuzz_{}.csv", ::getpid());
  std::ofstream(path) << bytes;
  KernelRows rows;
  try {
    orrery::read_kernel_rows(path, rows);
  } catch (...) {
    std::filesystem::remove(path);
    throw;
  }
  std::filesystem::remove(path);
}
