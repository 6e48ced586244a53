#include "sim/runs/machine_facts.h"

#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "models/base/installed.h"
#include "sim/runs/launch.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedFolder = "/dev/shm";
constexpr const char* kLibraryFolders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                           "/usr/local/lib", "/usr/local/cuda/lib64"};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The first or last line of what a command prints; "" if it prints nothing.
std::string printed_line(const std::string& command, bool last) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen((command + " 2>&1").c_str(), "r"), ::pclose);
  std::string text, line;
  std::array<char, 512> part{};
  while (pipe != nullptr && std::fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
  std::istringstream lines(text);
  for (std::string next; std::getline(lines, next);) {
    if (!next.empty() && (last || line.empty())) line = next;
  }
  return line;
}

std::string version_of(const std::string& program, const char* option) {
  return program.empty() ? "" : printed_line(fmt::format("'{}' {}", program, option), false);
}

// The path of a library, searched as the dynamic loader does; name: its file name, such as "libnccl.so.2".
std::string find_library(const std::string& name) {
  std::istringstream own(environment("LD_LIBRARY_PATH"));
  std::error_code unreadable;
  for (std::string folder; std::getline(own, folder, ':');) {
    if (!folder.empty() && fs::exists(fs::path(folder) / name, unreadable)) return folder + "/" + name;
  }
  for (const char* folder : kLibraryFolders) {
    if (fs::exists(fs::path(folder) / name, unreadable)) return fmt::format("{}/{}", folder, name);
  }
  return "";
}

// The number of device files /dev/nvidia0, /dev/nvidia1, ..., which the driver makes for GPUs.
std::int64_t count_gpus() {
  std::int64_t gpus = 0;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator("/dev", unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("nvidia") && name.size() > 6 && std::isdigit(static_cast<unsigned char>(name[6])) != 0) ++gpus;
  }
  return gpus;
}

}  // namespace

MachineFacts facts_here() {
  MachineFacts f;
  f.rank_program = companion("orrery-rank");
  f.rank_version = version_of(f.rank_program, "--version");
  f.cuda_program = companion("orrery-rank-cuda");
  f.peers_plugin = companion("orrery-peers.so");
  f.viewer = companion("orrery-view");
  if (f.viewer.empty()) f.viewer = find_on_path("orrery-view");
  f.mpirun = find_on_path("mpirun");
  f.mpi_version = version_of(f.mpirun, "--version");
  f.cores = std::thread::hardware_concurrency();
  f.shared_folder = ::access(kSharedFolder, W_OK) == 0;
  f.temporary = short_temporary();
  f.room = room_here(f.shared_folder ? kSharedFolder : "", f.temporary);
  f.gpus = count_gpus();
  if (!f.cuda_program.empty()) f.cuda_said = printed_line(fmt::format("'{}' --describe", f.cuda_program), true);
  f.nccl = find_library("libnccl.so.2");
  f.display = environment("WAYLAND_DISPLAY");
  if (f.display.empty()) f.display = environment("DISPLAY");
  return f;
}

}  // namespace orrery
