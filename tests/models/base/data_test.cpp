#include "models/base/data.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

TEST(Data, FilesAreSortedByName) {
  EXPECT_TRUE(std::is_sorted(data_files().begin(), data_files().end(),
                             [](const DataFile& a, const DataFile& b) { return a.name < b.name; }));
}

TEST(Data, HasAVersionOfTwelveDigits) {
  EXPECT_EQ(data_version().size(), 12U);
  EXPECT_EQ(data_version().find_first_not_of("0123456789abcdef"), std::string_view::npos);
}

TEST(Data, EveryFileIsFoundByItsNameAndListedInItsFolder) {
  for (const DataFile& file : data_files()) {
    EXPECT_EQ(data_file(file.name), file.text);
    const std::size_t slash = file.name.rfind('/');
    if (slash == std::string_view::npos) continue;
    const auto names = data_names(file.name.substr(0, slash));
    const std::string base(file.name.substr(slash + 1));
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](auto name) { return std::string(name) + ".json" == base; }))
        << file.name;
  }
}

TEST(Data, AnUnknownFileIsAnErrorThatListsTheKnownOnesOfItsFolder) {
  try {
    data_file("gpus/no-such-gpu.json");
    FAIL() << "found a file that does not exist";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.exit_code, 2);
    EXPECT_NE(message.find("no-such-gpu"), std::string::npos) << message;
    for (const auto name : data_names("gpus")) EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}

TEST(Data, AFolderThatIsNotThereHasNoFiles) { EXPECT_TRUE(data_names("no-such-folder").empty()); }

}  // namespace
}  // namespace orrery
