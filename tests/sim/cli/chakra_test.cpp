#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "sim/cli/commands.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

const std::string kTraced = std::string(ORRERY_SOURCE_DIR) + "/tests/program/specs/small.yaml";

std::string refusal(const ImportOptions& options) {
  try {
    import_chakra_command(options, {});
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code, 2);
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
}

TEST(ChakraCommands, APlanLeavesAsAFileForEachRankAndComesBack) {
  const test::TemporaryFolder folder;
  const Outcome out = export_chakra_command({kTraced, "chakra", {}, folder.path("trace")});
  EXPECT_NE(out.text.find("8 ranks"), std::string::npos) << out.text;
  EXPECT_EQ(folder.files(), 9);  // and one of groups
  Common as_json;
  as_json.json = true;
  const auto one =
      nlohmann::json::parse(import_chakra_command({{folder.path("trace.0.et")}, "dgx-h100", ""}, as_json).text);
  EXPECT_EQ(one.at("ranks"), 8);
  EXPECT_GT(one.at("step_time_s"), 0);
  EXPECT_EQ(one.at("by_rank").size(), 8U);
  const Outcome table = import_chakra_command({{folder.path("trace.0.et")}, "dgx-h100", ""}, {});
  EXPECT_NE(table.text.find("exposed communication"), std::string::npos) << table.text;
}

TEST(ChakraCommands, SayWhatIsMissing) {
  const test::TemporaryFolder folder;
  export_chakra_command({kTraced, "chakra", {}, folder.path("trace")});
  EXPECT_THROW(export_chakra_command({kTraced, "chakra", {}, ""}), Error);
  const std::string first = folder.path("trace.0.et"), third = folder.path("trace.2.et");
  EXPECT_NE(refusal({{first}, "", ""}).find("--on: missing"), std::string::npos);
  EXPECT_NE(refusal({{first}, "dgx-h100", "spec.yaml"}).find("--out: execution traces hold no model"),
            std::string::npos);
  EXPECT_NE(refusal({{first, third}, "dgx-h100", ""}).find("give the files of all ranks"), std::string::npos);
  EXPECT_NE(refusal({{first, first}, "dgx-h100", ""}).find("rank 0 is there twice"), std::string::npos);
  std::ofstream(folder.path("broken.0.et"), std::ios::binary) << "\x05"
                                                              << "ab";
  EXPECT_NE(refusal({{folder.path("broken.0.et")}, "dgx-h100", ""}).find("byte 1: the file ends within a message"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
