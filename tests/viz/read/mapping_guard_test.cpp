#include "viz/read/mapping_guard.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "viz/read/mapped_text.h"

using namespace orrery;

// A trace that is being copied is cut short and grows again while it is open.
TEST(MappingGuard, AFileThatShrinksReadsAsZeros) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("growing.json");
  std::ofstream(path) << std::string(1'000'000, 'x');
  const MappedText whole(path), other(path);
  EXPECT_EQ(whole.text().front(), 'x');
  EXPECT_EQ(whole.damage(), "");
  std::filesystem::resize_file(path, 100'000);
  EXPECT_EQ(whole.text().back(), '\0');
  EXPECT_EQ(whole.text()[1000], 'x');
  EXPECT_EQ(std::accumulate(whole.text().begin() + 200'000, whole.text().end(), 0), 0);
  EXPECT_NE(whole.damage().find("became shorter"), std::string::npos);
  EXPECT_EQ(other.damage(), "");  // the missing part of this mapping was not read
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(other.text().front(), '\0');
}

TEST(MappingGuard, AnotherFaultEndsTheProgram) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("file");
  std::ofstream(path) << "x";
  const MappedText guarded(path);
  EXPECT_EXIT(std::raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}
