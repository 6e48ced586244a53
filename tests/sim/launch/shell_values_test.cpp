#include "sim/launch/shell_values.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

std::string fields_of(ShellValues& values, const std::string& word) {
  std::string out;
  for (const ShellWord& f : values.fields({word, 7})) out += f.text + "|";
  return out;
}

TEST(ShellValues, VariablesAndTheirDefaults) {
  ShellValues v;
  v.set("A", {{"x y", 1}});
  v.set("E", {{"", 1}});
  EXPECT_EQ(fields_of(v, "$A"), "x|y|");
  EXPECT_EQ(fields_of(v, "\"$A\""), "x y|");
  EXPECT_EQ(fields_of(v, "'$A'"), "$A|");
  EXPECT_EQ(fields_of(v, "p${A}q"), "px|yq|");
  EXPECT_EQ(fields_of(v, "${B:-8}${E:-9}${E-7}"), "89|");
  EXPECT_EQ(fields_of(v, "${B:-${C:-3}}"), "3|");
  EXPECT_EQ(fields_of(v, "${D:=5}$D"), "55|");
  EXPECT_EQ(fields_of(v, "${A:+--flag}${Z:+--other}"), "--flag|");
  EXPECT_EQ(fields_of(v, "$Z/$(nproc)"), "$Z/$(nproc)|");
  EXPECT_EQ(fields_of(v, "$((2*4))"), "8|");
}

TEST(ShellValues, ItemsOfAnArrayKeepTheirLines) {
  ShellValues v;
  v.set("A", {{"--b", 2}, {"1 2", 3}});
  v.set("A", {{"--c", 4}}, true);
  const auto fields = v.fields({"${A[@]}", 9});
  ASSERT_EQ(fields.size(), 3U);
  EXPECT_EQ(fields[1].text, "1 2");
  EXPECT_EQ(fields[2].line, 4);
}

TEST(ShellValues, LinesWithinAQuotedTextAreCounted) {
  ShellValues v;
  v.set("A", {{v.text({"\" \\\n --a 1 \\\n --b\"", 5}), 5}});
  EXPECT_EQ(v.fields({"$A", 20})[2].line, 7);
}

TEST(ShellValues, ATextThatDoublesForeverIsCut) {
  ShellValues v;
  v.set("A", {{"aaaaaaaa", 1}});
  for (int i = 0; i < 100; ++i) v.set("A", {{v.text({"$A$A", 1}), 1}});
  EXPECT_LE(v.find("A")->empty() ? 0U : v.find("A")->front().text.size(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace orrery
