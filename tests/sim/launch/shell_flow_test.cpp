#include "sim/launch/shell_flow.h"

#include <gtest/gtest.h>

#include "sim/launch/settings.h"

namespace orrery {
namespace {

// The options that a script's reached commands have.
std::string reached(const std::string& text) {
  std::string out;
  for (const Setting& s : read_shell(text, "x.sh").all) out += s.name + " ";
  return out;
}

TEST(ShellFlow, TheFirstTrueBranchIsTaken) {
  const std::string script =
      "if [ $S == \"1B\" ]; then\n run --a\nelif [ $S = 2B ]; then\n run --b\nelse\n run --c\nfi\nrun --d";
  EXPECT_EQ(reached("S=1B\n" + script), "a d ");
  EXPECT_EQ(reached("S=2B\n" + script), "b d ");
  EXPECT_EQ(reached("S=3B\n" + script), "c d ");
}

TEST(ShellFlow, ConditionsOfNumbersAndEmptyTexts) {
  EXPECT_EQ(reached("N=4\nif [[ $N -gt 3 ]] && [ -n \"$N\" ]; then run --a; fi"), "a ");
  EXPECT_EQ(reached("N=4\nif [[ $N -gt 4 ]] || [ -z \"$M\" ]; then run --a; fi"), "a ");
  EXPECT_EQ(reached("if [ ! -z \"$M\" ]; then run --a; fi\n[ -z \"$M\" ] && run --b\nrun --c"), "b c ");
  EXPECT_EQ(reached("if [ 1 == 2 ]; then if [ 1 == 1 ]; then run --a; fi; else run --b; fi"), "b ");
}

TEST(ShellFlow, CaseTakesTheFirstPatternThatMatches) {
  const std::string script = "case $S in\n 7B|8B)\n run --a ;;\n 70*) run --b\n ;;\n *) run --c ;;\nesac\nrun --d";
  EXPECT_EQ(reached("S=8B\n" + script), "a d ");
  EXPECT_EQ(reached("S=70B\n" + script), "b d ");
  EXPECT_EQ(reached("S=1B\n" + script), "c d ");
}

TEST(ShellFlow, WhatDependsOnFilesIsUndecided) {
  const Settings s = read_shell("if [ -f x ]; then\n run --a\nfi\nrun --b", "x.sh");
  EXPECT_EQ(s.find("a"), nullptr);
  ASSERT_EQ(s.remarks.size(), 1U);
  EXPECT_EQ(s.remarks[0].substr(0, 6), "x.sh:1");
}

TEST(ShellFlow, LoopsRunOnceAndExitEnds) {
  EXPECT_EQ(reached("for X in a b; do\n run --$X\ndone\nexit 0\nrun --c"), "a ");
}

}  // namespace
}  // namespace orrery
