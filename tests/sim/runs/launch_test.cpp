#include "sim/runs/launch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

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
  const Command launch = mpirun(3, {"program", "-x"}, {"/tmp/here", "/tmp/here", "/dev/shm/there"});
  EXPECT_TRUE(launch.arguments[0].ends_with("/mpirun"));
  EXPECT_EQ(Words(launch.arguments.end() - 4, launch.arguments.end()), (Words{"-n", "3", "program", "-x"}));
  EXPECT_EQ(launch.environment, (Words{"TMPDIR=/tmp/here", "OPENBLAS_NUM_THREADS=1"}));
  const auto at = std::find(launch.arguments.begin(), launch.arguments.end(), "btl_vader_backing_directory");
  ASSERT_NE(at, launch.arguments.end());
  EXPECT_EQ(*(at + 1), "/dev/shm/there");
}

// mpirun's sockets need a short path, ranks' files the user's folder.
TEST(Mpirun, LeavesRanksALongFolder) {
  if (!std::filesystem::exists("/usr/bin/mpirun")) GTEST_SKIP() << "no mpirun";
  const std::string longer = "/scratch/" + std::string(60, 'a');
  EXPECT_EQ(socket_parent("/tmp/orrery-1-abcdef"), "/tmp/orrery-1-abcdef");
  EXPECT_EQ(socket_parent(longer), "/tmp");
  const Command launch = mpirun(1, {"program"}, {longer, "/tmp/short", ""});
  EXPECT_EQ(launch.environment[0], "TMPDIR=/tmp/short");
  const auto at = std::find(launch.arguments.begin(), launch.arguments.end(), "-x");
  ASSERT_NE(at, launch.arguments.end());
  EXPECT_EQ(*(at + 1), "TMPDIR=" + longer);
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

// Folders of a killed process are deleted; folders stay that belong to a live process, also one that this process
// cannot see, or to a launcher's job, or whose names only look similar.
TEST(TemporaryFolder, StaleOnesAreSwept) {
  namespace fs = std::filesystem;
  const test::TemporaryFolder parent;
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  const auto make = [&](const std::string& name) {
    fs::create_directories(parent.path(name) + "/inner");
    return parent.path(name);
  };
  const std::string stale = make(fmt::format("orrery-{}-aB3xyz", dead));
  const std::string locked = make(fmt::format("orrery-{}-locked", dead));
  const std::string live = make(fmt::format("orrery-{}-aB3xyz", ::getpid()));
  const std::string job = make(fmt::format("orrery-{}-123456", ::geteuid()));
  const std::string other = make(fmt::format("orrery-{}-results", dead));
  const std::string target = make("kept");
  fs::create_directory_symlink(target, parent.path(fmt::format("orrery-{}-aslink", dead)));
  const int lock = ::open(locked.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  sweep_temporary_folders(parent.path());
  EXPECT_FALSE(fs::exists(stale));
  for (const std::string& kept : {locked, live, job, other, target + "/inner"}) EXPECT_TRUE(fs::exists(kept)) << kept;
  ::close(lock);
  const TemporaryFolder mine(parent.path());
  const int again = ::open(mine.path().c_str(), O_RDONLY | O_DIRECTORY);
  EXPECT_NE(::flock(again, LOCK_EX | LOCK_NB), 0);
  ::close(again);
}

}  // namespace
}  // namespace orrery
