#include "models/base/once_by_name.h"

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

TEST(OnceByName, MakesAValueOnceAndKeepsNoFailure) {
  OnceByName<int> values;
  int made = 0;
  const auto make = [&] { return ++made; };
  const int& one = values.of("one", make);
  EXPECT_EQ(one, 1);
  EXPECT_EQ(values.of("two", make), 2);
  EXPECT_EQ(&values.of("one", make), &one);
  EXPECT_THROW(values.of("three", []() -> int { throw Error("no"); }), Error);
  EXPECT_EQ(values.of("three", make), 3);
}

}  // namespace
}  // namespace orrery
