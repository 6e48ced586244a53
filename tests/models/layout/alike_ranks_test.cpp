#include "models/layout/alike_ranks.h"

#include <set>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"

namespace orrery {
namespace {

class AlikeRanks : public testing::Test {
 protected:
  std::set<std::string> names(const std::string& strategy, const std::vector<std::int64_t>& marked,
                              std::int64_t most = 100) {
    const Spec spec = parse_spec(
        "model: {name: t, layers: 8, hidden: 512, heads: 8, kv_heads: 2, feed_forward: 2048, vocab: 4096, moe: "
        "{experts: "
        "8, top_k: 2, feed_forward: 512}}\nsequence: 256\ncluster: {node: dgx-h100, nodes: 4}\nstrategy: {" +
            strategy + "}\n",
        "alike.yaml");
    const Draft draft(spec);
    std::vector<std::uint32_t> marks(static_cast<std::size_t>(draft.plan.workers()));
    for (const std::int64_t r : marked) marks[static_cast<std::size_t>(r)] = 1;
    const std::vector<std::string> all = alike_ranks(draft, std::vector<std::string>(marks.size()), marks, most);
    return {all.begin(), all.end()};
  }
};

using Names = std::set<std::string>;

TEST_F(AlikeRanks, AreOneClassWithoutMarks) { EXPECT_EQ(names("data: 8, global_batch: 8", {}), Names{""}); }

TEST_F(AlikeRanks, AreNamedByTheirFirstReplica) {
  EXPECT_EQ(names("data: 8, global_batch: 8", {3, 5}), (Names{", replica 3 and 1 alike", ", other replicas"}));
}

// Experts are spread over pairs of replicas. Where a pair is alike it is one class; where it is not, both its places
// are classes, in all pairs.
TEST_F(AlikeRanks, AreComparedInSetsOfReplicasThatShareExperts) {
  const std::string strategy = "data: 8, expert: 2, global_batch: 8";
  EXPECT_EQ(names(strategy, {2, 3}), (Names{", replica 2 and 1 alike", ", other replicas"}));
  EXPECT_EQ(names(strategy, {3}),
            (Names{", replica 0 and 2 alike", ", replica 1 and 2 alike", ", replica 2", ", replica 3"}));
}

// Two of four tensor ranks share a key/value head; a mark on one rank makes all four different.
TEST_F(AlikeRanks, AreApartWhereGroupsHaveAPartOfTheTensorRanks) {
  EXPECT_EQ(names("tensor: 4, data: 1, global_batch: 8", {1}).size(), 4U);
}

TEST_F(AlikeRanks, AreNotToldApartIntoTooManyClasses) {
  EXPECT_TRUE(names("data: 8, expert: 2, global_batch: 8", {3}, 3).empty());
}

}  // namespace
}  // namespace orrery
