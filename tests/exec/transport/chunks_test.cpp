#include "exec/transport/chunks.h"

#include <numeric>

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

// The chunks of a buffer follow each other and fill it, however many there are.
TEST(Chunks, FillTheirBuffer) {
  std::vector<float> data(100);
  auto* begin = reinterpret_cast<std::byte*>(data.data());
  for (std::int64_t n = 0; n < 20; ++n) {
    for (int chunks = 1; chunks < 9; ++chunks) {
      const CollectiveCall call{.in = data.data(), .out = data.data(), .counts = {n}};
      std::byte* at = begin;
      for (const ChunkMemory& c : chunks_of(call, 0, chunks, chunks, nullptr)) {
        EXPECT_EQ(c.at, at);
        at += c.bytes;
      }
      EXPECT_EQ(at - begin, 4 * n);
    }
  }
}

TEST(Chunks, FollowTheCounts) {
  std::vector<float> data(10);
  const CollectiveCall call{.kind = CollectiveKind::all_gather, .out = data.data(), .counts = {3, 0, 5}};
  const auto chunks = chunks_of(call, 1, 3, 3, nullptr);
  EXPECT_EQ(chunks[2].at, reinterpret_cast<std::byte*>(data.data() + 3));
  EXPECT_EQ(chunks[1].bytes, 0);
  EXPECT_EQ(elements_before(call, 2), 3);
  EXPECT_EQ(elements_before(call, 3), 8);
}

TEST(Chunks, AnAlgorithmOfAnotherKindIsRefused) {
  EXPECT_THROW(moves_of({.algorithm = "tree_broadcast"}, 2), Error);
  EXPECT_TRUE(moves_of({}, 2).moves.empty());
  EXPECT_THROW(check_call({.counts = {1, 2}}, 2), Error);
}

}  // namespace
}  // namespace orrery
