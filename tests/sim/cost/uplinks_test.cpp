#include "sim/cost/uplinks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "models/spec/spec.h"
#include "sim/cost/hashed_routes.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// 4 nodes of 8 GPUs and NICs of 400 Gb/s.
Spec pods(const std::string& strategy, int above_gpus, double ratio) {
  return parse_spec(
      fmt::format("model: {{name: t, layers: 8, hidden: 512, heads: 8, feed_forward: 2048, vocab: 4096}}\n"
                  "sequence: 256\n"
                  "cluster: {{node: dgx-h100, nodes: 4, oversubscription: {{above_gpus: {}, ratio: {}}}}}\n"
                  "strategy: {}\n",
                  above_gpus, ratio, strategy),
      "pods.yaml");
}

struct PodCase {
  const char* strategy;
  int above_gpus;
  double ratio;
  Dimension dimension;
  bool crosses;     // whether rank 0's group crosses an uplink
  double slowdown;  // slowdown of a transfer at 50 GB/s, the speed of a NIC
};

// A pod of 16 GPUs has 16 NICs, 800 GB/s; its uplink carries 800 / ratio.
TEST(Uplinks, AreShortWhereAllGroupsTogetherSendMoreThanTheyCarry) {
  for (const PodCase& c : {PodCase{"{tensor: 8, data: 4}", 16, 2, Dimension::data, true, 1.0},   // 8 rings, 400 of 400
                           PodCase{"{tensor: 8, data: 4}", 16, 7, Dimension::data, true, 3.5},   // 400 of 114
                           PodCase{"{tensor: 8, data: 4}", 16, 1, Dimension::data, false, 1.0},  // nothing is short
                           PodCase{"{tensor: 8, data: 4}", 32, 7, Dimension::data, false, 1.0},  // one pod
                           PodCase{"{tensor: 8, data: 4}", 16, 7, Dimension::tensor, false, 1.0},  // within nodes
                           PodCase{"{data: 32}", 16, 7, Dimension::data, true, 1.0},               // one ring
                           PodCase{"{tensor: 8, pipeline: 2, data: 2}", 16, 4, Dimension::pipeline, true, 4.0},
                           PodCase{"{tensor: 8, pipeline: 4}", 8, 4, Dimension::pipeline, true, 4.0},  // either way
                           PodCase{"{tensor: 8, pipeline: 2, data: 2}", 16, 4, Dimension::data, false, 1.0}}) {
    const Spec spec = pods(c.strategy, c.above_gpus, c.ratio);
    const Plan plan = make_plan(spec);
    const Uplinks uplinks(plan, spec.cluster, 8);
    EXPECT_EQ(uplinks.crossed(c.dimension, 0) != 0, c.crosses) << c.strategy << ' ' << c.ratio;
    // time for the bytes of one second
    const Seconds needed = uplinks.least_time(c.dimension, Uplinks::Pattern::neighbours, {50e9});
    const double slowdown = c.crosses ? std::max(1.0, needed) : 1;
    EXPECT_NEAR(slowdown, c.slowdown, 1e-9) << c.strategy << ' ' << c.ratio;
  }
}

// An all-to-all of 64 members, 8 on a node and 16 or 32 in a pod: a node sends the bytes of 8 * 56 pairs through its
// NICs, a pod those of 16 * 48 or 32 * 32 pairs over an uplink with the bandwidth of a fourth of its NICs.
TEST(Uplinks, CarryWhatEveryMemberInsideSendsToEveryMemberOutside) {
  for (const auto& [above_gpus, pod_pairs] : {std::pair{16, 16.0 * 48}, std::pair{32, 32.0 * 32}}) {
    const Spec spec =
        parse_spec(fmt::format("model: {{name: t, layers: 2, hidden: 512, heads: 8, feed_forward: 2048, vocab: 4096,\n"
                               "        moe: {{experts: 64, top_k: 2, feed_forward: 512}}}}\n"
                               "sequence: 256\n"
                               "cluster: {{node: dgx-h100, nodes: 8, oversubscription: {{above_gpus: {}, ratio: 4}}}}\n"
                               "strategy: {{data: 64, expert: 64}}\n",
                               above_gpus),
                   "experts.yaml");
    const Plan plan = make_plan(spec);
    const Uplinks uplinks(plan, spec.cluster, 8);
    const double node_bytes = 8 * 56, uplink_Bps = above_gpus * 50e9 / 4;
    EXPECT_NEAR(uplinks.least_time(Dimension::expert, Uplinks::Pattern::pairs, {node_bytes}), pod_pairs / uplink_Bps,
                1e-6 * pod_pairs / uplink_Bps);
  }
}

