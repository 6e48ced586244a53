#include "sim/chakra/from_plan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/chakra/replay.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Prediction prediction(const std::string& strategy) {
  return predict(
      parse_spec("model: {name: small, layers: 8, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 32000}\n"
                 "sequence: 4096\ncluster: {node: dgx-h100, nodes: 2}\nstrategy: {" +
                     strategy + "}\n",
                 "t.yaml"));
}

std::vector<ChakraTrace> traces_of(const Prediction& p) {
  const ChakraWriter writer(p.plan, p.trace);
  std::vector<ChakraTrace> traces;
  for (std::int64_t rank = 0; rank < p.plan.ranks; ++rank) {
    const ChakraTrace trace = writer.of_rank(rank);
    traces.push_back(read_chakra(chakra_text(trace), "t.et"));
    EXPECT_EQ(traces.back(), trace);
  }
  return traces;
}

// Played again, a step ends when it did, but for the host's launches, for microseconds that a trace counts whole, and
// for transfers and compute that slow each other.
TEST(FromPlan, PlayedAgainAStepLastsAsLong) {
  for (const char* strategy : {"tensor: 2, data: 8, micro_batch: 4, global_batch: 64, overlap: {gradient_reduce: "
                               "false, parameter_gather: false}",
                               "pipeline: 4, data: 4, global_batch: 32, overlap: {gradient_reduce: false}",
                               "pipeline: 2, virtual_stages: 2, schedule: interleaved, data: 8, global_batch: 64",
                               "data: 16, sharding: zero3, micro_batch: 4, global_batch: 64"}) {
    const Prediction p = prediction(strategy);
    const ChakraReplay again = replay(traces_of(p), find_cluster("dgx-h100", 2));
    EXPECT_NEAR(again.time / seconds(p.trace.step_time), 1, 0.06) << strategy;
    EXPECT_LT(again.time, seconds(p.trace.step_time) * 1.005) << strategy;
  }
}

TEST(FromPlan, GroupsNameTheMembersOfEveryCollective) {
  const Prediction p = prediction("tensor: 4, data: 4, global_batch: 8");
  const ChakraWriter writer(p.plan, p.trace);
  const auto groups = nlohmann::json::parse(writer.groups());
  std::size_t collectives = 0;
  for (std::int64_t rank = 0; rank < p.plan.ranks; ++rank) {
    for (const ChakraNode& n : writer.of_rank(rank).nodes) {
      if (n.kind != ChakraNode::Kind::collective) continue;
      ++collectives;
      const std::vector<std::int64_t> members = groups.at(n.group);
      EXPECT_NE(std::find(members.begin(), members.end(), rank), members.end());
      EXPECT_EQ(members.size(), 4U);
    }
  }
  EXPECT_GT(collectives, 100U);
}

TEST(FromPlan, EverySendHasItsReceive) {
  const Prediction p = prediction("pipeline: 4, schedule: zb-v, data: 4, global_batch: 32");
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t> bytes;  // by sender, receiver and tag
  const std::vector<ChakraTrace> traces = traces_of(p);
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    for (const ChakraNode& n : traces[rank].nodes) {
      const auto own = static_cast<std::int64_t>(rank), size = static_cast<std::int64_t>(n.bytes);
      if (n.kind == ChakraNode::Kind::send) bytes[{own, n.peer, n.tag}] += size;
      if (n.kind == ChakraNode::Kind::receive) bytes[{n.peer, own, n.tag}] -= size;
    }
  }
  EXPECT_FALSE(bytes.empty());
  for (const auto& [message, left] : bytes) EXPECT_EQ(left, 0);
}

TEST(FromPlan, RefusesWhatTracesCannotName) {
  const Prediction p =
      prediction("data: 16, sharding: parameter-server, global_batch: 16, parameter_server: {servers: 2}");
  EXPECT_THROW(ChakraWriter(p.plan, p.trace), Error);
}

}  // namespace
}  // namespace orrery
