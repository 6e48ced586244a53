#include "models/base/names.h"

#include <gtest/gtest.h>

#include "models/base/precision.h"
#include "models/spec/sharding.h"
#include "models/spec/strategy.h"

namespace orrery {
namespace {

TEST(Names, EditDistanceCountsLetters) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("tensor", "tensor"), 0u);
  EXPECT_EQ(edit_distance("tensr", "tensor"), 1u);
  EXPECT_EQ(edit_distance("tesnor", "tensor"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Names, NearestGivesUpOnStrangers) {
  const std::string_view known[] = {"tensor", "pipeline", "context"};
  EXPECT_EQ(nearest("tesnor", known), "tensor");
  EXPECT_EQ(nearest("pipline", known), "pipeline");
  EXPECT_EQ(nearest("zebra", known), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), known), "");
}

TEST(Names, TablesGoBothWays) {
  for (std::string_view name : precision_names()) EXPECT_EQ(name_of(find_precision(name)), name);
  for (std::string_view name : sharding_names()) EXPECT_EQ(name_of(find_sharding(name)), name);
  EXPECT_EQ(precision_names().size(), 7u);
  EXPECT_EQ(sharding_names().size(), 9u);
  EXPECT_EQ(storage_bytes(Precision::tf32), 4);
  EXPECT_EQ(storage_bytes(Precision::nvfp4), 2);
}

TEST(Names, MessagesStayOneLine) {
  EXPECT_EQ(printable("a\nb\tc\x1b"), "a?b?c?");
  EXPECT_EQ(printable("a\x7f\xc2\x9b\xc3\xa9"), "a??\x9b\xc3\xa9");  // DEL, the C1 control CSI; e acute stays
  EXPECT_TRUE(is_printable("caf\xc3\xa9"));
  EXPECT_FALSE(is_printable("a\xc2\x9b"));
  EXPECT_FALSE(is_printable("a\xff"));
  EXPECT_FALSE(is_printable("\xe2\x82"));
  EXPECT_FALSE(is_printable("\xe0\x80\x80"));
  EXPECT_FALSE(is_printable("\xed\xa0\x80"));
  EXPECT_TRUE(is_printable("\xe2\x82\xac \xf0\x9f\x98\x80"));
}

TEST(Names, NoCharacterIsCutInTwo) {
  EXPECT_EQ(first_characters("abc", 3), "abc");
  EXPECT_EQ(first_characters("abcd", 3), "abc");
  EXPECT_EQ(first_characters("ab\xe2\x82\xac", 4), "ab");
  EXPECT_EQ(first_characters("ab\xe2\x82\xac"
                             "d",
                             5),
            "ab\xe2\x82\xac");
}

TEST(Names, ATextForATerminalKeepsItsColoursAlone) {
  EXPECT_EQ(printable_lines("a\n\x1b[1mb\x1b[0;31m"), "a\n\x1b[1mb\x1b[0;31m");
  EXPECT_EQ(printable_lines("\x1b[2J\x1b]0;x\x07\x1b["), "?[2J?]0;x??[");
}

}  // namespace
}  // namespace orrery