// An uplink that can carry all bytes that leave its pod slows no transfer, however much stays inside.
TEST(Uplinks, LeaveWhatStaysInAPodAlone) {
  const auto time = [](int above_gpus, double ratio) {
    const Spec spec = parse_spec(
        fmt::format("model: {{name: t, layers: 2, hidden: 2048, heads: 16, feed_forward: 2048, vocab: 4096,\n"
                    "        moe: {{experts: 64, top_k: 8, feed_forward: 512}}}}\n"
                    "sequence: 4096\n"
                    "cluster: {{node: dgx-h100, nodes: 8, oversubscription: {{above_gpus: {}, ratio: {}}}}}\n"
                    "strategy: {{data: 64, expert: 64}}\n",
                    above_gpus, ratio),
        "experts.yaml");
    return predict(spec).report.step_time_s;
  };
  const Seconds alone = time(64, 4);
  EXPECT_EQ(time(32, 1.5), alone);  // 32/64 of the bytes leave a pod, 56/64 a node
  EXPECT_GT(time(32, 4), 1.2 * alone);
}

TEST(Uplinks, SlowAStepThatIsShortOfThemAndNoOther) {
  const std::string strategy = "{tensor: 8, data: 4, global_batch: 4, overlap: {gradient_reduce: false}}";
  const Seconds alone = predict(pods(strategy, 32, 64)).report.step_time_s;
  EXPECT_EQ(predict(pods(strategy, 16, 2)).report.step_time_s, alone);
  EXPECT_GT(predict(pods(strategy, 16, 64)).report.step_time_s, 1.05 * alone);
}

// Four stages in pods of two have three hops; only the second leaves a pod.
TEST(Uplinks, SlowOnlyTheHopsThatLeaveAPod) {
  const auto hops = [](int above_gpus) {
    const Spec spec = pods("{tensor: 8, pipeline: 4, global_batch: 8}", above_gpus, 64);
    const Prediction p = predict(spec);
    std::vector<Picoseconds> least(4, 0);
    for (TaskId t = 0; t < p.plan.task_count(); ++t) {
      const auto* transfer = std::get_if<Transfer>(&p.plan.op_of(t).work);
      if (transfer == nullptr || !transfer->send || transfer->offset < 0) continue;
      const Span& s = p.trace.spans[t];
      Picoseconds& best = least[p.plan.classes[p.plan.slot_of(t)].stage];
      best = best == 0 ? s.ended - s.matched : std::min(best, s.ended - s.matched);
    }
    return least;
  };
  const std::vector<Picoseconds> alone = hops(32), cut = hops(16);
  EXPECT_EQ(cut[0], alone[0]);
  EXPECT_GT(cut[1], 2 * alone[1]);
  EXPECT_EQ(cut[2], alone[2]);
}

TEST(Uplinks, AreTheSameFoldedOrNot) {
  for (const char* strategy :
       {"{tensor: 8, data: 4, global_batch: 8}", "{tensor: 8, pipeline: 2, data: 2, global_batch: 8}"}) {
    const Spec spec = pods(strategy, 16, 16);
    EXPECT_EQ(predict(spec).trace.step_time, predict(spec, true).trace.step_time) << strategy;
  }
}

// A node with 16 NICs for 8 GPUs, all at half the others' rate, is as slow as if all nodes were.
TEST(Uplinks, OfASlowNodeAreAllOfItsNics) {
  const auto time = [](const std::string& nics) {
    return predict(parse_spec("model: gemma-2b\nsequence: 1024\ncluster: {node: aws-p5en, nodes: 4, " + nics +
                                  "}\nstrategy: {tensor: 4, data: 8, global_batch: 24, overlap: {gradient_reduce: "
                                  "false}}\n",
                              "t.yaml"))
        .report.step_time_s;
  };
  const double slow = time("nic_Gbps: 25"), one = time("nic_Gbps: 50, network: {faults: [{node: 0, Gbps: 25}]}");
  EXPECT_LE(one, slow * 1.001);
  EXPECT_GT(one, 1.1 * time("nic_Gbps: 50"));
}

