#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/launch/settings.h"

namespace orrery {
namespace {

TEST(TreeSettings, MapsBecomeDottedNamesAndListsOneText) {
  const Settings s = read_tree("a:\n  b: True\n  c: [x, y]\n  d: null\n  --e-f: 3\n", "x.yaml");
  EXPECT_EQ(s.find("a.b")->value, "true");
  EXPECT_EQ(s.find("a.c")->value, "x y");
  EXPECT_TRUE(s.find("a.d")->null);
  EXPECT_EQ(s.find("a.e_f")->from, "x.yaml:5");
}

TEST(TreeSettings, TheLastOfEqualKeysCountsAndIsNamed) {
  const Settings s = read_tree("m:\n  a: null\n  b: 1\n  a:\n    c: 8\n", "x.yaml");
  EXPECT_EQ(s.find("m.a.c")->value, "8");
  EXPECT_EQ(s.find("m.a"), nullptr);
  ASSERT_EQ(s.remarks.size(), 1U);
  EXPECT_EQ(s.remarks[0], "x.yaml:4: a: the key is given twice; the last one counts");
}

TEST(TreeSettings, AVariablesDefaultIsItsValue) {
  const Settings s = read_tree("a: ${TP:8}\nb: ${TP:-4}\nc: ${oc.env:TP,2}\nd: ${model.x}\n", "x.yaml");
  EXPECT_EQ(s.find("a")->value, "8");
  EXPECT_EQ(s.find("b")->value, "4");
  EXPECT_EQ(s.find("c")->value, "2");
  EXPECT_EQ(s.find("d")->value, "${model.x}");
}

TEST(TreeSettings, BrokenTextsAreRefusedWithTheirLine) {
  EXPECT_THROW(read_tree("a: [1\nb: 2\n", "x.yaml"), Error);
  EXPECT_THROW(read_tree(std::string(100, '['), "x.yaml"), Error);
}

}  // namespace
}  // namespace orrery
