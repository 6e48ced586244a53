// This file corrects the times of NCCL's model. The model's purpose is to choose an algorithm, so it leaves out times
// that all algorithms share. Rings on one node have laws of their own (one_node.h). For the others, terms that are
// small compared with the model's times add the times left out. The terms were fitted to three sweeps (8 A100 under
// mpirun, 8 H200, 4 nodes of 8 H100) and checked on the other sweeps of tests/data/nccl_sweeps.json; the test prints
// the error of every sweep with and without the terms.
#include <algorithm>
#include <bit>
#include <cmath>

#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/cost/nccl/constants.h"
#include "models/cost/nccl/fitted.h"
#include "models/cost/nccl/one_node.h"
#include "models/cost/nccl/rccl.h"

namespace orrery {

namespace {

using A = NcclAlgorithm;

// Numbers that were fitted to published measurements of collectives and steps, from models/data/fitted.json.
struct FittedNetworks {
  // fractions of the links' rate that ring and tree reach on two nodes of a shared network
  double ring_part, tree_part;
  double efa_power;  // on EFA networks ring_part and tree_part fall as (2 / number of nodes) to this power
  // On Omni-Path networks ring_part and tree_part fall as (2 / number of nodes) to these powers
  double omni_path_ring_power, omni_path_tree_power;
  double late_members_us;  // microseconds by which members of a collective on several nodes arrive late
  // Microseconds that each tensor after the first of a coalesced call adds for a hop between nodes
  double next_tensor_hop_us;
};

const FittedNetworks& fitted_networks() {
  static const FittedNetworks fitted = [] {
    const nlohmann::json file = nlohmann::json::parse(data_file("fitted.json"));
    const auto of = [&](const char* key) { return file.at("networks").at("numbers").at(key).get<double>(); };
    return FittedNetworks{.ring_part = of("ring_part"),
                          .tree_part = of("tree_part"),
                          .efa_power = of("efa_power"),
                          .omni_path_ring_power = of("omni_path_ring_power"),
                          .omni_path_tree_power = of("omni_path_tree_power"),
                          .late_members_us = of("late_members_us"),
                          .next_tensor_hop_us = of("next_tensor_hop_us")};
  }();
  return fitted;
}

// The rate of an all-reduce in NVSwitches (FittedCollectives).
double nvls_all_reduce_GBps(const NcclModel& m) {
  const double heads = std::max(1, m.graphs.nvls.channels);
  const FittedCollectives& f = fitted_collectives();
  const double link = f.nvls_link_part * m.topology.nvlink_GBps / (1 + 1 / heads);
  return std::min(link, m.graphs.nvls_channels * f.nvls_channel_GBps);
}

// Returns the fraction of the bandwidth that a collective reaches between nodes of a cloud with a shared network. A
// collective is as fast as the slowest of its links, and the more links there are, the slower is the slowest. The
// fraction depends on the number of nodes of the complete job: a cloud gives a job whatever nodes are free, so that the
// groups of a large job cross more switches than those of a small job, and within every step the groups wait for one
// another. Ultra-Scale Playbook: in its runs on 2 to 32 nodes of P5 (EFA v2, 32 x 100 Gb/s), gathers and reductions of
// sharded states reach 150 to 200 GB/s, summed over all groups of a node, and all-reduces reach the same rate if a
// group has one rank per node. The Playbook's sweep of one collective of 256 MB by 8 ranks a node falls much faster
// (all-gather 185, 119, 69, 55, 28, 11 GB/s): that is the time of the ring's many short steps, some 30 us each, which
// is hidden if many tensors are transferred at once. The Omni-Path network of the computer Jean Zay is shared too:
// DeepSpeed's reductions there take 3.5 times as long as at the links' rate (BLOOM's training).
double reached_on_shared(const NcclTopology& t, A a) {
  const FittedNetworks& f = fitted_networks();
  const bool ring = a == A::ring;
  const double omni = ring ? f.omni_path_ring_power : f.omni_path_tree_power;
  const double nodes = std::max<double>(t.nodes, static_cast<double>(t.job_nodes));
  return (ring ? f.ring_part : f.tree_part) * std::pow(2.0 / nodes, t.omni_path ? omni : f.efa_power);
}

double reached(const NcclTopology& t, A a) { return t.nodes > 1 && t.shared_network ? reached_on_shared(t, a) : 1; }

// Bytes that a channel of NVLS handles at once (Simple protocol), src/enqueue.cc: 128 KiB, 64 KiB for NVLS trees of 4
// nodes or more.
constexpr double kNvlsChunk = 128 << 10, kNvlsTreeChunk = 64 << 10;

double nvls_chunk(int nodes) { return nodes >= 4 ? kNvlsTreeChunk : kNvlsChunk; }

// Returns the rate of NVLS trees, for which NCCL's model has `GBps`: no more than what the NVSwitches of a node pass
// on, a chunk every 0.31 us. So many are the chunks of 128 KiB at which a rack of 72 GB200 reduces (cw_gb200_1rack: 8
// GiB at 423 GB/s of buffer). Two and three racks, which are not fitted, pass on as many (418 and 403 GB/s), and 20
// racks as many of half the size (217 GB/s).
double nvls_tree_GBps(const NcclModel& m, double GBps) {
  constexpr double kChunk_us = 0.31;
  return std::min(GBps, nvls_chunk(m.topology.nodes) / (1000 * kChunk_us));
}

// Bytes whose transfer time is the time to fill the pipeline of NVLS, the algorithm in which NVSwitches reduce: one
// chunk for every channel, head (GPU that handles one part of the data at the switch) and stage of the pipeline. Within
// a node there is one stage; between nodes there are two hops per level of the tree, and four to enter and leave the
// switches (4 nodes: 8 stages of 8 MiB at 188 GB/s = 357 us, measured 375 at 256 MiB). If the message is as large as
// all these chunks together, half of the time to fill the pipeline is counted.
double nvls_fill_bytes(const NcclModel& m, double bytes) {
  const int nodes = m.topology.nodes;
  const int depth = static_cast<int>(std::bit_width(static_cast<unsigned>(nodes))) - 1;
  const double full =
      m.graphs.nvls_channels * m.graphs.nvls.channels * nvls_chunk(nodes) * (nodes == 1 ? 1 : 4 + 2 * depth);
  return full * bytes / (bytes + full);
}

// Returns the microseconds to fill the pipeline of NVLS. Rings over several nodes show no such time, because NCCL's
// latency for Simple includes it there.
double fill_us(const NcclModel& m, const NcclChoice& c, double bytes, double GBps) {
  const bool switched = c.algorithm == A::nvls || c.algorithm == A::nvls_tree;
  return switched ? nvls_fill_bytes(m, bytes) / (1000 * GBps) : 0;
}

}  // namespace

// Returns the time that each tensor after the first adds to a coalesced call: the first chunk of a tensor passes the
// complete ring before the first chunk of the next tensor does. That takes a step of NCCL's ring over NVLink for each
// rank in the ring (tuning.cc, hwLatencies, Simple), and between nodes the time of one hop over the network, because
// the waits of the other hops overlap (reduce-scatter and all-gather of nanotron's 99 and 171 tensors over 31 to 255
// steps: 0.31 to 1.1 ms a tensor).
Seconds nccl_next_tensor(const NcclModel& m, CollectiveKind kind) {
  const int steps = (kind == CollectiveKind::all_reduce ? 2 : 1) * (m.topology.ranks - 1);
  const double hop = m.topology.nodes > 1 ? fitted_networks().next_tensor_hop_us + 2 * m.topology.net_latency_us : 0;
  return 1e-6 * (steps * nccl_ring_us(kNcclNvlink_us, NcclProtocol::simple) + hop);
}

// Returns the time by which members of a collective on several nodes arrive late, seconds. Nanotron's tensor groups on
// two nodes take 0.85 ms for a collective of any size, of which the network takes 0.35 ms. Tensor groups of DeepSpeed
// and Megatron on 8 nodes of V100 (Rajbhandari et al. 2020) and on two nodes of A100 (vTrain), both with InfiniBand,
// were not used in the fit, but exceed the time at the links' rate by the same amount.
Seconds nccl_late_members(const NcclModel& m, CollectiveKind kind) {
  const bool modelled = kind != CollectiveKind::all_to_all && kind != CollectiveKind::shift && !is_star(kind);
  return m.topology.nodes > 1 && modelled ? 1e-6 * fitted_networks().late_members_us : 0;
}

Seconds nccl_kernel(const NcclModel& m, CollectiveKind kind, const NcclChoice& c, Bytes bytes) {
  // The rates of RCCL's table, and those of sends, are what measurements reach.
  if (is_rccl(m.topology) || c.algorithm == A::point_to_point) return c.nccl_seconds;
  const bool one_node = m.topology.nodes == 1, switched = c.algorithm == A::nvls;
  if (one_node && c.algorithm == A::ring) return ring_on_one_node(m, kind, c.protocol, bytes);
  const double nccl_GBps = m.row(kind, c.algorithm, c.protocol).bandwidth_GBps;
  const double GBps = c.algorithm == A::nvls_tree ? nvls_tree_GBps(m, nccl_GBps) : nccl_GBps;
  const double size = static_cast<double>(bytes);
  const bool summed = switched && kind == CollectiveKind::all_reduce;
  const double real_GBps = summed ? nvls_all_reduce_GBps(m) : GBps * reached(m.topology, c.algorithm);
  const double slower_us = size / 1000 * (1 / real_GBps - 1 / nccl_GBps);
  const double start_us = switched ? start_on_one_node_us(m.topology) : 0;  // NCCL's table has no start of NVLS
  return c.nccl_seconds + 1e-6 * (start_us + slower_us + fill_us(m, c, size, GBps));
}

Seconds nccl_step_start(const NcclModel& m) { return is_rccl(m.topology) ? 0 : 1e-6 * fitted_collectives().start_us; }

Seconds nccl_corrected(const NcclModel& m, CollectiveKind kind, const NcclChoice& c, Bytes bytes) {
  return nccl_step_start(m) + nccl_kernel(m, kind, c, bytes);
}

}  // namespace orrery
