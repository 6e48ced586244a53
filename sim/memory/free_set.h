#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

#include "models/base/units.h"

namespace orrery {

struct FreeBlock {
  Bytes size = 0;
  Bytes address = 0;
  std::uint32_t id = 0;
};

// The free blocks of a pool in the order (size, address), in which CachingAllocator searches them. Blocks are sorted
// into bins, eight per power of two of the size in units of 512 bytes. A bin is a short vector in descending order, so
// that the best fit is taken from the back; a bitmap finds the next bin that has blocks. The set never looks at the
// state or the neighbours of a block. Pointers that it returns are valid until the next insert or erase.
class FreeSet {
 public:
  void insert(FreeBlock block) {
    const std::size_t bin = bin_of(block.size);
    auto& blocks = bins_[bin];
    blocks.insert(place(blocks, block.size, block.address), block);
    occupied_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  }

  void erase(Bytes size, Bytes address) {
    const std::size_t bin = bin_of(size);
    auto& blocks = bins_[bin];
    const auto it = place(blocks, size, address) - 1;
    assert(it->size == size && it->address == address);
    blocks.erase(it);
    if (blocks.empty()) occupied_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  }

  // The smallest block of at least `size` bytes (among equals the one of lowest address), or null.
  const FreeBlock* at_least(Bytes size) const { return from(size, 0); }

  // The block that follows `block` in the order (size, address), or null.
  const FreeBlock* after(const FreeBlock& block) const { return from(block.size, block.address + 1); }

 private:
  // Number of 64-bit words of the bitmap, which has one bit for each of 320 bins, enough for sizes below 2^49 bytes.
  static constexpr std::size_t kWords = 5;

  static std::size_t bin_of(Bytes size) {
    const auto units = static_cast<std::uint64_t>(size) / 512;
    if (units < 8) return units;
    const auto power = static_cast<std::size_t>(std::bit_width(units)) - 1;
    assert(power < 42);
    return (power - 2) * 8 + ((units >> (power - 3)) & 7);
  }

  // The position in a bin (a list in descending order) after all blocks that are equal to or greater than (size,
  // address).
  template <class Blocks>
  static auto place(Blocks& blocks, Bytes size, Bytes address) -> decltype(blocks.begin()) {
    return std::partition_point(blocks.begin(), blocks.end(), [=](const FreeBlock& b) {
      return b.size > size || (b.size == size && b.address >= address);
    });
  }

  const FreeBlock* from(Bytes size, Bytes address) const {
    const std::size_t bin = bin_of(size);
    const auto& blocks = bins_[bin];
    const auto it = place(blocks, size, address);
    if (it != blocks.begin()) return &*(it - 1);
    return first_of_bins_from(bin + 1);
  }

  const FreeBlock* first_of_bins_from(std::size_t bin) const {
    for (std::size_t word = bin / 64; word < kWords; ++word) {
      std::uint64_t bits = occupied_[word];
      if (word == bin / 64) bits &= ~std::uint64_t{0} << (bin % 64);
      if (bits) return &bins_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))].back();
    }
    return nullptr;
  }

  std::array<std::vector<FreeBlock>, kWords * 64> bins_;
  std::array<std::uint64_t, kWords> occupied_{};
};

}  // namespace orrery
