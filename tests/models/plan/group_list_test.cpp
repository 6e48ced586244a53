#include "models/plan/group_list.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(GroupList, ListsRanksInOrder) {
  const std::vector<std::int32_t> member_of = {1, 0, 1, 2, 0, 1};
  GroupList list(member_of, 4);
  ASSERT_EQ(list.size(), 4U);
  const std::vector<std::vector<std::int32_t>> expected = {{1, 4}, {0, 2, 5}, {3}, {}};
  std::size_t i = 0;
  for (const auto group : list) EXPECT_EQ(std::vector(group.begin(), group.end()), expected[i++]);
  EXPECT_EQ(i, 4U);
  list.add_list();
  list.add_to_last(7);
  ASSERT_EQ(list.size(), 5U);
  EXPECT_EQ(list[4].front(), 7);
  EXPECT_TRUE(GroupList().empty());
}

}  // namespace
}  // namespace orrery
