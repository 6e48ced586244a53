#pragma once

#include <cstdlib>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

namespace orrery::test {

// A separate folder for one test, deleted with all its files at the end: tests run side by side.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(folder_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return folder_.string(); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace orrery::test
