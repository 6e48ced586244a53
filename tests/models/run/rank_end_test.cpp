#include "models/run/rank_end.h"

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

constexpr int status_of(int exit_status) { return exit_status << 8; }  // as waitpid(2) reports it

TEST(RankEnd, IsReadAsItWasNoted) {
  const test::TemporaryFolder folder;
  const std::string path = ended_file(folder.path(), 3);
  EXPECT_EQ(read_rank_end(path).pid, 0);
  RankEndFile file(path);
  EXPECT_EQ(read_rank_end(path).pid, 0);
  file.started(4711);
  EXPECT_EQ(read_rank_end(path).pid, 4711);
  EXPECT_FALSE(read_rank_end(path).status.has_value());
  file.ended(SIGBUS);
  EXPECT_EQ(read_rank_end(path).pid, 4711);
  EXPECT_EQ(read_rank_end(path).status, SIGBUS);
  EXPECT_THROW(RankEndFile again(path), Error);  // the file is not opened through a link either
}

TEST(RankEnd, IsToldWithItsSignal) {
  EXPECT_EQ(end_text(SIGSEGV), "was killed by SIGSEGV");
  EXPECT_EQ(end_text(SIGBUS), "was killed by SIGBUS (is /dev/shm or $TMPDIR full?)");
  EXPECT_EQ(end_text(SIGKILL), "was killed by SIGKILL (by the kernel where memory ran out, or by somebody)");
  EXPECT_EQ(end_text(status_of(127)), "ended with status 127 (a program or library is missing)");
  EXPECT_EQ(end_text(status_of(0)), "ended with status 0");
  EXPECT_EQ(signal_name(SIGRTMIN + 3), "signal " + std::to_string(SIGRTMIN + 3));
}

}  // namespace
}  // namespace orrery
