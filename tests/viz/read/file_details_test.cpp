#include "viz/read/file_details.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

using namespace orrery;

TEST(FileDetails, AreReadAtTheEventsPlace) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("t.json");
  std::ofstream(path) << R"([{"name":"a","args":{"correlation":3,"layer":4}}])";
  const FileDetails details(path);
  EXPECT_EQ(detail_named(details.details(1), "layer"), "4");
  EXPECT_EQ(details.ids(1).correlation, 3u);
  EXPECT_TRUE(details.details(1000).empty());  // the file is shorter by now
  EXPECT_EQ(details.shape(1000), "");
}

TEST(FileDetails, OfAFileThatIsGoneSaySo) {
  const test::TemporaryFolder folder;
  const FileDetails details(folder.path("none.json"));
  ASSERT_EQ(details.details(1).size(), 1u);
  EXPECT_NE(details.details(1)[0].second.find("none.json"), std::string::npos);
  EXPECT_EQ(details.ids(1).correlation, 0u);
}
