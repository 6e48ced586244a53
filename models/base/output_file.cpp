#include "models/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr int kGzip = 15 + 16;  // window bits for deflateInit2 of zlib.h: the largest window (15), in gzip format (16)
constexpr int kMemory = 8;      // memory level of deflateInit2 in zlib.h: its default
constexpr mode_t kMode = 0666;  // mode of new files, less the umask

bool is_regular_or_absent(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

}  // namespace

struct OutputFile::State {
  std::string path;       // the path as the user wrote it
  std::string target;     // the output file's path with symbolic links resolved
  std::string temporary;  // temporary file in the target's folder; "": text is written to the target itself
  int descriptor = -1;
  // whether the temporary file has its name in the folder; without it the file is known by `descriptor` only
  // (O_TMPFILE)
  bool named = false;
  bool compressed = false;
  z_stream deflater{};

  ~State() {
    if (compressed) deflateEnd(&deflater);
    if (descriptor >= 0) ::close(descriptor);
    if (named) ::unlink(temporary.c_str());
  }

  [[noreturn]] void fail() const { throw Error(fmt::format("{}: cannot write: {}", path, std::strerror(errno)), 1); }

  void open() {
    target = path;
    if (!is_regular_or_absent(path)) {
      descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (descriptor < 0) fail();
      return;
    }
    std::error_code no_such_file;
    const fs::path behind = fs::canonical(path, no_such_file);
    if (!no_such_file) target = behind.string();
    if (::access(target.c_str(), F_OK) == 0 && ::access(target.c_str(), W_OK) != 0) fail();
    temporary = fmt::format("{}.{}.tmp", target, ::getpid());
    const fs::path folder = fs::path(target).parent_path();
    descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode);
    if (descriptor >= 0) return;
    // A file of this name may have been left by a killed process with the same process id; in a shared folder the name
    // may be a link that somebody else made, so it is removed first.
    ::unlink(temporary.c_str());
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode);
    if (descriptor < 0) fail();
    named = true;
  }

  void put(const char* bytes, std::size_t count) {
    while (count > 0) {
      const ssize_t written = ::write(descriptor, bytes, count);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      bytes += written;
      count -= static_cast<std::size_t>(written);
    }
  }

  void deflate_some(std::string_view text, int flush) {
    std::array<unsigned char, 1 << 16> out;
    // zlib does not write to its input, but its type says so (const) only when ZLIB_CONST is defined.
    deflater.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
    deflater.avail_in = static_cast<unsigned>(text.size());
    do {
      deflater.next_out = out.data();
      deflater.avail_out = static_cast<unsigned>(out.size());
      [[maybe_unused]] const int status = ::deflate(&deflater, flush);
      assert(status != Z_STREAM_ERROR);
      put(reinterpret_cast<const char*>(out.data()), out.size() - deflater.avail_out);
    } while (deflater.avail_out == 0);
  }

  // Gives the unnamed temporary file its name, through its descriptor (open(2), O_TMPFILE). linkat() never replaces an
  // existing file, so the target gets its name by rename() afterwards.
  void give_name() {
    const std::string open_file = fmt::format("/proc/self/fd/{}", descriptor);
    ::unlink(temporary.c_str());
    if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0) fail();
    named = true;
  }

  void finish() {
    const bool in_place = temporary.empty();
    if (!in_place && !named) give_name();
    if (::close(std::exchange(descriptor, -1)) != 0) fail();  // some file systems report a full disk only here
    if (in_place) return;
    if (::rename(temporary.c_str(), target.c_str()) != 0) fail();
    named = false;
  }
};

OutputFile::OutputFile(std::string path) : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
  state_->open();
  if (!state_->path.ends_with(".gz")) return;
  state_->compressed =
      deflateInit2(&state_->deflater, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) == Z_OK;
  // The call fails only for lack of memory: its other errors in zlib.h, wrong parameters and a wrong version, are
  // impossible.
  if (!state_->compressed) throw std::bad_alloc();
}

OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

void OutputFile::write(std::string_view text) {
  constexpr std::size_t kMost = 1U << 30;  // zlib counts bytes in 32 bits, so longer text is compressed in pieces
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), kMost))) {
    const std::string_view piece = text.substr(0, kMost);
    if (state_->compressed)
      state_->deflate_some(piece, Z_NO_FLUSH);
    else
      state_->put(piece.data(), piece.size());
  }
}

void OutputFile::commit() {
  if (state_->compressed) state_->deflate_some({}, Z_FINISH);
  state_->finish();
}

}  // namespace orrery
