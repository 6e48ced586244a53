// Progress messages of a command that otherwise prints nothing.
#include "sim/cli/heartbeat.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Heartbeat, IsHeardUntilItsCommandEnds) {
  std::atomic<int> beats = 0;
  {
    const Heartbeat beat([&](std::string_view line) { beats += line.starts_with("simulate: ") ? 1 : 0; }, "simulate",
                         std::chrono::milliseconds(1));
    while (beats < 3) std::this_thread::yield();
  }
  const int ended = beats;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(beats, ended);
}

TEST(Heartbeat, PassesLinesOnAndIsSilentBesideThem) {
  std::atomic<int> beats = 0, lines = 0;
  Heartbeat beat([&](std::string_view line) { ++(line == "half" ? lines : beats); }, "search", std::chrono::hours(1));
  beat.say("half");
  EXPECT_EQ(lines, 1);
  EXPECT_EQ(beats, 0);
}

}  // namespace
}  // namespace orrery
