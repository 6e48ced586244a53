#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/launch/import.h"

namespace orrery {
namespace {

TEST(ClusterOf, NodesTimesAName) {
  EXPECT_EQ(cluster_of("2xdgx-h100").nodes, 2);
  EXPECT_EQ(cluster_of("2xdgx-h100").node, "dgx-h100");
  EXPECT_EQ(cluster_of("dgx-a100").nodes, 1);
}

TEST(ClusterOf, UnknownNodesAndNoNodesAreRefused) {
  for (const char* name : {"", "2x", "0xdgx-h100", "-1xdgx-h100", "99999999xdgx-h100", "dgx-h1000", "2 x dgx-h100"})
    EXPECT_THROW(cluster_of(name), Error) << name;
}

}  // namespace
}  // namespace orrery
