// Servers' links as what limits a step.
#include "sim/price_servers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/predict.h"

namespace orrery {
namespace {

// Workers on one GPU of each machine, so that every one has a NIC.
double step(int servers, double nic_Gbps, const std::string& sharding = "parameter-server") {
  const std::string more = sharding == "parameter-server"
                               ? fmt::format(", parameter_server: {{servers: {}, colocated: false}}", servers)
                               : "";
  const Spec spec = parse_spec(
      fmt::format("model: {{name: small, layers: 8, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}}\n"
                  "sequence: 1024\ncluster: {{gpu: h100-sxm, gpus_per_node: 1, nodes: 64, nics: 1, nic_Gbps: {}, "
                  "fabric: infiniband, host: {{dram_GiB: 1024, dram_GBps: 1000000}}}}\ngpus: 16\nsoftware: {{profile: "
                  "orrery, cuda_graphs: true}}\nstrategy: {{data: 16, micro_batch: 8, global_batch: 128, sharding: "
                  "{}{}}}\n",
                  nic_Gbps, sharding, more),
      "case");
  return predict(spec).report.step_time_s;
}

// One server for sixteen workers: half the link speed takes twice the time beyond what the step takes anyway, at every
// speed. With as many servers as workers a step is as good as an all-reduce's, which passes as much.
TEST(PriceServers, OneServersLinkLimitsTheStepAtEverySpeed) {
  constexpr double kFast = 1e6;
  const double alone = step(1, kFast);
  for (const double nic : {25.0, 50.0, 100.0, 200.0}) {
    const double slow = step(1, nic) - alone, fast = step(1, 2 * nic) - alone;
    EXPECT_NEAR(slow / fast, 2, 0.1) << nic;
    EXPECT_GT(step(1, nic), 4 * step(16, nic)) << nic;
    EXPECT_LT(step(16, nic), 1.5 * step(0, nic, "none")) << nic;
  }
  // Twice the servers, twice the links.
  EXPECT_NEAR((step(1, 25) - alone) / (step(2, 25) - alone), 2, 0.1);
  EXPECT_NEAR((step(2, 25) - alone) / (step(4, 25) - alone), 2, 0.2);
}

}  // namespace
}  // namespace orrery
