#include "viz/read/mapped_text.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "models/base/error.h"
#include "models/base/output_file.h"
#include "tests/temporary_folder.h"

using namespace orrery;

namespace {

std::string written(const std::string& path, const std::string& text) {
  OutputFile file(path);  // compresses what ends in .gz
  file.write(text);
  file.commit();
  return path;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i * 7919 % 100'003) + '\n';
  return text;
}

}  // namespace

TEST(MappedText, HoldsAFileCompressedOrNot) {
  const test::TemporaryFolder folder;
  const std::string text = long_text();
  for (const char* name : {"a.json", "a.json.gz"}) {
    const std::string path = written(folder.path(name), text);
    const MappedText mapped(path);
    EXPECT_EQ(mapped.text(), text) << name;
    EXPECT_EQ(mapped.damage(), "");
    EXPECT_EQ(beginning_of(path, 100), text.substr(0, 100)) << name;
    EXPECT_EQ(beginning_of(path, text.size() + 100), text) << name;
  }
  EXPECT_EQ(MappedText(written(folder.path("empty"), "")).text(), "");
}

TEST(MappedText, LeavesAByteOrderMarkOut) {
  const test::TemporaryFolder folder;
  for (const char* name : {"a.json", "a.json.gz"}) {
    const std::string path = written(folder.path(name), "\xef\xbb\xbf[]");
    EXPECT_EQ(MappedText(path).text(), "[]") << name;
    EXPECT_EQ(beginning_of(path, 100), "[]") << name;
  }
}

TEST(MappedText, KeepsWhatADamagedFileHeld) {
  const test::TemporaryFolder folder;
  const std::string text = long_text(), path = written(folder.path("a.gz"), text);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const MappedText mapped(path);
  EXPECT_NE(mapped.damage().find("cut short or damaged"), std::string::npos) << mapped.damage();
  EXPECT_GT(mapped.text().size(), text.size() / 4);
  EXPECT_EQ(mapped.text(), std::string_view(text).substr(0, mapped.text().size()));
}

TEST(MappedText, SaysWhatCannotBeRead) {
  const test::TemporaryFolder folder;
  for (const std::string& path : {folder.path(), folder.path("none")}) {
    EXPECT_THROW(MappedText{path}, Error);
    EXPECT_THROW(beginning_of(path, 10), Error);
  }
}

TEST(MappedText, StopsWhenToldTo) {
  const test::TemporaryFolder folder;
  const std::string path = written(folder.path("a.gz"), long_text());
  EXPECT_THROW(MappedText(path, [](double) { return false; }), Cancelled);
}
