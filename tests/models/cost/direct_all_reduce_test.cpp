#include "models/cost/direct_all_reduce.h"

#include <gtest/gtest.h>

#include "models/spec/cluster.h"

namespace orrery {
namespace {

NcclModel on_h100(int nodes, int ranks_per_node) {
  return nccl_model(nccl_topology(find_cluster("dgx-h100", nodes), nodes, ranks_per_node));
}

struct TimedAllReduce {
  int ranks;
  Bytes bytes;
  double least_us, most_us;
};

// Times of vLLM's, SGLang's and TensorRT-LLM's own all-reduces on H100, from the fastest to the slowest of the three
// (ai-dynamo/aiconfigurator, systems/data/h100_sxm at 095f58a, Apache-2.0).
TEST(DirectAllReduce, IsAmongThoseMeasuredOnH100) {
  for (const TimedAllReduce& m : std::vector<TimedAllReduce>{{2, 16384, 2.7, 4.5},
                                                             {4, 65536, 3.5, 5.3},
                                                             {4, 1048576, 11.1, 12.9},
                                                             {8, 65536, 4.6, 6.4},
                                                             {8, 262144, 9.3, 10.8},
                                                             {8, 4194304, 30.8, 51.9}}) {
    const NcclModel model = on_h100(1, m.ranks);
    const NcclChoice nccl = nccl_choose(model, CollectiveKind::all_reduce, m.bytes);
    const double us = 1e6 * with_direct_all_reduce(model, m.bytes, nccl).seconds;
    EXPECT_GT(us, 0.85 * m.least_us) << m.ranks << " ranks, " << m.bytes;
    EXPECT_LT(us, 1.15 * m.most_us) << m.ranks << " ranks, " << m.bytes;
  }
}

TEST(DirectAllReduce, LeavesTheRestToNccl) {
  const auto is_direct = [](const NcclModel& model, Bytes bytes) {
    return with_direct_all_reduce(model, bytes, nccl_choose(model, CollectiveKind::all_reduce, bytes)).algorithm ==
           NcclAlgorithm::direct;
  };
  EXPECT_TRUE(is_direct(on_h100(1, 8), 65536));
  EXPECT_FALSE(is_direct(on_h100(1, 8), 64 << 20));
  EXPECT_FALSE(is_direct(on_h100(2, 8), 65536));
  NcclModel pcie = on_h100(1, 8);
  pcie.topology.nvlink_GBps = 0;
  EXPECT_FALSE(is_direct(pcie, 65536));
}

}  // namespace
}  // namespace orrery
