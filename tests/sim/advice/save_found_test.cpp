#include "sim/advice/save_found.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace orrery {
namespace {

const std::string kSmallSpec = ORRERY_SOURCE_DIR "/tests/program/specs/small.yaml";

Common plain() {
  return {.threads = 2, .progress = [](std::string_view) {}};
}

TEST(SaveFound, TheSavedSpecIsTheStrategyThatIsShown) {
  const test::TemporaryFolder folder;
  SearchCommandOptions options;
  options.spec = kSmallSpec;
  options.overrides = {"strategy.schedule=1f1b", "strategy.recompute=none", "strategy.sharding=zero1"};
  options.save = folder.path("best.yaml");
  const std::string text = search_command(options, plain()).text;
  EXPECT_NE(text.find("to repeat it: orrery simulate " + options.save), std::string::npos) << text;
  const Spec best = load_spec(options.save);
  EXPECT_EQ(best.gpus, load_spec(kSmallSpec).gpus);
  EXPECT_NE(text.find(fmt::format("TP{}", best.strategy.tensor)), std::string::npos) << text;
}

TEST(SaveFound, ATerminalGetsNoLongCommand) {
  SearchCommandOptions options;
  EXPECT_EQ(how_to_repeat(options, "orrery simulate SPEC --set a=1", {}),
            "  to repeat it: orrery simulate SPEC --set a=1\n");
  EXPECT_EQ(how_to_repeat(options, "orrery simulate SPEC --set a=1", {.columns = 80}),
            "  to repeat it: --save FILE writes it as a spec\n");
}

}  // namespace
}  // namespace orrery
