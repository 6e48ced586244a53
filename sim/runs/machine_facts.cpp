#include "sim/runs/machine_facts.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/installed.h"
#include "sim/runs/launch.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedFolder = "/dev/shm";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Runs a program and returns what it prints, on stdout or stderr, with its exit status; -1 if it cannot be started.
std::pair<std::string, int> output_of(const std::vector<std::string>& words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {"", -1};
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) ::posix_spawn_file_actions_adddup2(&files, ends[1], stream);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  std::string text;
  std::array<char, 512> part{};
  for (ssize_t n = 0; failure == 0 && (n = ::read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  if (failure != 0 || ::waitpid(child, &status, 0) != child) return {"", -1};
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string last_line_of(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string version_of(const std::string& program) {
  return program.empty() ? "" : first_line(output_of({program, "--version"}).first);
}

// The path of a library that the dynamic loader finds (ld.so(8)): in a folder of LD_LIBRARY_PATH, else in its cache;
// "": it finds none. name: the library's file name, such as "libnccl.so.2".
std::string find_library(const std::string& name) {
  std::istringstream own(environment("LD_LIBRARY_PATH"));
  std::error_code unreadable;
  for (std::string folder; std::getline(own, folder, ':');) {
    if (!folder.empty() && fs::exists(fs::path(folder) / name, unreadable)) return folder + "/" + name;
  }
  std::istringstream cache(output_of({"/sbin/ldconfig", "-p"}).first);
  for (std::string line; std::getline(cache, line);) {
    if (line.find(name + " (") != std::string::npos) return line.substr(line.rfind(' ') + 1);
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
  f.rank_version = version_of(f.rank_program);
  f.cuda_program = companion("orrery-rank-cuda");
  f.peers_plugin = companion("orrery-peers.so");
  f.viewer = companion("orrery-view");
  if (f.viewer.empty()) f.viewer = find_on_path("orrery-view");
  f.mpirun = find_on_path("mpirun");
  f.mpi_version = version_of(f.mpirun);
  f.cores = std::thread::hardware_concurrency();
  f.shared_folder = ::access(kSharedFolder, W_OK) == 0;
  f.temporary = temporary_parent();
  f.temporary_writable = ::access(f.temporary.c_str(), W_OK) == 0;
  f.room = room_here(f.shared_folder ? kSharedFolder : "", f.temporary);
  f.gpus = count_gpus();
  if (!f.cuda_program.empty()) {
    const auto [text, status] = output_of({f.cuda_program, "--describe"});
    f.cuda_said = last_line_of(text);
    f.cuda_works = status == 0;
  }
  f.nccl = find_library("libnccl.so.2");
  f.display = environment("WAYLAND_DISPLAY");
  if (f.display.empty()) f.display = environment("DISPLAY");
  return f;
}

}  // namespace orrery
