// Runs a reader on every file of a folder:  fuzz_replay READER FOLDER
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

int replay(const orrery::fuzz::Reader& reader, const fs::path& folder) {
  const std::vector<fs::path> files = files_of(folder);
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    std::printf("%s: %zu bytes\n", file.filename().c_str(), bytes.size());
    std::fflush(stdout);  // the last line names the file that ended the program
    orrery::fuzz::take(bytes, reader.read);
  }
  return files.empty() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto known = orrery::fuzz::readers();
  const auto reader =
      std::find_if(known.begin(), known.end(), [&](const auto& r) { return argc == 3 && r.name == argv[1]; });
  if (reader == known.end()) {
    std::fputs("usage: fuzz_replay READER FOLDER\n", stderr);
    return 2;
  }
  return replay(*reader, argv[2]);
} catch (const std::exception& e) {
  std::fprintf(stderr, "fuzz_replay: an exception escaped: %s\n", e.what());
  return 1;
}
