// The links of parameter servers as the bottleneck of a step.
#include "sim/cost/server_costs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// Step time with workers on one GPU of each machine, so that every worker has a NIC.
double step(int servers, double nic_Gbps, const std::string& sharding = "parameter-server") {
  const std::string more = sharding == "parameter-server"
                               ? fmt::format(", parameter_server: {{servers: {}, colocated: false}}", servers)
                               : "";
  const Spec spec = parse_spec(
      fmt::format("model: {{name: small, layers: 8, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}}\n"
                  "sequence: 1024\ncluster: {{gpu: h100-sxm, gpus_per_node: 1, nodes: 64, nics: 1, nic_Gbps: {}, "
                  "fabric: infiniband, host: {{dram_GiB: 1024, dram_GBps: 1000000}}}}\ngpus: 16\nsoftware: {{profile: "
                  "orrery, cuda_graphs: true}}\nstrategy: {{data: 16, micro_batch: 8, global_batch: 128, sharding: "
                  "{}{}, overlap: {{gradient_reduce: false, parameter_gather: false}}}}\n",
                  nic_Gbps, sharding, more),
      "case");
  return predict(spec).report.step_time_s;
}

// One server for sixteen workers: half the link speed takes twice the time beyond what the step takes anyway, at every
// speed that the machines' own links let through. With as many servers as workers a step is as good as an all-reduce's,
// which passes as much.
TEST(PriceServers, OneServersLinkLimitsTheStepAtEverySpeed) {
  const double alone = 2 * step(1, 50) - step(1, 25);  // time of a step with infinitely fast links
  for (const double nic : {25.0, 50.0, 100.0}) {       // 400 Gb/s are more than a port of PCIe passes
    EXPECT_NEAR((step(1, nic) - alone) / (step(1, 2 * nic) - alone), 2, 0.02) << nic;
    EXPECT_GT(step(1, nic) - alone, 8 * (step(16, nic) - alone)) << nic;
    EXPECT_LT(step(16, nic), 1.5 * step(0, nic, "none")) << nic;
  }
  // Twice the servers, twice the links.
  EXPECT_NEAR((step(1, 25) - alone) / (step(2, 25) - alone), 2, 0.02);
  EXPECT_NEAR((step(2, 25) - alone) / (step(4, 25) - alone), 2, 0.04);
}

// The machine of a server holds R ranges in chains of R servers, and hands the sums on R - 1 times.
TEST(PriceServers, ChainsMultiplyWhatServersHoldAndSend) {
  const auto report = [](int copies) {
    return predict(parse_spec(
                       fmt::format("model: {{name: small, layers: 8, hidden: 1024, heads: 16, feed_forward: 4096, "
                                   "vocab: 32000}}\nsequence: 1024\ncluster: {{node: dgx-h100, nodes: 6}}\nsoftware: "
                                   "orrery\nstrategy: {{data: 16, clip: 0, global_batch: 16, sharding: "
                                   "parameter-server, parameter_server: {{servers: 4, colocated: false, replicas: "
                                   "{}}}}}\n",
                                   copies),
                       "case"))
        .report;
  };
  const auto bytes = [](const Report& r, const std::string& op) {
    double sum = 0;
    for (const CommunicationRow& row : r.communication) sum += row.op == op ? row.bytes_per_gpu : 0;
    return sum;
  };
  const Report one = report(1);
  for (const int copies : {2, 3}) {
    const Report r = report(copies);
    EXPECT_NEAR(static_cast<double>(r.memory.tier_peak[index_of(MemoryTier::host)]),
                static_cast<double>(copies * one.memory.tier_peak[index_of(MemoryTier::host)]), 1e3);
    // Each of sixteen workers sends its gradients, and chains send the sum once more for every further copy.
    EXPECT_NEAR(bytes(r, "push") / bytes(one, "push"), 1 + (copies - 1) / 16.0, 1e-4) << copies;
    EXPECT_NEAR(bytes(r, "pull") / bytes(one, "pull"), 1, 1e-6) << copies;
    EXPECT_GT(r.step_time_s, one.step_time_s);
  }
}

}  // namespace
}  // namespace orrery
