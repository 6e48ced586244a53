// The scripts as text; tests/program/completion_test runs them in their shells.
#include "sim/cli/completion.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/reference.h"

namespace orrery {
namespace {

CommandEntry tool() {
  CommandEntry go{"go", "does it: it's [quick]", "", {}, {}};
  go.options.push_back({{"--device"}, "cpu|cuda", "where", ValueKind::words, {"cpu", "cuda"}, false, false});
  go.options.push_back({{"--set"}, "KEY=VALUE", "a key", ValueKind::keys, {}, false, true});
  return {"tool", "a tool", "", {{{"--quiet"}, "", "say nothing", ValueKind::none, {}, false, false}}, {go}};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Completion, KeysAreThoseOfTheReference) {
  const std::vector<CompletedKey> keys = completed_keys();
  EXPECT_EQ(keys.size(), spec_reference().size());
  const auto schedule = std::ranges::find(keys, "strategy.attention", &CompletedKey::name);
  ASSERT_NE(schedule, keys.end());
  EXPECT_EQ(schedule->words, (std::vector<std::string>{"flash", "unfused"}));
  for (const auto& [key, name] : {std::pair{"strategy.schedule", "zb-h1"},
                                  {"cluster.node", "dgx-h100"},
                                  {"model", "llama-3.1-8b"},
                                  {"cluster.gpu", "h100-sxm"},
                                  {"software.profile", "megatron-core"}}) {
    const std::vector<std::string>& words = std::ranges::find(keys, key, &CompletedKey::name)->words;
    EXPECT_TRUE(std::ranges::find(words, name) != words.end()) << key;
  }
  const auto overlap = std::ranges::find(keys, "strategy.overlap.tensor", &CompletedKey::name);
  EXPECT_EQ(overlap->words, (std::vector<std::string>{"true", "false"}));
}

TEST(Completion, EveryScriptHasCommandsOptionsWordsAndKeys) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string text = completion(shell, tool());
    for (const char* part : {"go", "device", "quiet", "cuda", "strategy.attention", "unfused"})
      EXPECT_TRUE(has(text, part)) << shell << ": " << part;
  }
  EXPECT_THROW(completion("ksh", tool()), Error);
}

TEST(Completion, DescriptionsAreQuoted) {
  EXPECT_TRUE(has(zsh_completion(tool(), {}), "'go:does it\\: it'\\''s \\[quick\\]'"));
  EXPECT_TRUE(has(fish_completion(tool(), {}), "'does it: it\\'s [quick]'"));
}

}  // namespace
}  // namespace orrery
