#include "exec/memory/disk_store.h"

#include <cstdlib>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

TEST(DiskStore, HoldsWhatWasWrittenAndZerosElsewhere) {
  DiskStore disk;
  const std::int64_t first = disk.take(5000), second = disk.take(100);
  EXPECT_GE(second, first + 5000);
  std::vector<std::byte> a(5000, std::byte{1}), b(100, std::byte{2}), read(5000);
  std::thread other([&] { disk.write(b.data(), second, b.size()); });
  disk.write(a.data() + 10, first + 10, a.size() - 10);
  other.join();
  disk.read(read.data(), first, read.size());
  EXPECT_EQ(read[9], std::byte{0});
  EXPECT_EQ(std::vector(read.begin() + 10, read.end()), std::vector(a.begin() + 10, a.end()));
  disk.read(read.data(), second, 100);
  EXPECT_EQ(std::vector(read.begin(), read.begin() + 100), b);
}

TEST(DiskStore, SaysWhereThereIsNoRoom) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/does/not/exist", 1);
  DiskStore disk;
  try {
    disk.take(10);
    ADD_FAILURE() << "took room in a folder that is not there";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("/does/not/exist: no file"), std::string::npos) << e.what();
  }
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", kept.c_str(), 1);
}

}  // namespace
}  // namespace orrery
