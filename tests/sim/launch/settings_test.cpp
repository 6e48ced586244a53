#include "sim/launch/settings.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

std::string value_in(const Settings& settings, std::string_view name) {
  const Setting* s = settings.find(name);
  return s == nullptr ? "absent" : s->value + " at " + s->from;
}

TEST(Settings, TheSyntaxIsThatOfTheNameOrElseOfTheText) {
  EXPECT_EQ(value_in(read_settings("[a]\nb = 1\n", "x.toml"), "a.b"), "1 at x.toml:2");
  EXPECT_EQ(value_in(read_settings("[a]\nb = 1\n", "x"), "a.b"), "1 at x:2");
  EXPECT_EQ(value_in(read_settings("{\"a\":\n\t{\"b\": 1}}", "x"), "a.b"), "1 at x:2");
  EXPECT_EQ(value_in(read_settings("a:\n  b: 1\n", "x"), "a.b"), "1 at x:2");
  EXPECT_EQ(value_in(read_settings("run me --b-c 1", "x"), "b_c"), "1 at x:1");
  EXPECT_EQ(value_in(read_settings("#!/bin/sh\nrun --b\n", "x"), "b"), "true at x:2");
}

TEST(Settings, TheLastOfANameIsFound) { EXPECT_EQ(value_in(read_settings("run --b 1 --b 2", "x"), "b"), "2 at x:1"); }

}  // namespace
}  // namespace orrery
