#include "sim/engine/huge_pages.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace {

// Asking for huge pages changes no content of memory, of any size and at any address.
TEST(HugePages, ChangeNoByte) {
  for (const std::size_t size : {0UL, 1UL, 4096UL, 2UL << 20, 9'000'001UL}) {
    std::vector<std::uint8_t> bytes(size, 7);
    prefer_huge_pages(bytes.data(), size);
    bytes.resize(size, 7);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 7), static_cast<std::ptrdiff_t>(size));
  }
}

}  // namespace
}  // namespace orrery
