#include "viz/read/archive.h"

#include <gtest/gtest.h>

#include <fstream>

#include "models/base/input_file.h"
#include "tests/temporary_folder.h"

namespace orrery {

struct Shelf {
  std::string name;
  std::vector<std::string> books;
  MappedColumn<double> weights;
  int number = 0;
};
template <class A>
void fields(A& a, Shelf& s) {
  a(s.name);
  a(s.books);
  a(s.weights);
  a(s.number);
}

}  // namespace orrery

using namespace orrery;

namespace {

// Large enough for more than one piece of the sum.
std::string write_shelf(const std::string& path) {
  Shelf shelf{"top", {"a", "", "third"}, std::vector<double>(50'000, 0.5), 7};
  ArchiveWriter writer(path);
  writer(shelf);
  writer.commit();
  return read_input(path, kMostMeasurements);
}

}  // namespace

TEST(Archive, WhatIsWrittenComesBack) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("a");
  write_shelf(path);
  Shelf shelf;
  {
    ArchiveReader reader(path);
    reader(shelf);
  }
  EXPECT_EQ(shelf.name, "top");  // and the column is still mapped
  EXPECT_EQ(shelf.books, (std::vector<std::string>{"a", "", "third"}));
  ASSERT_EQ(shelf.weights.size(), 50'000u);
  EXPECT_EQ(shelf.weights.back(), 0.5);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(shelf.weights.data()) % 8, 0u);
  EXPECT_EQ(shelf.number, 7);
}

TEST(Archive, AppearsOnlyWhole) {
  const test::TemporaryFolder folder;
  {
    ArchiveWriter writer(folder.path("a"));
    int one = 1;
    writer(one);
  }
  EXPECT_EQ(folder.files(), 0);
}

TEST(Archive, WhatIsCutOrDamagedIsNone) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("a");
  const std::string whole = write_shelf(path);
  const auto refuses = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_THROW(ArchiveReader{path}, BrokenArchive) << text.size();
  };
  refuses("");
  refuses("short");
  refuses(whole.substr(0, whole.size() - 1));
  refuses(whole.substr(0, whole.size() / 2));
  for (const std::size_t at : {std::size_t{3}, whole.size() / 2, whole.size() - 3}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    refuses(damaged);
  }
  EXPECT_THROW(ArchiveReader(folder.path("none")), BrokenArchive);
}

TEST(Archive, AReaderNeverGoesPastTheEnd) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("a");
  ArchiveWriter writer(path);
  std::uint64_t many = 1'000'000;
  writer(many);
  writer.commit();
  MappedColumn<double> column;
  EXPECT_THROW(ArchiveReader{path}(column), BrokenArchive);
  std::string text;
  EXPECT_THROW(ArchiveReader{path}(text), BrokenArchive);
}
