#include "models/run/lost_ranks.h"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// Polls until more lost ranks are known, or until a timeout.
bool look(LostRanks& lost) {
  for (int i = 0; i < 200; ++i) {
    if (lost.look()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

TEST(LostRanks, AreThoseThatWereNoted) {
  const test::TemporaryFolder folder;
  const std::string path = lost_file(folder.path());
  LostRanks lost(path);
  EXPECT_FALSE(lost.look());
  EXPECT_FALSE(lost.any());
  note_lost(path, 3);
  EXPECT_TRUE(look(lost));
  EXPECT_TRUE(lost.has(3));
  EXPECT_FALSE(lost.has(30));
  std::ofstream(path, std::ios::app) << "12" << std::flush;  // half a line: it may become 120
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(lost.look());
  std::ofstream(path, std::ios::app) << "0\n" << std::flush;
  EXPECT_TRUE(look(lost));
  EXPECT_TRUE(lost.has(120));
  EXPECT_FALSE(lost.has(12));
}

TEST(LostRanks, OfNoFileAreNone) {
  LostRanks lost("");
  EXPECT_FALSE(lost.look());
  EXPECT_THROW(note_lost("/nowhere/lost", 1), Error);
}

}  // namespace
}  // namespace orrery
