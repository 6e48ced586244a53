#include "sim/runs/room.h"

#include <algorithm>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr Bytes kMuch = Bytes{1} << 40;

std::string refusal(const Room& room, std::int64_t ranks = 4) {
  try {
    check_room(room, ranks, "/tmp/here");
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code, 1);
    return error.what();
  }
  return "";
}

TEST(Room, SaysWhatThereIsTooLittleOf) {
  EXPECT_EQ(refusal({1024, kMuch, kMuch, kMuch}), "");
  EXPECT_EQ(refusal({48, kMuch, kMuch, kMuch}), "");
  EXPECT_EQ(refusal({40, kMuch, kMuch, kMuch}), "run: a process may open 40 files (ulimit -n), 4 ranks need 48");
  EXPECT_EQ(refusal({48, kMuch, kMuch, kMuch}, 16), "run: a process may open 48 files (ulimit -n), 16 ranks need 96");
  EXPECT_EQ(refusal({1024, Bytes{400'000} << 10, kMuch, kMuch}),
            "run: a process may map 390.6 MiB of memory (ulimit -v), 4 ranks need 640.0 MiB each, and their model");
  EXPECT_EQ(refusal({1024, kMuch, 1 << 20, kMuch}), "run: 1.0 MiB are free in /dev/shm, 4 ranks need 2.0 MiB");
  EXPECT_EQ(refusal({1024, kMuch, kMuch, 100 << 10}),
            "run: 0.1 MiB are free in /tmp/here, 4 ranks need 1.2 MiB; set TMPDIR");
}

// Docker's 64 MiB of shared memory are enough for as many ranks as one machine runs.
TEST(Room, OfAContainerDoes) { EXPECT_EQ(refusal({1024, kMuch, Bytes{64} << 20, kMuch}, 128), ""); }

// The most ranks that a room lets start are those that check_room() lets start.
TEST(Room, MostRanksAreThoseThatMayStart) {
  for (const Room& room : {Room{48, kMuch, kMuch, kMuch}, Room{1024, kMuch, Bytes{3} << 20, kMuch},
                           Room{1024, kMuch, kMuch, Bytes{2} << 20}}) {
    const std::int64_t most = most_ranks(room);
    EXPECT_GE(most, 1);
    EXPECT_EQ(refusal(room, most), "");
    EXPECT_NE(refusal(room, most + 1), "");
  }
  EXPECT_EQ(most_ranks({1024, 1 << 20, kMuch, kMuch}), 0);
}

TEST(Room, RaisesTheSoftLimitOfFiles) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low = {before.rlim_max / 2, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(room_here("", "/tmp").files,
            static_cast<std::int64_t>(std::max(before.rlim_cur, std::min<rlim_t>(before.rlim_max, kMostFiles))));
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace orrery
