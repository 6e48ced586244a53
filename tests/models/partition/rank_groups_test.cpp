// Groups are partitions of all ranks, sized by the degrees, whatever the order of the dimensions.
#include "models/partition/rank_groups.h"

#include <set>

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

Strategy strategy(std::int64_t t, std::int64_t c, std::int64_t p, std::int64_t d, const std::string& order) {
  Strategy s;
  s.tensor = t;
  s.context = s.context_ring = c;
  s.pipeline = p;
  s.data = d;
  s.rank_order = order;
  return s;
}

std::vector<Strategy> strategies() {
  std::vector<Strategy> all;
  for (const char* order : {"tp-cp-ep-dp-pp", "tp-cp-pp-dp", "pp-dp-tp-cp", "dp-pp-cp-tp"}) {
    for (const std::int64_t t : {1, 2, 4}) {
      for (const std::int64_t c : {1, 2}) {
        for (const std::int64_t p : {1, 2, 3}) {
          for (const std::int64_t d : {1, 2, 6}) all.push_back(strategy(t, c, p, d, order));
        }
      }
    }
  }
  return all;
}

TEST(Groups, ArePartitions) {
  for (Strategy& s : strategies()) {
    for (const bool sharded : {false, true}) {
      for (const bool hybrid : {false, true}) {
        s.shard_group = hybrid ? s.context * (s.data % 2 == 0 ? s.data / 2 : 1) : 0;
        const auto tables = make_groups(s, sharded, hybrid);
        const auto size = [&](Dimension d) {
          const GroupTable& table = tables[static_cast<std::size_t>(d)];
          std::set<std::int32_t> seen;
          for (std::size_t g = 0; g < table.groups.size(); ++g) {
            EXPECT_TRUE(std::is_sorted(table.groups[g].begin(), table.groups[g].end()));
            EXPECT_EQ(table.groups[g].size(), table.groups.front().size()) << name_of(d);
            for (const std::int32_t r : table.groups[g]) {
              EXPECT_TRUE(seen.insert(r).second);
              EXPECT_EQ(table.member_of[r], static_cast<std::int32_t>(g));
            }
          }
          EXPECT_EQ(static_cast<std::int64_t>(seen.size()), s.gpus());
          return static_cast<std::int64_t>(table.groups.front().size());
        };
        const std::int64_t replicas = s.data * s.context, shards = hybrid ? s.shard_group : replicas;
        EXPECT_EQ(size(Dimension::tensor), s.tensor);
        EXPECT_EQ(size(Dimension::context), s.context);
        EXPECT_EQ(size(Dimension::pipeline), s.pipeline);
        EXPECT_EQ(size(Dimension::data), shards);
        EXPECT_EQ(size(Dimension::replicate), replicas / shards);
        EXPECT_EQ(size(Dimension::model), s.tensor * s.pipeline * (sharded ? shards : 1));
        EXPECT_EQ(size(Dimension::world), s.gpus());
      }
    }
  }
}

// Members of a group differ in its own coordinate alone, and stand in the order of that coordinate.
TEST(Groups, FollowTheCoordinates) {
  for (const Strategy& s : strategies()) {
    const auto at = coordinates(s);
    const auto tables = make_groups(s, false, false);
    for (const auto& group : tables[static_cast<std::size_t>(Dimension::tensor)].groups) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        EXPECT_EQ(at[group[i]].tensor, static_cast<std::int64_t>(i));
        EXPECT_EQ(at[group[i]].data, at[group[0]].data);
        EXPECT_EQ(at[group[i]].pipeline, at[group[0]].pipeline);
        EXPECT_EQ(at[group[i]].context, at[group[0]].context);
      }
    }
    for (const auto& group : tables[static_cast<std::size_t>(Dimension::pipeline)].groups) {
      for (std::size_t i = 0; i < group.size(); ++i) EXPECT_EQ(at[group[i]].pipeline, static_cast<std::int64_t>(i));
    }
    std::set<std::int32_t> ends;
    for (const auto& group : tables[static_cast<std::size_t>(Dimension::embedding)].groups) {
      const std::int64_t stage = at[group.front()].pipeline;
      if (stage != 0) {
        EXPECT_EQ(group.size(), 1U);
      }
      if (stage == 0) {
        EXPECT_EQ(group.size(), s.pipeline > 1 ? 2U : 1U);
      }
      if (stage == 0) {
        EXPECT_EQ(at[group.back()].pipeline, s.pipeline - 1);
      }
    }
  }
}

