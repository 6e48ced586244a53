#include "sim/report/link_side.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

TEST(LinkNames, SayWhichUplinksTheyAre) {
  const Spec spec = parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-h100, nodes: 8, network: {leaf: {nodes: 2, uplinks: 1}}}, "
      "strategy: {pipeline: 4, data: 16, micro_batch: 1, global_batch: 64}}",
      "names.yaml");
  const Plan plan = make_plan(spec);
  const LinkNames names(plan, spec.cluster, true);
  const LinkSide up{LinkKind::uplink, 0, 0, false}, nic{LinkKind::nic, 0, 0, true};
  EXPECT_EQ(names.name(up), "uplinks of 16 GPUs");
  EXPECT_EQ(names.of(up, 1), "GPUs 16 to 31, stage 1, sending");
  EXPECT_EQ(names.name(nic), "NIC");
  EXPECT_EQ(names.of(nic, 2), "stage 2, receiving");
  // rails: a leaf for each of 8 GPU indexes, each with one uplink of 400 Gb/s
  EXPECT_DOUBLE_EQ(names.capacity(up), 8 * 50e9);
}

}  // namespace
}  // namespace orrery
