#include "sim/chakra/replay.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/cost/nccl/model.h"

namespace orrery {
namespace {

using Kind = ChakraNode::Kind;
using Ids = std::vector<std::uint64_t>;

ChakraNode compute(std::uint64_t id, std::uint64_t us, Ids after = {}) {
  return {.id = id, .name = "compute", .kind = Kind::compute, .waits_for = std::move(after), .duration_us = us};
}
ChakraNode all_reduce(std::uint64_t id, std::uint64_t bytes, Ids after = {}, std::string group = "") {
  return {.id = id,
          .name = "sum",
          .kind = Kind::collective,
          .waits_for = std::move(after),
          .bytes = bytes,
          .group = std::move(group)};
}
ChakraNode message(std::uint64_t id, Kind kind, std::int64_t peer, std::uint64_t bytes, Ids after = {}) {
  return {.id = id, .name = "message", .kind = kind, .waits_for = std::move(after), .bytes = bytes, .peer = peer};
}
Cluster h100(std::int64_t nodes) { return find_cluster("dgx-h100", nodes); }

TEST(Replay, ComputeOfARankRunsOneByOneAndRanksSideBySide) {
  const ChakraTrace one = {{compute(0, 100), compute(1, 200)}};
  const ChakraReplay r = replay({one, {{compute(0, 50)}}}, h100(1));
  EXPECT_DOUBLE_EQ(r.time, 300e-6);
  EXPECT_DOUBLE_EQ(r.ranks[0].compute, 300e-6);
  EXPECT_DOUBLE_EQ(r.ranks[1].end, 50e-6);
}

TEST(Replay, CollectivesBeginWithTheirLastMemberAndLastAsNcclSays) {
  constexpr std::uint64_t kBytes = 1 << 28;
  const auto rank = [](std::uint64_t us) { return ChakraTrace{{compute(0, us), all_reduce(1, kBytes, {0})}}; };
  std::vector<ChakraTrace> traces(16, rank(100));
  traces[5] = rank(700);
  const ChakraReplay r = replay(traces, h100(2));
  const NcclModel model = nccl_model(nccl_topology(h100(2), std::vector<int>{8, 8}));
  const Seconds sum = nccl_choose(model, CollectiveKind::all_reduce, kBytes).seconds +
                      nccl_late_members(model, CollectiveKind::all_reduce);
  EXPECT_NEAR(r.time, 700e-6 + sum, 1e-12);
  EXPECT_NEAR(r.ranks[0].exposed, sum, 1e-12);
  EXPECT_EQ(r.collectives, 1U);
}

TEST(Replay, ComputeHidesTransfersThatItDoesNotWaitFor) {
  const ChakraTrace rank = {{all_reduce(0, 1 << 20), compute(1, 10'000)}};
  const ChakraReplay r = replay({rank, rank}, h100(1));
  EXPECT_DOUBLE_EQ(r.time, 10'000e-6);
  EXPECT_EQ(r.ranks[0].exposed, 0);
}

TEST(Replay, GroupsMakeOneCollectiveAtATimeAndOtherGroupsMeanwhile) {
  const ChakraTrace same = {{all_reduce(0, 1 << 26, {}, "1"), all_reduce(1, 1 << 26, {}, "1")}};
  const ChakraTrace apart = {{all_reduce(0, 1 << 26, {}, "1"), all_reduce(1, 1 << 26, {}, "2")}};
  const Seconds one = replay({apart, apart}, h100(1)).time;
  EXPECT_NEAR(replay({same, same}, h100(1)).time, 2 * one, 1e-12);
}

TEST(Replay, MessagesMeetByTheirOrderAndAreDearerBetweenNodes) {
  std::vector<ChakraTrace> traces(16, {{compute(0, 1)}});
  traces[0].nodes.push_back(message(1, Kind::send, 1, 1 << 24));
  traces[1].nodes.push_back(message(1, Kind::receive, 0, 1 << 24, {0}));
  const Seconds near = replay(traces, h100(2)).time;
  traces[1] = {{compute(0, 1)}};
  traces[0].nodes[1].peer = 8;
  traces[8].nodes.push_back(message(1, Kind::receive, 0, 1 << 24, {0}));
  EXPECT_GT(replay(traces, h100(2)).time, 2 * near);
}

TEST(Replay, NodesWithoutADurationLastAsTheirOperationsTake) {
  ChakraNode product = compute(0, 0);
  product.operations = std::int64_t{2} * 8192 * 8192 * 8192;
  const ChakraReplay r = replay({{{product}}}, h100(1));
  EXPECT_GT(r.time, 1.1e-3);  // 1.1 ms at the peak of 989 TFLOP/s
  EXPECT_LT(r.time, 2.2e-3);
  ASSERT_EQ(r.remarks.size(), 1U);
  EXPECT_NE(r.remarks[0].find("1 nodes without a duration"), std::string::npos);
}

std::string replay_refusal(const std::vector<ChakraTrace>& traces, std::int64_t nodes = 1) {
  try {
    replay(traces, h100(nodes));
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Replay, RefusesWhatNeverEnds) {
  EXPECT_NE(replay_refusal({{{compute(0, 1, {1}), compute(1, 1, {0})}}}).find("in a circle"), std::string::npos);
  EXPECT_NE(replay_refusal({{{message(0, Kind::send, 1, 8)}}, {}}).find("rank 0, node 0 (message): never runs"),
            std::string::npos);
  const ChakraTrace twice = {{all_reduce(0, 8), all_reduce(1, 8)}}, once = {{all_reduce(0, 8)}};
  EXPECT_NE(replay_refusal({twice, once}).find("node 1 (sum): never runs"), std::string::npos);
  EXPECT_NE(replay_refusal(std::vector<ChakraTrace>(9, once)).find("fewer than the 9 ranks"), std::string::npos);
  ChakraTrace gathers = once;
  gathers.nodes[0].collective = CollectiveKind::all_gather;
  EXPECT_NE(replay_refusal({once, gathers}).find("is a all_gather"), std::string::npos);
  EXPECT_NE(replay_refusal({{}, {}}).find("have no nodes"), std::string::npos);
  EXPECT_NE(
      replay_refusal({{{message(0, Kind::send, 1, 8)}}, {{message(0, Kind::receive, 0, 9)}}}).find("9 bytes, where"),
      std::string::npos);
}

}  // namespace
}  // namespace orrery
