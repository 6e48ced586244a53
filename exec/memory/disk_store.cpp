#include "exec/memory/disk_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr Bytes kDiskBlock = 4096;

std::string folder() {
  const char* set = std::getenv("TMPDIR");
  return set != nullptr && *set != '\0' ? set : "/tmp";
}

[[noreturn]] void fail(const char* what) {
  throw Error(fmt::format("{}: {} for what is offloaded to disk: {}; set TMPDIR to a folder with room", folder(), what,
                          std::strerror(errno)),
              1);
}

// Opens a temporary file without a name; if the file system does not support that, removes the name immediately.
int open_nameless() {
  int file = ::open(folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string path = folder() + "/orrery_XXXXXX";
  file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) fail("no file");
  ::unlink(path.c_str());
  return file;
}

// Calls move(done), which moves some of the bytes after the first `done` ones and returns their number, until all are
// moved.
template <class Move>
void move_all(std::size_t bytes, const char* what, const Move& move) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = move(done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(what);
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace

DiskStore::~DiskStore() {
  if (file_ >= 0) ::close(file_);
}

std::int64_t DiskStore::take(Bytes bytes) {
  if (file_ < 0) file_ = open_nameless();
  const std::int64_t at = end_;
  end_ += ceil_div(bytes, kDiskBlock) * kDiskBlock;
  if (::ftruncate(file_, end_) != 0) fail("no room");
  return at;
}

void DiskStore::read(std::byte* to, std::int64_t at, std::size_t bytes) const {
  move_all(bytes, "cannot read", [&](std::size_t done) {
    return ::pread(file_, to + done, bytes - done, at + static_cast<std::int64_t>(done));
  });
}

void DiskStore::write(const std::byte* from, std::int64_t at, std::size_t bytes) const {
  move_all(bytes, "no room", [&](std::size_t done) {
    return ::pwrite(file_, from + done, bytes - done, at + static_cast<std::int64_t>(done));
  });
}

}  // namespace orrery
