#include "sim/cli/option_tree.h"

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

namespace orrery {
namespace {

TEST(OptionTree, TellsNamesValuesAndKinds) {
  CLI::App app("about", "tool");
  std::string file, device;
  std::vector<std::string> specs, sets;
  bool quiet = false, hidden = false;
  app.add_flag("-q,--quiet", quiet, "say nothing");
  app.add_flag("--secret", hidden)->group("");
  CLI::App& c = *app.add_subcommand("go", "does it");
  c.add_option("SPEC", specs, "what")->required()->type_name("");
  c.add_option("--set", sets, "a key")->allow_extra_args(false)->type_name("KEY=VALUE");
  c.add_option("--trace", file, "a file")->type_name("FILE");
  c.add_option("--device", device, "where")->type_name("cpu|cuda");
  c.footer("example: tool go");
  const CommandEntry tree = option_tree(app);
  EXPECT_EQ(tree.name, "tool");
  ASSERT_EQ(tree.commands.size(), 1U);
  const CommandEntry& go = tree.commands[0];
  EXPECT_EQ(go.about, "does it");
  EXPECT_EQ(go.footer, "example: tool go");
  ASSERT_EQ(go.positionals().size(), 1U);
  EXPECT_TRUE(go.positionals()[0].required && go.positionals()[0].repeats);
  EXPECT_EQ(go.positionals()[0].kind, ValueKind::file);
  std::map<std::string, OptionEntry> options;
  for (const CommandEntry* level : {&tree, &go}) {
    for (const OptionEntry& o : level->flags()) options[o.names.back()] = o;
  }
  EXPECT_EQ(options["--quiet"].names, (std::vector<std::string>{"-q", "--quiet"}));
  EXPECT_EQ(options["--quiet"].kind, ValueKind::none);
  EXPECT_EQ(options["--set"].kind, ValueKind::keys);
  EXPECT_EQ(options["--trace"].kind, ValueKind::file);
  EXPECT_EQ(options["--device"].words, (std::vector<std::string>{"cpu", "cuda"}));
  EXPECT_TRUE(options.contains("--help"));
  EXPECT_FALSE(options.contains("--secret"));
}

}  // namespace
}  // namespace orrery
