#include "sim/launch.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "models/error.h"

namespace orrery {
namespace {

using Words = std::vector<std::string>;

TEST(RankArguments, SayWhatToRunAndWhereToLeaveIt) {
  const RankArguments a{.spec = "/a/spec.yaml", .overrides = {"gpus=2", "seed=3"}, .folder = "/tmp/x", .steps = 7};
  EXPECT_EQ(rank_arguments("rank", a), (Words{"rank", "--spec", "/a/spec.yaml", "--set", "gpus=2", "--set", "seed=3",
                                              "--out", "/tmp/x", "--steps", "7"}));
  RankArguments watched = a;
  watched.hang_timeout = 2.5;
  const Words words = rank_arguments("rank", watched);
  EXPECT_EQ(Words(words.end() - 2, words.end()), (Words{"--hang-timeout", "2.5"}));
}

TEST(Mpirun, KeepsItsFilesInItsFolders) {
  if (!std::filesystem::exists("/usr/bin/mpirun")) GTEST_SKIP() << "no mpirun";
  const Launch launch = mpirun(3, {"program", "-x"}, "/tmp/here", "/dev/shm/there");
  EXPECT_TRUE(launch.arguments[0].ends_with("/mpirun"));
  EXPECT_EQ(Words(launch.arguments.end() - 4, launch.arguments.end()), (Words{"-n", "3", "program", "-x"}));
  EXPECT_EQ(launch.environment, (Words{"TMPDIR=/tmp/here", "OPENBLAS_NUM_THREADS=1"}));
  const auto at = std::find(launch.arguments.begin(), launch.arguments.end(), "btl_vader_backing_directory");
  ASSERT_NE(at, launch.arguments.end());
  EXPECT_EQ(*(at + 1), "/dev/shm/there");
}

TEST(FindRankProgram, TakesTheOneThatIsGiven) {
  ::setenv("ORRERY_RANK", "/bin/true", 1);
  EXPECT_EQ(find_rank_program("cpu"), "/bin/true");
  ::setenv("ORRERY_RANK", "/nowhere", 1);
  EXPECT_THROW(find_rank_program("cpu"), Error);
  ::unsetenv("ORRERY_RANK");
}

TEST(TemporaryFolder, IsPrivateAndGoesWithAllThatIsInIt) {
  std::string path;
  {
    const TemporaryFolder folder("/tmp");
    path = folder.path();
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700U);
    std::filesystem::create_directory(path + "/inner");
    std::ofstream(path + "/inner/file") << "x";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THROW(TemporaryFolder("/nowhere"), Error);
}

}  // namespace
}  // namespace orrery
