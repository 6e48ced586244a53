#include "models/base/input_file.h"

#include <sys/stat.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

[[noreturn]] void refuse_input(const std::string& path, const char* reason) {
  throw Error(fmt::format("{}: cannot be read: {}", path, reason));
}

}  // namespace

std::string read_input(const std::string& path, std::size_t most_bytes) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse_input(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) refuse_input(path, std::strerror(EISDIR));
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose_r);
  if (file == nullptr) refuse_input(path, std::strerror(errno));
  std::string text;
  std::array<char, 1 << 16> piece;
  for (int count = 0; (count = gzread(file.get(), piece.data(), piece.size())) != 0;) {
    if (count < 0) break;
    if (text.size() + static_cast<std::size_t>(count) > most_bytes)
      throw Error(fmt::format("{}: is larger than {} MiB{}", path, most_bytes >> 20,
                              gzdirect(file.get()) == 0 ? " when inflated" : ""));
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  int error = Z_OK;
  const char* reason = gzerror(file.get(), &error);
  if (error == Z_BUF_ERROR) throw Error(fmt::format("{}: is cut short: its last bytes are missing", path));
  if (error != Z_OK) refuse_input(path, error == Z_ERRNO ? std::strerror(errno) : reason);
  return text;
}

}  // namespace orrery
