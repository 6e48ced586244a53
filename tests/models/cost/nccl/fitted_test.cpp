#include "models/cost/nccl/fitted.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(FittedCollectives, ArePartsOfRates) {
  const FittedCollectives& f = fitted_collectives();
  for (const double part :
       {f.nvls_link_part, f.nvlink_to_all_part, f.nic_part, f.nic_to_all_part, f.links_to_all_part, f.rccl_nic_part}) {
    EXPECT_GT(part, 0.8);
    EXPECT_LT(part, 1.05);
  }
  for (const NcclOnOneNode& node : f.one_node) {
    EXPECT_GT(node.start_us, 0);
    EXPECT_GT(node.hop_us, 0);
    EXPECT_GE(node.ll_part, 1);
    EXPECT_GE(node.ring_part, 1);
  }
  EXPECT_GT(f.start_us, 0);
  EXPECT_GT(f.nvls_channel_GBps, 0);
  EXPECT_GT(f.most_to_many_peers_GBps, 0);
}

}  // namespace
}  // namespace orrery