// Leaves of 4 nodes of 8 GPUs: 64 nodes, 8 rails.
Spec leaves(const std::string& network, const std::string& strategy =
                                            "{tensor: 8, data: 64, global_batch: 64, overlap: "
                                            "{gradient_reduce: false}}") {
  return parse_spec(
      fmt::format("model: {{name: t, layers: 8, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 4096}}\n"
                  "sequence: 256\n"
                  "cluster: {{node: dgx-h100, nodes: 64{}}}\n"
                  "strategy: {}\n",
                  network, strategy),
      "leaves.yaml");
}

// As many uplinks as NICs, evenly used, are as good as no leaves at all, to the picosecond.
TEST(Uplinks, OfAFullFatTreeOrRailsChangeNoTime) {
  const Seconds alone = predict(leaves("")).report.step_time_s;
  for (const char* network :
       {", network: {leaf: {nodes: 4}}", ", network: {kind: fat-tree, leaf: {nodes: 4}}",
        ", network: {leaf: {nodes: 4}, routing: {kind: d-mod-k}}",
        ", network: {leaf: {nodes: 4}, spine: {leaves: 4, ratio: 1}}", ", network: {leaf: {nodes: 64, uplinks: 1}}"})
    EXPECT_EQ(predict(leaves(network)).report.step_time_s, alone) << network;
}

// 8 rings through every node, each over a rail of its own: of the 4 NICs on a leaf one sends out of it.
TEST(Uplinks, OfALeafAreSharedByTheRailsRings) {
  const Spec spec = leaves(", network: {leaf: {nodes: 4, uplinks: 2, Gbps: 100}, routing: {kind: ecmp}}");
  const Plan plan = make_plan(spec);
  Uplinks uplinks(plan, spec.cluster, 8);
  EXPECT_NE(uplinks.crossed(Dimension::data, 0), 0U);
  // 50 GB/s of a NIC over uplinks of 12.5 GB/s: 8 rings of 50 over 16 uplinks of 12.5 are twice too much, and a flow
  // alone on an uplink takes four times as long.
  EXPECT_NEAR(uplinks.least_time(Dimension::data, Uplinks::Pattern::neighbours, {50e9}), 2, 1e-9);
  EXPECT_NEAR(uplinks.time(3, Dimension::data, Uplinks::Pattern::neighbours, {50e9, 1, 1}), 4, 1e-9);
  EXPECT_NEAR(uplinks.busiest().share, .5, 1e-9);
  EXPECT_EQ(uplinks.busiest().gpus, 32);
  EXPECT_EQ(uplinks.busiest().op, 3U);
}

// A fat tree's leaf sends 8 rings of 50 GB/s over 8 uplinks: evenly used they are just enough.
TEST(Uplinks, AreUsedUnevenlyByHashesAndLessSoByMoreQueuePairs) {
  const auto time = [](const std::string& more) {
    return predict(leaves(fmt::format(", network: {{kind: fat-tree, leaf: {{nodes: 4, uplinks: 8}}{}}}", more)))
        .report.step_time_s;
  };
  const auto hashed = [&](int pairs) { return time(fmt::format(", routing: {{kind: ecmp, queue_pairs: {}}}", pairs)); };
  const Seconds even = time("");
  EXPECT_EQ(even, predict(leaves("")).report.step_time_s);
  EXPECT_GT(hashed(1), 1.05 * even);
  EXPECT_LT(hashed(8), hashed(1));
  EXPECT_GT(hashed(8), even);
  EXPECT_GT(time(", load: 0.9"), 1.5 * even);
}

// Parts of the spine of 4 leaves of 4 nodes, whose links to each other carry a 64th.
TEST(Uplinks, OfPartsOfTheSpineMayBeShort) {
  const Seconds even = predict(leaves("")).report.step_time_s;
  EXPECT_GT(predict(leaves(", network: {leaf: {nodes: 4}, spine: {leaves: 4, ratio: 64}}")).report.step_time_s, even);
  EXPECT_EQ(predict(leaves(", network: {leaf: {nodes: 4}, spine: {leaves: 16, ratio: 64}}")).report.step_time_s, even);
}

