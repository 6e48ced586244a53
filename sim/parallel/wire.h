#pragma once

#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "models/base/error.h"

namespace orrery {

// A set that owns the strings read from another process's bytes, since structs refer to names as string views.
using WireNames = std::set<std::string, std::less<>>;

// A serializer that writes values as bytes, and reads them from bytes written on the same machine architecture. A type
// lists its members once, in a function share(wire, value), for both directions. Throws Error if the bytes were not
// written by the same calls. No library is used: cereal allocates whatever size the bytes state, and cannot read into
// string views.
class Wire {
 public:
  Wire() = default;  // makes an object to write values to
  Wire(std::string_view bytes, WireNames& names) : left_(bytes), names_(&names) {}

  bool reads() const { return names_ != nullptr; }
  std::string take() { return std::move(written_); }
  // Checks that no bytes are left after the last value that was read.
  void end() const {
    if (!left_.empty()) wrong();
  }

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void share(T& value) {
    move(reinterpret_cast<char*>(&value), sizeof value);
  }

  void share(std::string& text) {
    std::size_t size = text.size();
    share(size);
    if (reads() && size > left_.size()) wrong();
    if (reads()) text.resize(size);
    move(text.data(), size);
  }

  void share(std::string_view& name) {
    std::string text(name);
    share(text);
    if (reads()) name = *names_->insert(text).first;
  }

  [[noreturn]] static void wrong() {
    throw Error("processes that work together understand each other wrongly; start them from one build", 1);
  }

 private:
  void move(char* value, std::size_t size) {
    if (!reads()) {
      written_.append(value, size);
      return;
    }
    if (size > left_.size()) wrong();
    std::memcpy(value, left_.data(), size);
    left_.remove_prefix(size);
  }

  std::string written_;
  std::string_view left_;
  WireNames* names_ = nullptr;
};

}  // namespace orrery
