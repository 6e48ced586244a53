#include "viz/read/mapped_text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "models/base/error.h"

namespace orrery {
namespace {

// Limits of decompression, against zip bombs: gzip shrinks traces by a factor of 10 to 40, a file of zeros by 1000.
constexpr off_t kMostInflation = 200, kLeastInflated = off_t{256} << 20;

[[noreturn]] void unreadable(const std::string& path, const char* reason) {
  throw Error(path + ": cannot be read: " + reason);
}

struct Descriptor {
  explicit Descriptor(int descriptor) : value(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value >= 0) close(value);
  }
  int value;
};

int open_regular(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) unreadable(path, std::strerror(errno));
  struct stat about {};
  const bool known = fstat(file, &about) == 0;
  if (known && S_ISREG(about.st_mode)) return file;
  const char* const reason = known ? "it is no regular file" : std::strerror(errno);
  close(file);
  unreadable(path, reason);
}

int nameless_file() {
  const char* folder = std::getenv("TMPDIR");
  std::string name = std::string(folder == nullptr ? "/tmp" : folder) + "/orrery-view-XXXXXX";
  const int file = mkstemp(name.data());
  if (file >= 0) unlink(name.c_str());
  return file;
}

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // U+FEFF in UTF-8 (RFC 3629, section 6)

// Returns the bytes of the byte order mark that a text begins with.
std::size_t mark_of(std::string_view text) { return text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; }

}  // namespace

// Inflates a gzip file, from its beginning, into a new temporary file without a name.
int MappedText::inflate(int file, const std::string& path, const LoadProgress& progress) {
  struct stat about {};
  fstat(file, &about);
  const gzFile in = gzdopen(dup(file), "rb");
  if (in == nullptr) unreadable(path, "out of memory");
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> closer(in, gzclose);
  gzbuffer(in, 1 << 18);
  const int out = nameless_file();
  if (out < 0) unreadable(path, "no room for its inflated form in the temporary folder");
  std::vector<char> piece(1 << 20);
  off_t written = 0;
  while (true) {
    const int got = gzread(in, piece.data(), static_cast<unsigned>(piece.size()));
    written += got > 0 ? got : 0;
    if (written > std::max(kLeastInflated, kMostInflation * about.st_size)) {
      close(out);
      unreadable(path, "it inflates to more than 200 times its size");
    }
    if (got > 0 && write(out, piece.data(), static_cast<std::size_t>(got)) != got) {
      close(out);
      unreadable(path, "no room for its inflated form in the temporary folder");
    }
    int error = Z_OK;
    gzerror(in, &error);
    if (got < 0 || error == Z_BUF_ERROR) damage_ = "the compressed data is cut short or damaged: read up to there";
    if (got <= 0) return out;
    const double share = static_cast<double>(gzoffset(in)) / static_cast<double>(about.st_size + 1);
    if (progress && !progress(share)) {
      close(out);
      throw Cancelled{};
    }
  }
}

MappedText::MappedText(const std::string& path, const LoadProgress& progress) {
  Descriptor file(open_regular(path));
  struct stat about {};
  fstat(file.value, &about);
  unsigned char magic[2] = {};
  if (pread(file.value, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
    const int inflated = inflate(file.value, path, progress);
    close(std::exchange(file.value, inflated));
    fstat(file.value, &about);
  }
  size_ = static_cast<std::size_t>(about.st_size);
  if (size_ == 0) return;
  void* const at = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (at == MAP_FAILED) unreadable(path, std::strerror(errno));
  madvise(at, size_, MADV_SEQUENTIAL);
  data_ = static_cast<const char*>(at);
  guard_ = std::make_unique<const MappingGuard>(at, size_);
  mark_ = mark_of({data_, size_});
}

std::string MappedText::damage() const {
  return guard_ != nullptr && guard_->shrunk() ? "became shorter while it was read: open it again" : damage_;
}

std::string beginning_of(const std::string& path, std::size_t bytes) {
  const gzFile in = gzdopen(open_regular(path), "rb");  // gzread() also reads uncompressed files
  if (in == nullptr) unreadable(path, "out of memory");
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> closer(in, gzclose);
  std::string text(bytes, ' ');
  const int got = gzread(in, text.data(), static_cast<unsigned>(bytes));
  text.resize(static_cast<std::size_t>(std::max(got, 0)));
  return text.substr(mark_of(text));
}

MappedText::~MappedText() {
  guard_.reset();
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

}  // namespace orrery