// Copies of a key/value head lie side by side in a tensor group, and with one copy everybody is alone.
TEST(Groups, CopiesOfHeadsAreNeighbours) {
  for (const Strategy& s : strategies()) {
    for (std::int64_t copies = 1; copies <= s.tensor; copies *= 2) {
      const auto at = coordinates(s);
      const auto tables = make_groups(s, false, false, copies);
      const GroupTable& tensor = tables[static_cast<std::size_t>(Dimension::tensor)];
      const GroupTable& kv = tables[static_cast<std::size_t>(Dimension::kv)];
      EXPECT_EQ(static_cast<std::int64_t>(kv.groups.size()) * copies, s.gpus());
      for (const auto& group : kv.groups) {
        ASSERT_EQ(static_cast<std::int64_t>(group.size()), copies);
        for (const std::int32_t r : group) {
          EXPECT_EQ(tensor.member_of[r], tensor.member_of[group.front()]);
          EXPECT_EQ(at[r].tensor / copies, at[group.front()].tensor / copies);
        }
      }
    }
  }
}

// The place of a rank in a grid's row, column and depth is its number in the tensor group, written in base q.
TEST(Groups, AGridHasRowsColumnsAndDepth) {
  struct Square {
    const char* kind;
    std::int64_t q, depth;
  };
  for (const Square& g :
       {Square{"2d", 2, 1}, Square{"2d", 3, 1}, Square{"2.5d", 2, 2}, Square{"2.5d", 2, 3}, Square{"3d", 2, 2}}) {
    for (const char* order : {"tp-cp-dp-pp", "dp-pp-cp-tp"}) {
      Strategy s = strategy(g.q * g.q * g.depth, 1, 2, 3, order);
      s.tensor_kind = g.kind;
      const bool layers = s.tensor_kind == "2.5d";
      s.tensor_depth = layers ? g.depth : 1;
      const auto at = coordinates(s);
      const auto tables = make_groups(s, true, false);
      const auto groups = [&](Dimension d) { return tables[static_cast<std::size_t>(d)].groups; };
      std::int64_t stride = 1;
      for (const auto& [d, side] : {std::pair{Dimension::tensor_row, g.q}, std::pair{Dimension::tensor_column, g.q},
                                    std::pair{Dimension::tensor_depth, g.depth}}) {
        for (const auto& group : groups(d)) {
          ASSERT_EQ(static_cast<std::int64_t>(group.size()), side) << g.kind << name_of(d);
          for (std::size_t i = 0; i < group.size(); ++i) {
            EXPECT_EQ(at[group[i]].tensor - at[group[0]].tensor, static_cast<std::int64_t>(i) * stride);
            EXPECT_EQ(at[group[i]].data, at[group[0]].data);
            EXPECT_EQ(at[group[i]].pipeline, at[group[0]].pipeline);
          }
        }
        stride *= side;
      }
      // The depth layers of a 2.5d grid hold the same weights.
      EXPECT_EQ(static_cast<std::int64_t>(groups(Dimension::data).front().size()), 3 * (layers ? g.depth : 1));
      EXPECT_EQ(static_cast<std::int64_t>(groups(Dimension::tensor).front().size()), s.tensor / (layers ? g.depth : 1));
      EXPECT_EQ(static_cast<std::int64_t>(groups(Dimension::pipeline).front().size()), 2);
      EXPECT_EQ(static_cast<std::int64_t>(groups(Dimension::model).front().size()), s.gpus());
    }
  }
}

