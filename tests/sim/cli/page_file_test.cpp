#include "sim/cli/page_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

TEST(CommandWords, HasWhatChangesTheResult) {
  const char* words[] = {
      "/usr/bin/orrery", "simulate", "a b.yaml", "--html", "page.html", "--set", "search.tensor=[1,2]",
      "--threads=4",     "--json",   "--quiet",  "it's",   "--threads", "2",     "--html=x",
      "--top",           "3"};
  EXPECT_EQ(command_words(16, words), "orrery simulate 'a b.yaml' --set 'search.tensor=[1,2]' 'it'\\''s' --top 3");
  const char* alone[] = {"orrery", "--html"};
  EXPECT_EQ(command_words(2, alone), "orrery");
}

TEST(PageFile, AppearsWhenItIsWritten) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("page.html");
  { const PageFile given_up(path); }
  EXPECT_FALSE(std::filesystem::exists(path));
  PageFile page(path);
  page.write("a page");
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "a page");
  PageFile(std::nullopt).write("nowhere");
}

// A command that makes no page says so, and leaves no empty file.
TEST(PageFile, RefusesAnEmptyPage) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("page.html");
  {
    PageFile page(path);
    EXPECT_THROW(page.write(""), Error);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PageFile, SaysAtOnceThatItCannotBeWritten) {
  for (const char* path : {"/no/such/folder/page.html", "/", ""}) {
    try {
      const PageFile page{std::string(path)};
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code, 2);
      EXPECT_EQ(std::string(error.what()).find("--html: "), 0U) << error.what();
    }
  }
}

}  // namespace
}  // namespace orrery
