#include "sim/report/link_side.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

Spec gpt_on(const std::string& cluster, const std::string& strategy) {
  return parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-h100, " + cluster + "}, strategy: " + strategy + "}",
      "names.yaml");
}

// Levels that NICs make: `efficiency` slows all of them, `incast` those to which many send.
TEST(LinkNames, TellSlowNicsFromThoseOfManySenders) {
  const Spec spec =
      gpt_on("nodes: 2, network: {leaf: {nodes: 2}, efficiency: 0.8, incast: {senders: 4, share: 0.5}}", "{data: 16}");
  const Plan plan = make_plan(spec);
  const LinkNames names(plan, spec.cluster, true);
  std::vector<std::string> kinds;
  for (const std::uint8_t level : std::array<std::uint8_t, 3>{0, 1, 2})
    kinds.push_back(names.name({LinkKind::uplink, level, 0, false}));
  EXPECT_EQ(kinds, (std::vector<std::string>{"uplinks of 16 GPUs", "slowest NICs", "NICs of many senders"}));
}

TEST(LinkNames, SayWhichUplinksTheyAre) {
  const Spec spec = gpt_on("nodes: 8, network: {leaf: {nodes: 2, uplinks: 1}}",
                           "{pipeline: 4, data: 16, micro_batch: 1, global_batch: 64}");
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