// Megatron-Core puts the pipeline outermost, Llama 3 data.
TEST(Groups, RankOrderDecidesTheStride) {
  const auto second = [](const std::string& order, Dimension d) {
    return make_groups(strategy(2, 1, 2, 4, order), false, false)[static_cast<std::size_t>(d)].groups.front()[1];
  };
  EXPECT_EQ(second("tp-cp-ep-dp-pp", Dimension::tensor), 1);
  EXPECT_EQ(second("tp-cp-ep-dp-pp", Dimension::data), 2);
  EXPECT_EQ(second("tp-cp-ep-dp-pp", Dimension::pipeline), 8);
  EXPECT_EQ(second("tp-cp-pp-dp", Dimension::pipeline), 2);
  EXPECT_EQ(second("tp-cp-pp-dp", Dimension::data), 4);
}

TEST(Groups, RefuseWrongOrders) {
  EXPECT_THROW(coordinates(strategy(2, 1, 2, 2, "tp-dp")), Error);
  EXPECT_THROW(coordinates(strategy(2, 1, 2, 2, "tp-tp-dp-pp")), Error);
  EXPECT_THROW(coordinates(strategy(2, 1, 2, 2, "tp-xp-dp-pp")), Error);
}

// Neighbouring ranks cut an expert, blocks of them hold all experts, and ranks in the same place of every block hold
// the same experts.
TEST(Groups, ExpertsAreLaidOutOverTheRanksOfAStage) {
  for (const char* order : {"tp-cp-ep-dp-pp", "tp-cp-pp-dp"}) {
    Strategy s = strategy(2, 1, 2, 8, order);
    s.expert = 4;
    s.expert_tensor = 2;
    const auto tables = make_groups(s, false, false, 1, true);
    const auto group = [&](Dimension d) {
      const auto ranks = tables[static_cast<std::size_t>(d)].groups.front();
      return std::vector(ranks.begin(), ranks.end());
    };
    std::vector<std::int32_t> stage;  // ranks of the same stage as rank 0
    const std::vector<Coordinates> at = coordinates(s);
    for (std::int32_t r = 0; r < s.gpus(); ++r) {
      if (at[static_cast<std::size_t>(r)].pipeline == 0) stage.push_back(r);
    }
    EXPECT_EQ(group(Dimension::expert_tensor), (std::vector{stage[0], stage[1]}));
    EXPECT_EQ(group(Dimension::expert), (std::vector{stage[0], stage[2], stage[4], stage[6]}));
    EXPECT_EQ(group(Dimension::expert_data), (std::vector{stage[0], stage[8]}));
    EXPECT_EQ(group(Dimension::model).size(), 32U);
    EXPECT_EQ(group(Dimension::expert_replicate).size(), 1U);
  }
}

// Hybrid sharding: the ranks that share shards hold every expert, whatever the rank order; a shard of experts has a
// replica in every set.
TEST(Groups, ExpertsLieAmongThoseWhoShareShards) {
  for (const char* order : {"tp-cp-dp-pp", "tp-dp-cp-pp", "dp-pp-tp-cp"}) {
    Strategy s = strategy(2, 2, 2, 4, order);
    s.expert = 4;
    s.shard_group = 4;
    const auto tables = make_groups(s, true, true, 1, true);
    const std::vector<Coordinates> at = coordinates(s);
    const auto set_of = [&](std::int32_t r) {
      const Coordinates& c = at[static_cast<std::size_t>(r)];
      return std::pair(c.pipeline, (c.data * s.context + c.context) / s.shard_group);
    };
    const auto groups = [&](Dimension d) { return tables[static_cast<std::size_t>(d)].groups; };
    for (const Dimension d : {Dimension::expert, Dimension::expert_data}) {
      for (const auto& group : groups(d)) {
        EXPECT_EQ(group.size(), d == Dimension::expert ? 4U : 2U);
        for (const std::int32_t r : group) EXPECT_EQ(set_of(r), set_of(group.front())) << order;
      }
    }
    for (const auto& group : groups(Dimension::expert_replicate)) {
      ASSERT_EQ(group.size(), 2U);
      EXPECT_NE(set_of(group[0]), set_of(group[1]));
      EXPECT_EQ(at[static_cast<std::size_t>(group[0])].pipeline, at[static_cast<std::size_t>(group[1])].pipeline);
    }
    EXPECT_EQ(groups(Dimension::model).front().size(), 16U);
  }
}

}  // namespace
}  // namespace orrery
