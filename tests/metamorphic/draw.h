#pragma once

#include <cstdint>
#include <initializer_list>

#include "tests/random_bits.h"

namespace orrery::test {

// Choices that follow from a seed alone, the same on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(random_bits(seed)) {}

  std::size_t below(std::size_t n) { return next() % n; }
  bool chance(double share) { return static_cast<double>(next() >> 11) * 0x1p-53 < share; }

  template <class T>
  T of(std::initializer_list<T> list) {
    return *(list.begin() + below(list.size()));
  }
  template <class List>
  auto from(const List& list) {
    return *(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list))));
  }

 private:
  std::uint64_t next() { return random_bits(seed_ + count_++); }

  std::uint64_t seed_, count_ = 0;
};

}  // namespace orrery::test
