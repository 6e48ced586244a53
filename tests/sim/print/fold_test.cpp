#include "sim/print/fold.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "models/base/names.h"

#include "sim/print/table.h"

namespace orrery {
namespace {

using Lines = std::vector<std::string>;

TEST(Wrapped, BreaksAtBlanksAndWithinLongWords) {
  EXPECT_EQ(wrapped("one two three", 40), Lines{"one two three"});
  EXPECT_EQ(wrapped("one two three", 8), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("a tensor-parallel group", 12), (Lines{"a", "tensor-", "parallel", "group"}));
  EXPECT_EQ(wrapped("abcdefghij", 4), (Lines{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrapped("ΨΨΨΨΨΨ", 4), (Lines{"ΨΨΨΨ", "ΨΨ"}));
  EXPECT_EQ(wrapped("", 4), Lines{""});
}

TEST(Fold, LeavesTextAsItIsWithoutALimit) {
  const std::string text = "a line that is wide enough to be folded\n\n  and another\n";
  EXPECT_EQ(fold(text, 0), text);
  EXPECT_EQ(fold(text, 60), text);
}

TEST(Fold, LaterLinesBeginBelowTheSecondPart) {
  EXPECT_EQ(fold("  step time  5.32 s, which is more than it was\n", 40),
            "  step time  5.32 s, which is more than\n"
            "             it was\n");
  EXPECT_EQ(fold("  remarks have no second part that they could hang from\n", 40),
            "  remarks have no second part that they\n"
            "    could hang from\n");
}

TEST(Fold, CommandsStayCommands) {
  EXPECT_EQ(fold("example: orrery simulate examples/a.yaml --set strategy.tensor=4\n", 40),
            "example: orrery simulate \\\n"
            "  examples/a.yaml --set \\\n"
            "  strategy.tensor=4\n");
}

// Whatever the text, no line is wider, and no letter is lost.
TEST(Fold, IsNeverWiderAndLosesNothing) {
  const std::string text =
      "x\n  alive then: 8.64 GiB mlp up output x 79, 4.32 GiB activation output x 79, 1.56 GiB qkv output x 80\n"
      "averylongwordwithoutanyblankinitthatiswiderthantheterminalisbyalot\n"
      "  strategy.parameter_server.snapshot_every   default   every so many steps a snapshot is written\n\n";
  const auto letters = [](std::string t) {
    std::erase_if(t, [](char c) { return c == ' ' || c == '\n'; });
    return t;
  };
  for (std::size_t columns = 20; columns < 90; columns += 7) {
    const std::string folded = fold(text, columns);
    EXPECT_EQ(letters(folded), letters(text));
    for (std::size_t start = 0; start < folded.size();) {
      const std::size_t end = folded.find('\n', start);
      EXPECT_LE(width_of(folded.substr(start, end - start)), columns);
      start = end + 1;
    }
  }
}

TEST(OneLine, HasWordsThatPeopleWrite) {
  EXPECT_EQ(one_line("a.yaml: gpus: 3 is too few"), "a.yaml: gpus: 3 is too few");
  EXPECT_EQ(one_line("two\nlines \x1b[2J"), "two?lines ?[2J");
  EXPECT_EQ(one_line(""), "");
  const std::string path = "/home/" + std::string(150, 'd') + "/a.yaml: is no spec";
  EXPECT_EQ(one_line(path), path);
  EXPECT_EQ(one_line("--pin " + std::string(60'000, 'a') + "[: is no pattern "),
            "--pin " + std::string(60, 'a') + "..." + std::string(18, 'a') + "[: is no pattern ");
  std::string accents;  // characters of two bytes are not cut in two
  for (int i = 0; i < 500; ++i) accents += "\u00e9";
  EXPECT_TRUE(is_printable(one_line("x" + accents)));
  EXPECT_LT(one_line(accents).size(), 100U);
}

TEST(TerminalColumns, AreThoseOfTheEnvironment) {
  ::setenv("COLUMNS", "72", 1);
  EXPECT_EQ(terminal_columns(false), 72U);
  ::setenv("COLUMNS", "3", 1);
  EXPECT_EQ(terminal_columns(false), 40U);
  ::setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(terminal_columns(false), 0U);
  ::unsetenv("COLUMNS");
  EXPECT_EQ(terminal_columns(false), 0U);
}

}  // namespace
}  // namespace orrery
