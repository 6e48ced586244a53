#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery {

// The encoding of Protocol Buffers (protobuf.dev/programming-guides/encoding), as far as Chakra traces need it. The
// code is written by hand because the traces use three small messages, whereas protoc would add a step and a library to
// the build.

// One field of a message: its number, and its value, which is either a number (a varint, or 4 or 8 bytes) or a text
// (the bytes of a string, bytes or inner message).
struct WireField {
  std::uint32_t number = 0;
  std::uint64_t value = 0;
  std::string_view text;
};

// Reads the fields of a message one after another. For broken data it throws orrery::Error, one line "path: byte N:
// what, and what to do". offset: where the bytes begin in the file.
class WireReader {
 public:
  WireReader(std::string_view bytes, const std::string& path, std::size_t offset = 0)
      : bytes_(bytes), path_(path), offset_(offset) {}

  bool done() const { return at_ == bytes_.size(); }
  std::size_t place() const { return offset_ + at_; }
  std::uint64_t varint();
  // Reads a message that is preceded by its length.
  std::string_view delimited();
  WireField field();
  // A reader for the inner message in the text of a field that this reader has just returned.
  WireReader inside(std::string_view text) const;
  const std::string& path() const { return path_; }
  [[noreturn]] void fail(std::string_view what) const;

 private:
  std::string_view take(std::uint64_t count);

  std::string_view bytes_;
  const std::string& path_;
  std::size_t offset_, at_ = 0;
};

// Appends fields to a message that is being written.
class WireWriter {
 public:
  void number(std::uint32_t field, std::uint64_t value);
  void text(std::uint32_t field, std::string_view value);
  // Appends a complete message as its length and its bytes; a trace file is a stream of messages written so.
  void delimited(std::string_view message);
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace orrery
