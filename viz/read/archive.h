#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "models/base/output_file.h"
#include "viz/timeline/column.h"

namespace orrery {

// initial value of an archive's checksum; an arbitrary number
inline constexpr std::uint64_t kSumStart = 0x6f727265727930ULL;

// Writes values one after the other to a binary file that only the same machine reads. One function per type lists the
// fields to be written or read:
//
//   template <class A> void fields(A& a, Part& p) { a(p.name); a(p.sizes); }
//
// Numbers and flat structs are stored as in memory, columns at a multiple of eight bytes, so that a reader can map
// them. A checksum at the end reveals cut or damaged files. The search's serializer Wire (sim/parallel/wire.h) and the
// library cereal would copy every value when a file is read; columns read here stay in the mapped file.
class ArchiveWriter {
 public:
  explicit ArchiveWriter(const std::string& path) : file_(path) {}

  template <class T>
  void operator()(T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      put(&value, sizeof value);
    } else {
      fields(*this, value);
    }
  }
  void operator()(std::string& text);
  template <class T>
  void operator()(std::vector<T>& list) {
    std::uint64_t size = list.size();
    (*this)(size);
    for (T& value : list) (*this)(value);
  }
  template <class T>
  void operator()(MappedColumn<T>& column) {
    std::uint64_t size = column.size();
    (*this)(size);
    static constexpr char blank[8] = {};
    put(blank, (8 - written_ % 8) % 8);
    put(column.data(), size * sizeof(T));
  }
  void commit();  // completes the file and gives it its final name

 private:
  void put(const void* data, std::size_t bytes);
  void pass_on();

  OutputFile file_;
  std::string pending_;
  std::uint64_t written_ = 0, sum_ = kSumStart;
};

// Returns the checksum that stands at the end of an archive with these bytes.
std::uint64_t archive_sum(std::string_view bytes);

// Thrown when bytes are read that no ArchiveWriter wrote.
struct BrokenArchive {};

class ArchiveReader {
 public:
  // Throws BrokenArchive if the file is not an archive, or if the checksum is wrong.
  explicit ArchiveReader(const std::string& path);
  ArchiveReader(std::shared_ptr<const void> owner, std::string_view bytes);

  void operator()(bool& value) {
    unsigned char byte = 0;
    std::memcpy(&byte, take(1), 1);
    if (byte > 1) throw BrokenArchive{};
    value = byte == 1;
  }
  template <class T>
  void operator()(T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      std::memcpy(&value, take(sizeof value), sizeof value);
    } else {
      fields(*this, value);
    }
  }
  void operator()(std::string& text);
  template <class T>
  void operator()(std::vector<T>& list) {
    list.resize(count(1));
    for (T& value : list) (*this)(value);
  }
  template <class T>
  void operator()(MappedColumn<T>& column) {
    const std::size_t size = count(sizeof(T));
    take((8 - at_ % 8) % 8);
    const void* const data = take(size * sizeof(T));
    column = MappedColumn<T>(file_, {static_cast<const T*>(data), size});
  }

 private:
  const void* take(std::size_t bytes);
  std::size_t count(std::size_t bytes_each);  // reads how many values follow; throws if there are fewer

  std::shared_ptr<const void> file_;
  const char* data_ = nullptr;
  std::size_t at_ = 0, size_ = 0;
};

}  // namespace orrery
