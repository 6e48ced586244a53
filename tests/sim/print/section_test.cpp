#include "sim/print/section.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Section, IsATitleAndWhatIsBelowIt) {
  const Section section{"title", {"before", "  deeper"}, {{{"a", "", Align::left}, {"b"}}, {{"x", "1"}}}, {"after"}};
  EXPECT_EQ(text_of(section, {}), "title\n  before\n    deeper\n  a  b\n  x  1\n  after\n");
}

TEST(Section, MissingPartsLeaveNoTrace) {
  EXPECT_EQ(text_of(Section{"title", {}, {}, {}}, {}), "");
  EXPECT_EQ(text_of(Section{"", {"line"}, {}, {}}, {}), "  line\n");
  EXPECT_EQ(text_of(Section{"title", {"line"}, {}, {}}, {.colour = true}), "\x1b[1mtitle\x1b[0m\n  line\n");
}

}  // namespace
}  // namespace orrery
