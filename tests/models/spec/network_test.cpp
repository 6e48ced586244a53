#include "models/spec/network.h"

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

TEST(Network, NamesItsKindsAndRoutings) {
  for (const NetworkKind k : {NetworkKind::fat_tree, NetworkKind::rails}) EXPECT_EQ(find_network_kind(name_of(k)), k);
  for (const Routing r : {Routing::adaptive, Routing::ecmp, Routing::d_mod_k}) EXPECT_EQ(find_routing(name_of(r)), r);
  EXPECT_THROW(find_routing("ecpm"), Error);
}

}  // namespace
}  // namespace orrery
