#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/nccl.h"

namespace orrery {
namespace {

// A measured sweep of tests/data/nccl_sweeps.json: public nccl-tests output and the like, each with its source there.
struct Sweep {
  std::string id;
  CollectiveKind kind;
  NcclTopology topology;
  std::vector<std::pair<Bytes, double>> rows;  // bytes, us
};

std::vector<Sweep> sweeps() {
  std::ifstream file(ORRERY_SOURCE_DIR "/tests/data/nccl_sweeps.json");
  std::vector<Sweep> all;
  for (const auto& j : nlohmann::json::parse(file)) {
    Sweep s{j.at("id"), CollectiveKind::all_reduce, {}, j.at("rows")};
    for (int k = 0; k < kCollectiveKinds; ++k) {
      if (name_of(static_cast<CollectiveKind>(k)) == j.at("kind")) s.kind = static_cast<CollectiveKind>(k);
    }
    s.topology = {j.at("nodes"),
                  j.at("ranks"),
                  j.at("compute_capability"),
                  j.at("amd_cpu"),
                  j.at("nvlink_GBps"),
                  j.at("pcie_GBps"),
                  j.at("multicast"),
                  j.at("nics"),
                  j.at("nic_GBps"),
                  j.at("shared_pcie_switch"),
                  j.at("net_latency_us")};
    all.push_back(s);
  }
  return all;
}

// Mean of |predicted / measured - 1|, in percent.
struct Errors {
  double nccl = 0;
  double corrected = 0;
};

Errors errors(const Sweep& s, Bytes from) {
  const NcclModel m = nccl_model(s.topology);
  Errors e;
  int n = 0;
  for (const auto& [bytes, us] : s.rows) {
    if (bytes < from) continue;
    const NcclChoice c = nccl_choose(m, s.kind, bytes);
    e.nccl += 100 * std::abs(c.nccl_seconds * 1e6 / us - 1);
    e.corrected += 100 * std::abs(c.seconds * 1e6 / us - 1);
    ++n;
  }
  return {e.nccl / std::max(1, n), e.corrected / std::max(1, n)};
}

// Fitted: ar_8xA100_80_mpirun, ar_8xH200_stas, nccl_scan_H100_4_nodes, and large messages where nccl_correction.cpp
// says so. The rest is held out. gb200 over 20 racks is far off with and without: no public log shows what NCCL finds
// there.
TEST(NcclCorrection, ErrorsPerSweep) {
  fmt::print("mean error from 1 MiB                nodes ranks       NCCL  corrected\n");
  double nccl = 0, corrected = 0;
  const auto all = sweeps();
  for (const Sweep& s : all) {
    const Errors e = errors(s, 1 << 20);
    fmt::print("{:<36} {:>5} {:>5} {:>8.1f} % {:>8.1f} %\n", s.id, s.topology.nodes, s.topology.ranks, e.nccl,
               e.corrected);
    EXPECT_LE(e.corrected, e.nccl + 1.5) << s.id;
    EXPECT_LE(e.corrected, s.id == "cw_gb200_20rack" ? 65 : 22) << s.id;
    nccl += e.nccl / static_cast<double>(all.size());
    corrected += e.corrected / static_cast<double>(all.size());
  }
  fmt::print("{:<36} {:>5} {:>5} {:>8.1f} % {:>8.1f} %\n", "mean of sweeps", "", "", nccl, corrected);
  EXPECT_LE(corrected, .75 * nccl);
}

}  // namespace
}  // namespace orrery
