#include "sim/runs/rank_starter.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include "models/run/rank_end.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// Exit status of a starter whose rank is this shell script.
int status_of_starter(const std::string& folder, std::string script) {
  const pid_t starter = ::fork();
  if (starter == 0) {
    ::setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    std::string shell = "/bin/sh", option = "-c";
    char* words[] = {shell.data(), option.data(), script.data(), nullptr};
    ::_exit(start_rank(folder, words));
  }
  int status = 0;
  ::waitpid(starter, &status, 0);
  return status;
}

TEST(RankStarter, NotesHowItsRankEndsAndEndsLikewise) {
  for (const char* script : {"exit 0", "exit 41", "kill -KILL $$", "kill -SEGV $$", "exec /nowhere/at/all"}) {
    const test::TemporaryFolder folder;
    const int status = status_of_starter(folder.path(), script);
    const RankEnd end = read_rank_end(ended_file(folder.path(), 2));
    ASSERT_TRUE(end.status.has_value()) << script;
    EXPECT_EQ(WIFSIGNALED(status), WIFSIGNALED(*end.status)) << script;
    EXPECT_EQ(WEXITSTATUS(status), WEXITSTATUS(*end.status)) << script;
    EXPECT_EQ(WTERMSIG(status), WTERMSIG(*end.status)) << script;
    EXPECT_GT(end.pid, 0);
  }
}

TEST(RankStarter, StandsBeforeTheRanksWords) {
  const std::vector<std::string> rank = {"/bin/rank", "--steps", "3"}, words = with_starter("/tmp/f", rank);
  ASSERT_GE(words.size(), rank.size());
  EXPECT_EQ(std::vector<std::string>(words.end() - 3, words.end()), rank);
  if (words.size() == rank.size()) GTEST_SKIP() << "orrery is not built";
  ASSERT_EQ(words.size(), 6U);
  EXPECT_EQ(words[1], kStartRank);
  EXPECT_EQ(words[2], "/tmp/f");
}

}  // namespace
}  // namespace orrery