// Two planes with half of the rate of a NIC each have together what one has; a hash that draws the plane of a single
// queue pair leaves a NIC half of its rate.
TEST(Uplinks, OfPlanesCarryTogetherWhatOneDoes) {
  const Seconds alone = predict(leaves("")).report.step_time_s;
  const auto time = [](const std::string& more) {
    return predict(leaves(", network: {leaf: {nodes: 4}, planes: 2" + more + "}")).report.step_time_s;
  };
  EXPECT_EQ(time(""), alone);
  EXPECT_EQ(time(", spine: {leaves: 4, ratio: 1}"), alone);
  EXPECT_EQ(time(", spine: {leaves: 4, ratio: 1}, faults: [{plane: 1}, {plane: 1}]"),
            time(", spine: {leaves: 4, ratio: 1}, faults: [{plane: 1}]"));
  const Seconds hashed = time(", routing: {planes: hashed}");
  EXPECT_GT(hashed, 1.02 * alone);
  EXPECT_LT(time(", routing: {planes: hashed, queue_pairs: 64}"), hashed);
  EXPECT_EQ(time(", routing: {planes: even, queue_pairs: 64}"), alone);
  // The fuller one of 2 ports of 25 GB/s has, of 4 queue pairs, 4, 3 or 2 in 2, 8 and 6 of 16 cases.
  const Spec spec = leaves(", network: {leaf: {nodes: 4}, planes: 2, routing: {planes: hashed, queue_pairs: 4}}",
                           "{tensor: 8, data: 64, global_batch: 64}");
  const HashedFlows one = {.flows = 1, .uplinks = 2, .queue_pairs = 4, .switches = 1};
  EXPECT_NEAR(mean_slowdown(one, 2), (2 * 2 + 8 * 1.5 + 6 * 1) / 16, 1e-9);
  const Plan plan = make_plan(spec);
  Uplinks uplinks(plan, spec.cluster, 8);
  const HashedFlows all = {.flows = 1, .uplinks = 2, .queue_pairs = 4, .switches = 64 * 8};
  EXPECT_NEAR(uplinks.time(0, Dimension::data, Uplinks::Pattern::neighbours, {50e9, 1, 1}), mean_slowdown(all, 2),
              1e-9);
  EXPECT_EQ(uplinks.busiest().kind, UplinkKind::ports);
}

// Every queue pair is hashed over the uplinks of both planes, or those of each plane over its own.
TEST(Uplinks, OfPlanesAreHashedEachOnItsOwnOrAllAlike) {
  const auto time = [](const std::string& planes) {
    const Spec spec = leaves(
        ", network: {leaf: {nodes: 4, uplinks: 4}, planes: 2, routing: {kind: ecmp, queue_pairs: "
        "8, planes: " +
        planes + "}}");
    const Plan plan = make_plan(spec);
    return Uplinks(plan, spec.cluster, 8).time(0, Dimension::data, Uplinks::Pattern::neighbours, {50e9, 1, 1});
  };
  EXPECT_NEAR(time("even"), mean_slowdown({1, 4, 4, 16 * 8 * 2}, 1), 1e-9);
  EXPECT_GE(time("hashed"), mean_slowdown({1, 8, 8, 16 * 8}, 2));
}

// A broken plane takes its part of the rate of all NICs, or of those of a node or a leaf.
TEST(Uplinks, OfABrokenPlaneAreLost) {
  const auto time = [](const std::string& faults) {
    return predict(leaves(", network: {leaf: {nodes: 4}, planes: 4, faults: [" + faults + "]}")).report.step_time_s;
  };
  const auto at = [](int Gbps) {
    return predict(leaves(", network: {faults: {share: 1, Gbps: " + std::to_string(Gbps) + "}}")).report.step_time_s;
  };
  EXPECT_EQ(time("{plane: 1}"), at(300));
  EXPECT_EQ(time("{plane: 1, node: 9}"), at(300));
  EXPECT_EQ(time("{plane: 1, leaf: 2}"), at(300));
  EXPECT_EQ(time("{plane: 1, node: 9}, {plane: 3, node: 50}"), at(200)) << "two nodes have two planes in common";
  EXPECT_EQ(time("{plane: 1, node: 9}, {plane: 1, node: 50}"), at(300));
  for (const auto& [faults, what] :
       {std::pair{"planes: 2, faults: [{plane: 0, node: 1}, {plane: 1, node: 2}]", "none of 2 planes left"},
        std::pair{"planes: 2, faults: [{plane: 2}]", "plane 2 is not one of 0 to 1"},
        std::pair{"faults: [{plane: 0}]", "the network has one plane"},
        std::pair{"planes: 2, faults: [{plane: 1, node: 2, Gbps: 3}]", "or a plane"},
        std::pair{"planes: 9", "planes"}}) {
    try {
      leaves(std::string(", network: {leaf: {nodes: 4}, ") + faults + "}");
      ADD_FAILURE() << faults;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
    }
  }
}

