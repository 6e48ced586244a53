#include "viz/timeline/pattern.h"

#include <chrono>

#include <gtest/gtest.h>

#include "models/base/error.h"

using namespace orrery;

TEST(Pattern, FindsWhatECMAScriptsWould) {
  struct Case {
    const char *pattern, *text;
    bool found;
  };
  const Case cases[] = {{"", "x", true},
                        {"", "", true},
                        {"abc", "xABCx", true},
                        {"a.c", "a\nc", false},
                        {"a.c", "abc", true},
                        {"^a", "ba", false},
                        {"^b", "ba", true},
                        {"a$", "ba", true},
                        {"b$", "ba", false},
                        {"^$", "", true},
                        {"^$", "a", false},
                        {"a|b|cd", "xcdx", true},
                        {"^(a|b)+$", "abba", true},
                        {"^(a|b)+$", "abca", false},
                        {"^(?:ab){2,3}$", "ababab", true},
                        {"^(?:ab){2,3}$", "abababab", false},
                        {"^a{2}$", "aa", true},
                        {"^a{2,}$", "a", false},
                        {"^a{0,2}$", "aaa", false},
                        {"^ab?c$", "ac", true},
                        {"^a*?b$", "aaab", true},
                        {"stage [01].*compute", "Stage 1 (ranks 0): COMPUTE", true},
                        {"stage [01].*compute", "stage 2: compute", false},
                        {"[^0-9]", "123", false},
                        {"[^0-9]", "12a", true},
                        {"[a-c]$", "xB", true},
                        {"[]a]", "a", false},
                        {"[\\]a]", "]", true},
                        {"[a-]", "-", true},
                        {"\\d+\\s\\w", "lane 42 x", true},
                        {"\\D", "42", false},
                        {"\\S", " ", false},
                        {"\\(x\\)", "(X)", true},
                        {"()*x", "x", true},
                        {"(a*)*b", "aaaa", false}};
  for (const Case& c : cases) EXPECT_EQ(Pattern(c.pattern).found_in(c.text), c.found) << c.pattern << " in " << c.text;
}

TEST(Pattern, RefusesWhatIsNone) {
  for (const char* text :
       {"(", ")", "[", "a**", "*a", "{", "a{2", "a{3,2}", "a{9999}", "[b-a]", "\\", "\\1", "(?=a)", "a)b", "^*"})
    EXPECT_THROW(Pattern{text}, Error) << text;
  EXPECT_THROW(Pattern(std::string(50'000, '(') + std::string(50'000, ')')), Error);
  EXPECT_THROW(Pattern("((a{100}){100}){100}"), Error);
  EXPECT_THROW(Pattern(std::string(100'000, 'a')), Error);
}

// A search that goes back takes time exponential in the stars, and a stack as deep as the text is long.
TEST(Pattern, TakesTimeInProportionToTheText) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(Pattern("(.*)*(.*)*(.*)*x").found_in(std::string(100'000, 'a')));
  EXPECT_FALSE(Pattern("(a|aa)+$").found_in(std::string(100'000, 'a') + "b"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}
