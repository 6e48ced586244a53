#include "models/base/installed.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace orrery {
namespace {

TEST(Installed, LooksBesideTheProgramAndUnderItsPrefix) {
  const std::vector<std::string> folders = companion_folders("/opt/orrery/bin");
  ASSERT_EQ(folders.size(), 3U);
  EXPECT_EQ(folders[0], "/opt/orrery/bin");
  EXPECT_EQ(folders[1], "/opt/orrery/exec");
  EXPECT_EQ(folders[2], "/opt/orrery/lib/orrery");
}

TEST(Installed, FindsThisProgramAndNoOther) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(companion(self.filename().string()), self.string());
  EXPECT_EQ(companion("no-such-program"), "");
  EXPECT_EQ(companion(".."), "");
}

}  // namespace
}  // namespace orrery