// PAT over 64 nodes, 4 of them on a leaf: of 63 parts a node sends 32 to the next, 16 to the second and 8 to the fourth
// next; the leaf sends 32 + 2 * 16 + 4 * (8 + 4 + 2 + 1) of them away, a ring 63.
TEST(Uplinks, CarryWhatPatSendsToFarNodes) {
  const Spec spec = leaves(", network: {leaf: {nodes: 4, uplinks: 1}}");
  const Plan plan = make_plan(spec);
  const Uplinks uplinks(plan, spec.cluster, 8);
  const auto needed = [&](NcclAlgorithm a) {
    NodeTraffic sent = path_of(CollectiveKind::all_gather, a);
    sent.bytes = 1e9;
    return uplinks.least_time(Dimension::data, Uplinks::Pattern::neighbours, sent);
  };
  const double nodes = static_cast<double>(plan.dimensions[static_cast<std::size_t>(Dimension::data)].groups[0].size());
  double parts = 0;
  for (double d = 1; d < nodes; d *= 2) parts += std::min(d, 4.0) * nodes / (2 * d);
  EXPECT_GT(nodes, 8);
  EXPECT_NEAR(needed(NcclAlgorithm::pat) / needed(NcclAlgorithm::ring), parts / (nodes - 1), 1e-9);
}

// Two sites of 32 nodes: 8 rings cross the boundary, there and back.
TEST(Uplinks, BetweenSitesAreSlowedByRateBufferAndDistance) {
  const Spec spec = leaves(", network: {sites: {nodes: 32, Gbps: 1600, ms: 2}}");
  const Plan plan = make_plan(spec);
  Uplinks uplinks(plan, spec.cluster, 8);
  EXPECT_NE(uplinks.crossed(Dimension::data, 0), 0U);
  EXPECT_EQ(uplinks.crossed(Dimension::tensor, 0), 0U);
  const auto time = [&](double bytes, std::int64_t channels, double laps) {
    return uplinks.time(0, Dimension::data, Uplinks::Pattern::neighbours, {bytes, 1, 0.1, channels, laps, 1});
  };
  EXPECT_NEAR(time(1e9, 1000, 2), 0.1 + 4 * 2e-3, 1e-12);               // the NICs' time and four trips
  EXPECT_NEAR(time(1e9, 1000, 0), 0.1 + 2e-3, 1e-12);                   // no ring: one trip
  EXPECT_NEAR(time(50e9, 1000, 1), 8 * 50e9 / 200e9 + 2 * 2e-3, 1e-9);  // 8 rings over 200 GB/s
  // 4 MiB of each of two channels are on their way for a round trip of 4 ms.
  EXPECT_NEAR(time(1e9, 2, 1), 1e9 / 2 / (4 << 20) * 4e-3 + 2 * 2e-3, 1e-9);
  Spec larger = spec;
  larger.cluster.network->site_buffer_MiB = 64;
  Uplinks buffered(plan, larger.cluster, 8);
  EXPECT_NEAR(buffered.time(0, Dimension::data, Uplinks::Pattern::neighbours, {10e9, 1, 0.1, 1, 1, 1}),
              10e9 / (64 << 20) * 4e-3 + 2 * 2e-3, 1e-9);
  const NodeTraffic ring = path_of(CollectiveKind::all_reduce, NcclAlgorithm::ring);
  EXPECT_EQ(ring.laps, 2);
  const NodeTraffic tree = path_of(CollectiveKind::all_reduce, NcclAlgorithm::tree);
  EXPECT_EQ(std::pair(tree.laps, tree.trips), std::pair(0.0, 2.0));
}

// A ring goes around all sites: of four sites it crosses four boundaries, two sites whose nodes alternate as many as
// there are nodes.
TEST(Uplinks, CountTheBoundariesOfSitesThatARingCrosses) {
  const auto trips = [](const std::string& network) {
    const Spec spec = leaves(", network: {" + network + "}");
    const Plan plan = make_plan(spec);
    Uplinks uplinks(plan, spec.cluster, 8);
    return (uplinks.time(0, Dimension::data, Uplinks::Pattern::neighbours, {1, 1, 0.1, 1000, 1, 1}) - 0.1) / 2e-3;
  };
  EXPECT_NEAR(trips("sites: {nodes: 32, Gbps: 1e6, ms: 2}"), 2, 1e-6);
  EXPECT_NEAR(trips("sites: {nodes: 16, Gbps: 1e6, ms: 2}"), 4, 1e-6);
  EXPECT_NEAR(trips("leaf: {nodes: 32}, placement: scattered, sites: {nodes: 32, Gbps: 1e6, ms: 2}"), 64, 1e-6);
}

