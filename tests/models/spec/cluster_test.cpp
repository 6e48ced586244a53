#include "models/spec/cluster.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"

namespace orrery {
namespace {

TEST(Cluster, EveryGpuIsWhole) {
  for (std::string_view id : data_names("gpus")) {
    const Gpu gpu = find_gpu(id);
    EXPECT_EQ(gpu.id, id);
    EXPECT_FALSE(gpu.name.empty());
    if (id == "cpu") continue;  // described by the machine's own profile
    EXPECT_GT(gpu.memory_bytes, Bytes{15} << 30) << id;
    EXPECT_GT(gpu.memory_GBps, 0) << id;
    EXPECT_GT(gpu.tflops.size(), 0u) << id;
    EXPECT_EQ(gpu.uncalibrated, gpu.architecture == Architecture::other || is_amd(gpu)) << id;
    EXPECT_EQ(gpu.link_GBps > 0, is_amd(gpu)) << id;
    EXPECT_TRUE(gpu.nvlink_links == 0 || gpu.nvlink_GBps > 0) << id;
  }
  EXPECT_EQ(data_names("gpus").size(), 34u);
}

TEST(Cluster, EveryFigureHasASource) {
  for (const DataFile& file : data_files()) {
    const nlohmann::json json = nlohmann::json::parse(file.text);
    const auto has_source = [](const nlohmann::json& j) { return j.contains("source"); };
    const bool sourced = has_source(json) || json.contains("_source") || json.contains("_sources") ||
                         file.name.starts_with("software/") ||  // each value of theirs has one
                         (json.contains("rows") && std::all_of(json["rows"].begin(), json["rows"].end(), has_source));
    EXPECT_TRUE(sourced) << file.name;
  }
}

TEST(Cluster, EveryNodeIsWhole) {
  for (std::string_view id : data_names("nodes")) {
    const Cluster c = find_cluster(id, 3);
    EXPECT_EQ(c.node_id, id);
    EXPECT_EQ(c.nodes, 3);
    if (id == "localhost") continue;
    EXPECT_EQ(gpus_of(c), 3 * c.gpus_per_node);
    EXPECT_GT(c.nics, 0) << id;
    EXPECT_GT(c.nic_Gbps, 0) << id;
    EXPECT_GE(c.nvlink_domain, c.gpus_per_node) << id;
  }
  EXPECT_EQ(data_names("nodes").size(), 23u);
}

TEST(Cluster, KnowsTheNodesThatTestsElsewhereLeanOn) {
  const Cluster h100 = find_cluster("dgx-h100", 4);
  EXPECT_EQ(h100.gpu.memory_bytes, 85'520'809'984);
  EXPECT_EQ(h100.gpu.compute_capability, 90);
  EXPECT_EQ(h100.host->dram_bytes, Bytes{2} << 40);
  EXPECT_FALSE(h100.amd_cpu);
  const Cluster a100 = find_cluster("dgx-a100", 1);
  EXPECT_EQ(a100.gpu.id, "a100-sxm-80gb");
  EXPECT_TRUE(a100.amd_cpu);
  EXPECT_EQ(a100.gpus_per_pcie_switch, 2);
  EXPECT_EQ(find_cluster("dgx-a100-40gb", 1).gpu.id, "a100-sxm-40gb");
  const Cluster nvl72 = find_cluster("gb200-nvl72", 18);
  EXPECT_EQ(gpus_of(nvl72), 72);
  EXPECT_EQ(nvl72.nvlink_domain, 72);
  EXPECT_FALSE(nvl72.host);
}

TEST(Cluster, PeaksFollowThePrecision) {
  const Gpu h100 = find_gpu("h100-sxm");
  EXPECT_DOUBLE_EQ(peak_flops(h100, Precision::bf16), 989.4e12);
  EXPECT_DOUBLE_EQ(peak_flops(h100, Precision::fp8), 1978.9e12);
  EXPECT_DOUBLE_EQ(peak_flops(find_gpu("b200"), Precision::nvfp4), 9000e12);
  EXPECT_THROW(peak_flops(find_gpu("v100-sxm2-16gb"), Precision::bf16), Error);
  EXPECT_THROW(peak_flops(find_gpu("cpu"), Precision::fp32), Error);
}

TEST(Cluster, AJobHasEqualPartsOfNvlinkDomains) {
  for (const auto& [nodes, gpus] : std::vector<std::pair<std::int64_t, int>>{
           {2, 72}, {18, 72}, {36, 72}, {64, 64}, {32, 64}, {48, 64}, {256, 64}, {30, 60}, {19, 72}}) {
    EXPECT_EQ(nvlink_part(find_cluster("gb300-nvl72", nodes)), gpus) << nodes;
  }
  EXPECT_EQ(nvlink_part(find_cluster("dgx-h100", 64)), 8);
}

TEST(Cluster, NvlinkReachesTheNodeOrThePair) {
  EXPECT_EQ(default_nvlink_domain(find_gpu("h100-sxm"), 8), 8);
  EXPECT_EQ(default_nvlink_domain(find_gpu("a100-pcie-80gb"), 8), 2);
  EXPECT_EQ(default_nvlink_domain(find_gpu("l40s"), 8), 0);
}

TEST(Cluster, UnknownIdsNameTheKnownOnes) {
  try {
    find_gpu("h100-sxn");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean h100-sxm?"), std::string::npos) << e.what();
  }
  EXPECT_THROW(find_cluster("dgx", 1), Error);
  EXPECT_THROW(find_fabric("token-ring"), Error);
}

}  // namespace
}  // namespace orrery
