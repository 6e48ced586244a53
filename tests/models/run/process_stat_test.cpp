#include "models/run/process_stat.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(ProcessStat, ReadsStateAndParent) {
  const std::optional<ProcessStat> own = process_stat(::getpid());
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(own->state, 'R');
  EXPECT_EQ(own->parent, ::getppid());
}

TEST(ProcessStat, NamesMayHoldAnything) {
  std::istringstream file("12 (a) R 1\n) T 34 12");
  const std::optional<ProcessStat> stat = process_stat(file);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->state, 'T');
  EXPECT_EQ(stat->parent, 34);
  std::istringstream broken("12 (a");
  EXPECT_FALSE(process_stat(broken).has_value());
}

// A file that was opened before its process was reaped: reading it threw out of the loop that watches ranks.
TEST(ProcessStat, AProcessMayEndWhileItIsRead) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  std::ifstream file(fmt::format("/proc/{}/stat", child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(process_stat(file).has_value());
  EXPECT_FALSE(process_stat(child).has_value());
}

}  // namespace
}  // namespace orrery