// Distance counts for what leaves a site alone, whatever else is short.
TEST(Uplinks, OfASiteThatNothingLeavesChangeNoTime) {
  const auto step = [](const std::string& network) {
    return predict(leaves(", network: {" + network + "}")).report.step_time_s;
  };
  const std::string short_of = "leaf: {nodes: 4, uplinks: 1}, faults: [{node: 0, Gbps: 200}]";
  EXPECT_EQ(step(short_of + ", sites: {nodes: 64, Gbps: 1e6, ms: 50}"), step(short_of));
  EXPECT_GT(step(short_of + ", sites: {nodes: 32, Gbps: 1e6, ms: 50}"), 1.1 * step(short_of));
}

// A job over nodes of all leaves sends out of a leaf from every node instead of from the first and the last one.
TEST(Uplinks, CarryMoreForScatteredJobs) {
  const auto needed = [](const std::string& placement) {
    const Spec spec = leaves(", network: {kind: fat-tree, leaf: {nodes: 4, uplinks: 8}, placement: " + placement + "}");
    const Plan plan = make_plan(spec);
    return Uplinks(plan, spec.cluster, 8).least_time(Dimension::data, Uplinks::Pattern::neighbours, {50e9});
  };
  EXPECT_NEAR(needed("contiguous"), 1, 1e-9);  // 8 rings of 50 GB/s over 8 uplinks of 50 GB/s
  EXPECT_NEAR(needed("scattered"), 4, 1e-9);   // 4 nodes of a leaf, each of which sends to another leaf
  EXPECT_GT(needed("random"), 2);
  EXPECT_LE(needed("random"), 4);
}

TEST(Uplinks, OfALeafWithFaultsAreFewer) {
  const auto step = [](const std::string& more) {
    return predict(leaves(", network: {leaf: {nodes: 4}" + more + "}")).report.step_time_s;
  };
  const Seconds even = step("");
  EXPECT_GT(step(", faults: [{leaf: 3, uplinks: 1}], spine: {leaves: 1, ratio: 8}"), even);
  EXPECT_GT(step(", faults: [{node: 17, Gbps: 50}]"), 1.2 * even);
  EXPECT_EQ(step(", faults: [{node: 17, Gbps: 400}]"), even);
  EXPECT_EQ(step(", faults: {share: 0, Gbps: 100}"), even);
  EXPECT_EQ(step(", faults: {share: 1, Gbps: 50}"), step(", faults: [{node: 17, Gbps: 50}]"));
}

TEST(Uplinks, RefuseWhatNoNetworkIs) {
  for (const auto& [network, part] :
       {std::pair{"{}", "nothing of the network's shape"}, std::pair{"{sites: {nodes: 4}}", "sites.Gbps: missing"},
        std::pair{"{sites: {nodes: 4, Gbps: 1, ms: 1}, load: 0.3}", "load: has no effect without"},
        std::pair{"{name: llama3-roce, file: x.yaml}", "a file is given too"},
        std::pair{"{leaf: {nodes: 4}, faults: {Gbps: 10}}", "faults.share: missing"},
        std::pair{"{leaf: {nodes: 4}, faults: [{node: 1, Gbps: 800}]}", "no rate above 0 and up to a NIC's"},
        std::pair{"{leaf: {nodes: 4}, faults: [{node: 1, uplinks: 1}]}", "a node or nic with Gbps, or a leaf"},
        std::pair{"nowhere", "nowhere"}, std::pair{"{leaf: {nodes: 4}, job_nodes: [1, 2]}", "2 nodes are listed"},
        std::pair{"{leaf: {nodes: 4}, job_nodes: [1, 99]}", "node 99 is not one of 64"},
        std::pair{"{leaf: {nodes: 4}, placement: nowhere}", "known: contiguous"},
        std::pair{"{leaf: {nodes: 4}, faults: [{leaf: 16, uplinks: 1}]}",
                  "leaf 16 is not one of 0 to 15 (64 nodes, 4 on a leaf)"},
        std::pair{"{leaf: {nodes: 4}, faults: [{node: 64, Gbps: 1}]}", "node 64 is not one of 0 to 63"},
        std::pair{"{leaf: {nodes: 4}, faults: [{Gbps: 1}]}", "a node or nic with Gbps, or a leaf"},
        std::pair{"{leaf: {nodes: 4}, faults: 3}", "a list [{node: 17"}}) {
    try {
      leaves(std::string(", network: ") + network);
      ADD_FAILURE() << network;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace orrery
