#include "models/base/input_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/base/output_file.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

class InputFile : public testing::Test {
 protected:
  const test::TemporaryFolder folder_;
  const std::string path_ = folder_.path("input.gz");

  std::string error() const {
    try {
      read_input(path_, kMostTables);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  void write(const std::string& text) const {
    OutputFile file(path_);
    file.write(text);
    file.commit();
  }
};

TEST_F(InputFile, ReadsPlainAndCompressed) {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += std::to_string(i) + '\n';
  write(text);  // .gz: compressed
  EXPECT_LT(fs::file_size(path_), text.size() / 2);
  EXPECT_EQ(read_input(path_, kMostTables), text);
  std::ofstream(path_) << text;  // the name does not matter
  EXPECT_EQ(read_input(path_, kMostTables), text);
  std::ofstream(path_).flush();
  EXPECT_EQ(read_input(path_, kMostTables), "");
}

TEST_F(InputFile, SaysWhatCannotBeRead) {
  EXPECT_NE(error().find("No such file"), std::string::npos);
  write(std::string(100000, 'x') + "y");
  fs::resize_file(path_, fs::file_size(path_) - 9);
  EXPECT_NE(error().find("is cut short"), std::string::npos);
  EXPECT_THROW(read_input("/tmp", kMostTables), Error);
}

// A file larger than allowed for its kind is refused, so that a few compressed bytes or an endless device cannot fill
// the memory.
TEST_F(InputFile, WhatIsLargerThanItsKindIsRefused) {
  write(std::string(3 << 20, 'x'));
  EXPECT_LT(fs::file_size(path_), 1U << 15);
  EXPECT_EQ(read_input(path_, 3 << 20).size(), std::size_t{3} << 20);
  const auto refusal = [](const std::string& path, std::size_t most) -> std::string {
    try {
      read_input(path, most);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(path_, (3 << 20) - 1), path_ + ": is larger than 2 MiB when inflated");
  EXPECT_EQ(refusal("/dev/zero", 1 << 20), "/dev/zero: is larger than 1 MiB");
}

}  // namespace
}  // namespace orrery
