#include "sim/chakra/wire.h"

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

// The types of a field's value in the encoding of Protocol Buffers.
constexpr std::uint64_t kVarint = 0, kEightBytes = 1, kDelimited = 2, kFourBytes = 5;

}  // namespace

void WireReader::fail(std::string_view what) const {
  throw Error(fmt::format("{}: byte {}: {}; give a Chakra execution trace (.et)", path_, place(), what));
}

std::string_view WireReader::take(std::uint64_t count) {
  if (count > bytes_.size() - at_) fail("the file ends within a message");
  const std::string_view taken = bytes_.substr(at_, count);
  at_ += count;
  return taken;
}

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1).front());
    if (shift == 63 && byte > 1) break;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail("a number has more than 64 bits");
}

std::string_view WireReader::delimited() { return take(varint()); }

WireField WireReader::field() {
  const std::uint64_t key = varint();
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff) fail("a field's number is out of range");
  WireField field = {.number = static_cast<std::uint32_t>(key >> 3)};
  const auto little_endian = [](std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
    return value;
  };
  switch (key & 7) {
    case kVarint:
      field.value = varint();
      break;
    case kEightBytes:
      field.value = little_endian(take(8));
      break;
    case kFourBytes:
      field.value = little_endian(take(4));
      break;
    case kDelimited:
      field.text = delimited();
      break;
    default:
      fail("a field has a type that messages no longer use");
  }
  return field;
}

WireReader WireReader::inside(std::string_view text) const {
  return {text, path_, offset_ + static_cast<std::size_t>(text.data() - bytes_.data())};
}

void WireWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

void WireWriter::number(std::uint32_t field, std::uint64_t value) {
  varint(static_cast<std::uint64_t>(field) << 3 | kVarint);
  varint(value);
}

void WireWriter::text(std::uint32_t field, std::string_view value) {
  varint(static_cast<std::uint64_t>(field) << 3 | kDelimited);
  delimited(value);
}

void WireWriter::delimited(std::string_view message) {
  varint(message.size());
  bytes_ += message;
}

}  // namespace orrery
