#include "sim/launch/shell_words.h"

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

std::string shown(std::string_view text) {
  std::string out;
  for (const ShellCommand& c : shell_commands(text, "x.sh")) {
    for (const ShellWord& w : c.words) out += w.text + "|";
    out += c.ended_by == "\n" ? "n " : c.ended_by + " ";
    if (!c.document.empty()) out += "<" + c.document + ">";
  }
  return out;
}

TEST(ShellWords, WordsCommentsAndContinuations) {
  EXPECT_EQ(shown("a b \\\n  c # d\ne;f && g"), "a|b|c|n e|; f|&& g|n ");
  EXPECT_EQ(shown("a \"b c\" 'd #e' f$(g h)i ${X:-j k}"), "a|\"b c\"|'d #e'|f$(g h)i|${X:-j k}|n ");
}

TEST(ShellWords, ArraysReachOverLines) { EXPECT_EQ(shown("A=(\n  --b 1 # c\n  d\n)\ne"), "A=(|--b|1|d|)|n e|n "); }

TEST(ShellWords, HereDocuments) { EXPECT_EQ(shown("cat <<EOT > f\n{1}\nEOT\nb"), "cat|>|f|n <{1}\n>b|n "); }

TEST(ShellWords, LinesAreCounted) {
  const auto commands = shell_commands("a\n\nb \\\n c\n\"x\ny\" d\n", "x.sh");
  EXPECT_EQ(commands[1].words[1].line, 4);
  EXPECT_EQ(commands[2].words[1].line, 6);
}

TEST(ShellWords, AnOpenQuoteIsRefused) {
  EXPECT_THROW(shell_commands("a\n\"b", "x.sh"), Error);
  EXPECT_THROW(shell_commands("a ${b", "x.sh"), Error);
}

}  // namespace
}  // namespace orrery
