#include "viz/window/background.h"

#include <gtest/gtest.h>

#include <QTest>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

using namespace orrery;

namespace {

const auto kNeverFails = [](const std::string& why) { ADD_FAILURE() << why; };

}  // namespace

TEST(Background, HandsOverInTheThreadOfTheWindow) {
  Background work;
  std::thread::id made, handed;
  work.run(
      [&] {
        made = std::this_thread::get_id();
        return 7;
      },
      [&](int seven) {
        EXPECT_EQ(seven, 7);
        handed = std::this_thread::get_id();
      },
      kNeverFails);
  EXPECT_TRUE(work.busy());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !work.busy(); }, 10'000));
  EXPECT_EQ(handed, std::this_thread::get_id());
  EXPECT_NE(made, handed);
}

TEST(Background, OnlyTheLastPieceCounts) {
  Background work;
  std::atomic<bool> go = false;
  std::vector<int> made, handed;
  for (const int i : {1, 2, 3}) {
    work.run(
        [&, i] {
          while (!go) std::this_thread::yield();
          made.push_back(i);
          return i;
        },
        [&](int n) { handed.push_back(n); }, kNeverFails);
  }
  go = true;
  work.finish();
  EXPECT_EQ(made, (std::vector{1, 3}));  // the first was at work, the second had not begun
  EXPECT_EQ(handed, std::vector{3});
}

TEST(Background, WhatIsDroppedIsNotHandedOver) {
  std::vector<int> handed;
  Background work;
  work.run([] { return 1; }, [&](int n) { handed.push_back(n); }, kNeverFails);
  work.drop();
  work.finish();
  {
    Background short_lived;
    short_lived.run([] { return 2; }, [&](int n) { handed.push_back(n); }, kNeverFails);
  }
  QTest::qWait(1);
  EXPECT_TRUE(handed.empty());
}

// A piece that is unwanted can end at once, by an exception of any kind.
TEST(Background, APieceLearnsThatItIsUnwanted) {
  Background work;
  int handed = 0;
  work.run(
      [](const std::atomic<bool>& unwanted) -> int {
        while (!unwanted) std::this_thread::yield();
        throw 1;
      },
      [&](int) { ++handed; }, [&](const std::string&) { ++handed; });
  work.drop();
  work.finish();
  EXPECT_EQ(handed, 0);
}

TEST(Background, SaysWhyAPieceFailed) {
  Background work;
  std::string said;
  work.run([]() -> int { throw std::runtime_error("no"); }, [](int) { ADD_FAILURE(); },
           [&](const std::string& why) { said = why; });
  work.finish();
  EXPECT_EQ(said, "no");
}
