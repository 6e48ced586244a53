#include "models/base/installed.h"

#include <filesystem>

namespace orrery {

namespace fs = std::filesystem;

std::string program_folder() { return fs::read_symlink("/proc/self/exe").parent_path().string(); }

std::vector<std::string> companion_folders(const std::string& here) {
  const fs::path prefix = fs::path(here).parent_path();
  return {here, (prefix / "exec").string(), (prefix / "lib" / "orrery").string()};
}

std::string companion(std::string_view name) {
  std::error_code unreadable;
  for (const std::string& folder : companion_folders(program_folder())) {
    const fs::path path = fs::path(folder) / name;
    if (fs::is_regular_file(path, unreadable)) return path.string();
  }
  return "";
}

std::string installed_examples() {
  std::error_code unreadable;
  const fs::path path = fs::path(program_folder()).parent_path() / "share" / "orrery" / "examples";
  return fs::is_directory(path, unreadable) ? path.string() : "";
}

std::string or_installed_example(const std::string& path) {
  std::error_code unreadable;
  const std::string folder = installed_examples();
  if (folder.empty() || path.empty() || fs::exists(path, unreadable)) return path;
  const std::string name = path.starts_with("examples/") ? path.substr(9) : path;
  const fs::path example = fs::path(folder) / name;
  const bool inside = name.find("..") == std::string::npos && !fs::path(name).is_absolute();
  return inside && fs::is_regular_file(example, unreadable) ? example.string() : path;
}

}  // namespace orrery
