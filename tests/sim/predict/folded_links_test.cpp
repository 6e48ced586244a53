// A class of ranks stands for several on links that they share with other classes.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Picoseconds step(const Spec& spec, bool unfolded) { return predict(spec, unfolded).trace.step_time; }

Spec gpt2(std::string_view cluster, std::string_view software, std::string_view strategy) {
  return parse_spec(fmt::format("{{model: gpt2, sequence: 1024, cluster: {}, software: {}, strategy: {}}}", cluster,
                                software, strategy),
                    "links.yaml");
}

// A sum over nodes that stands for the flows of four ranks on the NIC loads the link between two cards as one rank
// does.
TEST(FoldedLinks, AreThoseOfOneRank) {
  const Spec spec =
      gpt2("{gpu: rtx-3090, gpus_per_node: 8, nodes: 4, nics: 2, nic_Gbps: 200, fabric: infiniband}", "orrery",
           "{tensor: 2, pipeline: 8, data: 2, global_batch: 32, schedule: vocab-1f1b, sharding: zero3, "
           "rank_order: dp-tp-cp-pp}");
  EXPECT_EQ(step(spec, true), step(spec, false));
}

// A rank beside a laggard on a NIC meets its transfers at other times than ranks elsewhere meet each other's.
TEST(FoldedLinks, KnowLaggardsOnTheSameNic) {
  Spec spec = gpt2("{gpu: h800-sxm, gpus_per_node: 4, nodes: 2, nics: 2, nic_Gbps: 100, fabric: infiniband}",
                   "megatron-core", "{tensor: 4, data: 2, sharding: fsdp-grad-op, global_batch: 8}");
  spec.cluster.stragglers = {{0, 1.3}};
  EXPECT_EQ(step(spec, true), step(spec, false));
}

}  // namespace
}  // namespace orrery
