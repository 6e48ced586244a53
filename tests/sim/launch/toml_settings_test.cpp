#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/launch/settings.h"

namespace orrery {
namespace {

std::string refusal_of(const std::string& text) {
  try {
    read_toml(text, "x.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}
std::string all_of(const std::string& text) {
  std::string out;
  for (const Setting& s : read_toml(text, "x.toml").all) out += s.name + "=" + s.value + "@" + s.from.substr(7) + " ";
  return out;
}

TEST(TomlSettings, ValuesHaveTheirLines) {
  EXPECT_EQ(all_of("# comment\n[a]\nb = \"x#\"  # more\nc=true\nd = [\"p\", 'q', ]\n[a.e]\nf = 1_000\ng = 0.5\n"),
            "a.b=x#@3 a.c=true@4 a.d=p q@5 a.e.f=1000@7 a.e.g=0.5@8 ");
}

// The examples of toml.io's specification, in short.
TEST(TomlSettings, TheWholeSyntax) {
  EXPECT_EQ(all_of("a.\"b c\".d = 'x\\y'\n"), "a.b c.d=x\\y@1 ");
  EXPECT_EQ(all_of("a = {b = 1, c = {d = [1, [2, 3]]}}\n"), "a.b=1@1 a.c.d=1 2 3@1 ");
  EXPECT_EQ(all_of("a = [\n  1, # one\n  2\n]\nb = -1e-3\r\n"), "a=1 2@1 b=-1e-3@5 ");
  EXPECT_EQ(all_of("a = \"\"\"x\ny\"\"\"\nb = 1979-05-27 07:32:00\nc = +5\n"),
            "a=x\ny@1 b=1979-05-27 07:32:00@3 c=5@4 ");
  EXPECT_EQ(all_of("[[a]]\nb = 1\n[[a]]\nb = 2\n"), "a.b=1@2 a.b=2@4 ");
}

TEST(TomlSettings, BrokenTextsAreRefusedInOneLine) {
  const std::string advice = "; mend the line, or name a file of another format";
  EXPECT_EQ(refusal_of("a = 1\nb = \n"), "x.toml:2: not TOML: a word is missing" + advice);
  EXPECT_EQ(refusal_of("a = 1\na = 2\n"), "x.toml:2: not TOML: a is given twice" + advice);
  EXPECT_EQ(refusal_of("a = \"x\n"), "x.toml:1: not TOML: a quote is not closed" + advice);
  EXPECT_EQ(refusal_of("a = 1 2\n"), "x.toml:1: not TOML: a line has more than its value" + advice);
  for (const std::string text :
       {"a", "[a", "a = [1", "a = {b = 1", "a = yes", "'/\x8e\x8e\x8e'\x8e\x8e", "= 1", "a = \"\\"})
    EXPECT_NE(refusal_of(text), "accepted") << text;
  for (const char* deep : {"[", "{a=", "["}) {
    std::string text = "a = ";
    for (int i = 0; i < 100'000; ++i) text += deep;
    EXPECT_NE(refusal_of(text), "accepted");
  }
  EXPECT_NE(refusal_of("a" + std::string(5000, '.') + " = 1"), "accepted");
}

}  // namespace
}  // namespace orrery
