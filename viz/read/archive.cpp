#include "viz/read/archive.h"

#include <algorithm>
#include <array>

#include "models/base/error.h"
#include "viz/read/mapped_text.h"

namespace orrery {
namespace {

constexpr std::size_t kPiece = 1 << 18;  // number of bytes that are checksummed and written at once; a multiple of 32

// Updates a checksum with a piece of data. Four independent sums run in parallel, so that memory bandwidth is the
// limit.
std::uint64_t sum_of(std::uint64_t seed, const char* data, std::size_t bytes) {
  std::array<std::uint64_t, 4> h = {seed, seed ^ 1, seed ^ 2, seed ^ 3};
  std::size_t i = 0;
  for (; i + 32 <= bytes; i += 32) {
    for (std::size_t k = 0; k < 4; ++k) {
      std::uint64_t word = 0;
      std::memcpy(&word, data + i + 8 * k, 8);
      h[k] = (h[k] ^ word) * 0x9e3779b97f4a7c15ULL;
      h[k] ^= h[k] >> 29;
    }
  }
  for (; i < bytes; ++i) h[0] = (h[0] ^ static_cast<unsigned char>(data[i])) * 0x100000001b3ULL;
  return ((h[0] * 3 + h[1]) * 5 + h[2]) * 7 + h[3] + bytes;
}

}  // namespace

void ArchiveWriter::operator()(std::string& text) {
  std::uint64_t size = text.size();
  (*this)(size);
  put(text.data(), size);
}

void ArchiveWriter::put(const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  written_ += bytes;
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, kPiece - pending_.size());
    pending_.append(from, part);
    from += part;
    bytes -= part;
    if (pending_.size() == kPiece) pass_on();
  }
}

void ArchiveWriter::pass_on() {
  sum_ = sum_of(sum_, pending_.data(), pending_.size());
  file_.write(pending_);
  pending_.clear();
}

void ArchiveWriter::commit() {
  pass_on();
  file_.write({reinterpret_cast<const char*>(&sum_), sizeof sum_});
  file_.commit();
}

std::uint64_t archive_sum(std::string_view bytes) {
  std::uint64_t sum = kSumStart;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece)
    sum = sum_of(sum, bytes.data() + at, std::min(kPiece, bytes.size() - at));
  return bytes.size() % kPiece == 0 ? sum_of(sum, bytes.data() + bytes.size(), 0) : sum;
}

static std::shared_ptr<const MappedText> mapped_archive(const std::string& path) {
  try {
    return std::make_shared<const MappedText>(path);
  } catch (const Error&) {
    throw BrokenArchive{};
  }
}

ArchiveReader::ArchiveReader(const std::string& path) {
  const std::shared_ptr<const MappedText> file = mapped_archive(path);
  *this = ArchiveReader(file, file->text());
}

ArchiveReader::ArchiveReader(std::shared_ptr<const void> owner, std::string_view bytes) : file_(std::move(owner)) {
  std::uint64_t wanted = 0;
  if (bytes.size() < sizeof wanted) throw BrokenArchive{};
  size_ = bytes.size() - sizeof wanted;
  data_ = bytes.data();
  std::memcpy(&wanted, data_ + size_, sizeof wanted);
  if (archive_sum(bytes.substr(0, size_)) != wanted) throw BrokenArchive{};
}

const void* ArchiveReader::take(std::size_t bytes) {
  if (bytes > size_ - at_) throw BrokenArchive{};
  const char* const from = data_ + at_;
  at_ += bytes;
  return from;
}

std::size_t ArchiveReader::count(std::size_t bytes_each) {
  std::uint64_t size = 0;
  (*this)(size);
  if (size > (size_ - at_) / bytes_each) throw BrokenArchive{};
  return static_cast<std::size_t>(size);
}

void ArchiveReader::operator()(std::string& text) {
  const std::size_t size = count(1);
  text.assign(static_cast<const char*>(take(size)), size);
}

}  // namespace orrery
