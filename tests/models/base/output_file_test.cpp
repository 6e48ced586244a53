#include "models/base/output_file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class OutputFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::ptrdiff_t files() const { return folder_.files(); }

  test::TemporaryFolder folder_;
};

TEST_F(OutputFiles, AppearWhole) {
  OutputFile file(path("a.txt"));
  file.write("one\n");
  file.write("two\n");
  EXPECT_FALSE(fs::exists(path("a.txt")));
  file.commit();
  EXPECT_EQ(text_of(path("a.txt")), "one\ntwo\n");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFiles, LeaveNothingWithoutCommit) {
  std::ofstream(path("old.txt")) << "old";
  {
    OutputFile fresh(path("fresh.txt")), old(path("old.txt"));
    fresh.write("half");
    old.write("half");
  }
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(text_of(path("old.txt")), "old");
}

TEST_F(OutputFiles, TakeThePlaceOfAnOlderOne) {
  std::ofstream(path("a.txt")) << "old and longer";
  fs::create_symlink("a.txt", path("link.txt"));
  OutputFile file(path("link.txt"));
  file.write("new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(path("link.txt")));
  EXPECT_EQ(text_of(path("a.txt")), "new");
}

TEST_F(OutputFiles, GetTheUsualRights) {
  OutputFile file(path("a.txt"));
  file.commit();
  const mode_t mask = ::umask(0);
  ::umask(mask);
  struct stat status {};
  ASSERT_EQ(::stat(path("a.txt").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0666U & ~mask);
}

// Nothing is left behind even when the program is killed, when no destructor runs.
TEST_F(OutputFiles, LeaveNothingWhenKilled) {
  {
    const OutputFile file(path("probe"));
    if (files() != 0) GTEST_SKIP() << "this file system has no files without names";
  }
  for (const int kind : {SIGINT, SIGKILL}) {
    const pid_t child = ::fork();
    if (child == 0) {
      OutputFile file(path("a.json.gz"));
      file.write(std::string(1 << 20, 'x'));
      ::raise(kind);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(files(), 0);
  }
}

TEST_F(OutputFiles, SayWhyTheyCannotBeWritten) {
  const auto message = [](const std::string& where) -> std::string {
    try {
      OutputFile file(where);
      file.write("text");
      file.commit();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(path("none/a.txt")), path("none/a.txt") + ": cannot write: No such file or directory");
  EXPECT_EQ(message(folder_.path()), folder_.path() + ": cannot write: Is a directory");
  EXPECT_EQ(message("/dev/full"), "/dev/full: cannot write: No space left on device");
  EXPECT_EQ(message("/dev/null"), "no error");
}

TEST_F(OutputFiles, AreCompressedByName) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + '\n';
  for (const char* name : {"a.gz", "b.gz"}) {
    OutputFile file(path(name));
    for (std::size_t at = 0; at < text.size(); at += 10'000) file.write(std::string_view(text).substr(at, 10'000));
    file.commit();
  }
  EXPECT_EQ(text_of(path("a.gz")), text_of(path("b.gz")));
  EXPECT_LT(fs::file_size(path("a.gz")), text.size() / 2);
  std::string read(text.size() + 1, ' ');
  gzFile file = gzopen(path("a.gz").c_str(), "rb");
  const int count = gzread(file, read.data(), static_cast<unsigned>(read.size()));
  gzclose(file);
  ASSERT_EQ(static_cast<std::size_t>(count), text.size());
  EXPECT_EQ(read.substr(0, text.size()), text);
}

}  // namespace
}  // namespace orrery
