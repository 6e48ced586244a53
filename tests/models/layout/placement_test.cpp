#include "models/layout/placement.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "models/partition/rank_groups.h"
#include "models/plan/unfold.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::random_spec;

Bytes bytes_of(const Plan& plan, std::uint32_t frame, std::uint16_t slot) {
  return plan.blocks[plan.frames[frame].block].buffers[slot].bytes;
}

// Calls f(spec, plan, state) for the chunks of many random plans.
template <class F>
void for_chunks(int seeds, const F& f) {
  for (int seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Spec spec = random_spec(static_cast<std::uint64_t>(seed));
    const Plan plan = make_plan(spec);
    for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
      for (const std::uint32_t state : states_of(plan, slot)) f(spec, plan, state);
    }
  }
}

std::int64_t elements_of_chunk(const Plan& plan, std::uint32_t state) {
  std::int64_t sum = 0;
  for (const PlacedParameter& p : parameters_of(plan, state)) sum += p.local.out * p.local.in;
  return sum;
}

GroupList::Group group_of(const Plan& plan, std::uint32_t state) {
  const GroupTable& data = plan.dimensions[static_cast<std::size_t>(Dimension::data)];
  return data.groups[data.member_of[plan.classes[plan.frames[state].slot].representative]];
}

std::int64_t members_of(const Plan& plan, std::uint32_t state) {
  return static_cast<std::int64_t>(group_of(plan, state).size());
}

TEST(Placement, WeightsCoverTheChunkOnce) {
  for_chunks(150, [](const Spec&, const Plan& plan, std::uint32_t state) {
    std::int64_t next = 0;
    std::set<std::string> names;
    for (const PlacedParameter& p : parameters_of(plan, state)) {
      EXPECT_EQ(p.first, next) << p.name;
      next += p.local.out * p.local.in;
      EXPECT_TRUE(names.insert(p.name).second) << p.name;
    }
    const Bytes parameters = bytes_of(plan, state, kParameters), gradients = bytes_of(plan, state, kGradients);
    EXPECT_TRUE(parameters == 0 || parameters == next * plan.element_bytes);
    EXPECT_TRUE(gradients == 0 || gradients == next * 2 || gradients == next * 4);
  });
}

// Together the members own every element of every run once; in shards nothing overlaps or leaves the buffer.
TEST(Placement, PiecesPartitionTheChunk) {
  for_chunks(150, [](const Spec& spec, const Plan& plan, std::uint32_t state) {
    const std::int64_t all = elements_of_chunk(plan, state), members = members_of(plan, state);
    std::vector<int> owners(static_cast<std::size_t>(all));
    bool shared = false;
    for (std::int64_t m = 0; m < members; ++m) {
      std::int64_t in_shard = 0;
      for (const Piece& piece : pieces_of(plan, state, group_of(plan, state)[static_cast<std::size_t>(m)])) {
        shared = shared || piece.owned < piece.elements;
        EXPECT_EQ(piece.shard_first, in_shard);
        in_shard += ceil_div(piece.elements, piece.owned < piece.elements || members == 1 ? members : 1);
        ASSERT_GE(piece.owned_first, piece.first);
        ASSERT_LE(piece.owned_first + piece.owned, piece.first + piece.elements);
        for (std::int64_t i = 0; i < piece.owned; ++i) ++owners[static_cast<std::size_t>(piece.owned_first + i)];
      }
      const Bytes moments = bytes_of(plan, state, kMoment1);
      EXPECT_TRUE(moments == 0 || in_shard * spec.strategy.optimizer.moment_bytes <= moments);
    }
    const bool sharded = row_of(spec.strategy.sharding).shards_optimizer && members > 1;
    for (const int n : owners) EXPECT_EQ(n, sharded ? 1 : members);
    EXPECT_EQ(shared, sharded && all > 0);
  });
}

// A rank's part of a weight, cut over `ranks`.
LocalParameter parameter(Cut cut, std::int64_t out, std::int64_t in) {
  LocalParameter p;
  p.cut = cut;
  p.out = out;
  p.in = in;
  return p;
}

struct CutCase {
  Cut cut;
  std::int64_t out, in;  // size of the uncut weight
};

TEST(Placement, UncutIndexIsABijectionOverTheGroup) {
  const Model model;
  for (const CutCase& c : {CutCase{Cut::rows, 24, 5}, {Cut::columns, 5, 24}, {Cut::halves, 48, 5}}) {
    for (const std::int64_t ranks : {1, 2, 3, 4, 6}) {
      const bool columns = c.cut == Cut::columns;
      const LocalParameter p = parameter(c.cut, columns ? c.out : c.out / ranks, columns ? c.in / ranks : c.in);
      const UncutShape shape = uncut_shape(model, p, ranks);
      EXPECT_EQ(shape.out, c.out);
      EXPECT_EQ(shape.in, c.in);
      std::set<std::int64_t> seen;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        for (std::int64_t i = 0; i < (columns ? p.in : p.out); ++i) {
          EXPECT_TRUE(seen.insert(uncut_index(model, p, i, rank, ranks)).second);
        }
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(columns ? c.in : c.out));
      EXPECT_EQ(*seen.rbegin(), (columns ? c.in : c.out) - 1);
    }
  }
}

// Gated layers: the first half of a rank's rows are gates, the second half ups, of the same columns of the model.
TEST(Placement, HalvesStayTogether) {
  const Model model;
  const LocalParameter p = parameter(Cut::halves, 8, 1);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(uncut_index(model, p, i, rank, 3), rank * 4 + i);
      EXPECT_EQ(uncut_index(model, p, 4 + i, rank, 3), 12 + rank * 4 + i);
    }
  }
}

// Every query row is held once, every key/value row by as many ranks as share its head; and a rank's queries see the
// key/value heads that the model gives them.
TEST(Placement, HeadsAreDealtOutAsTheModelGroupsThem) {
  for (const std::int64_t kv_heads : {1, 2, 4, 8}) {
    for (const std::int64_t ranks : {1, 2, 4, 8}) {
      Model m;
      m.heads = 8;
      m.kv_heads = kv_heads;
      m.head_dim = 3;
      const std::int64_t q = m.heads / ranks, kv = std::max<std::int64_t>(1, kv_heads / ranks);
      const LocalParameter p = parameter(Cut::heads, (q + 2 * kv) * m.head_dim, 5);
      EXPECT_EQ(uncut_shape(m, p, ranks).out, (m.heads + 2 * kv_heads) * m.head_dim);
      std::map<std::int64_t, std::int64_t> holders;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const auto head = [&](std::int64_t i) { return uncut_index(m, p, i * m.head_dim, rank, ranks) / m.head_dim; };
        for (std::int64_t i = 0; i < p.out; ++i) ++holders[uncut_index(m, p, i, rank, ranks)];
        for (std::int64_t i = 0; i < q; ++i) {
          const std::int64_t wanted = head(i) / (m.heads / kv_heads), local = q + i / (q / kv);
          EXPECT_EQ(head(local), m.heads + wanted);
          EXPECT_EQ(head(local + kv), m.heads + kv_heads + wanted);
        }
      }
      ASSERT_EQ(holders.size(), static_cast<std::size_t>((m.heads + 2 * kv_heads) * m.head_dim));
      for (const auto& [row, n] : holders) {
        EXPECT_EQ(n, row < m.heads * m.head_dim ? 1 : std::max<std::int64_t>(1, ranks / kv_heads));
      }
    }
  }
}

// Wherever a weight is held it has one name and one uncut shape; together a layer's are those of the model.
TEST(Placement, NamesAreTheSameOnAllRanks) {
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Spec spec = random_spec(static_cast<std::uint64_t>(seed), test::kAllShardings, test::Drawn::plain);
    const Plan plan = make_plan(spec);
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> shapes;
    std::int64_t copies = 0;
    for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
      if (plan.kind_of(plan.classes[slot].representative) != 0) continue;  // ranks that lie elsewhere hold the same
      for (const std::uint32_t state : states_of(plan, slot)) {
        for (const PlacedParameter& p : parameters_of(plan, state)) {
          const UncutShape shape = uncut_shape(spec.model, p.local, spec.strategy.tensor);
          const auto [it, fresh] = shapes.try_emplace(p.name, shape.out, shape.in);
          EXPECT_EQ(it->second, std::make_pair(shape.out, shape.in)) << p.name;
          EXPECT_EQ(fresh, !p.copy) << p.name;
          copies += p.copy ? 1 : 0;
        }
      }
    }
    EXPECT_EQ(copies, spec.model.tied_embeddings && !ends_meet(test::placement_of(spec)) ? 1 : 0);
    std::int64_t elements_of_layer = 0;
    for (const auto& [name, shape] : shapes) {
      if (name.starts_with("layer 0 ")) elements_of_layer += shape.first * shape.second;
    }
    std::int64_t expected = 0;
    for (const Parameter& p : layer_parameters(spec.model, 0)) expected += elements(p);
    EXPECT_EQ(elements_of_layer, expected);
  }
}

// The ranks of a node hold all weights once more, unit by unit; the shards of all ranks are those of plain ZeRO-3.
TEST(Placement, SecondaryShardsCoverTheWeightsInEveryNode) {
  const std::string strategy = "data: 16, global_batch: 16, sharding: zero3";
  const Plan plain = make_plan(test::spec_of(test::kSmall, strategy));
  const Plan plan = make_plan(test::spec_of(
      test::kSmall, strategy + ", zero_quantize: {weights: int8, gradients: int4, secondary_shards: node}"));
  const std::uint32_t state = states_of(plan, 0).front();
  std::int64_t covered = 0;
  for (std::int64_t rank = 8; rank < 16; ++rank) {
    std::int64_t shard = 0;
    for (const Piece& p : secondary_pieces_of(plan, state, rank)) {
      EXPECT_EQ(p.ranks, 8);
      EXPECT_EQ(p.shard_first, shard);
      shard += ceil_div(p.elements, p.ranks);
      covered += p.owned;
    }
    EXPECT_EQ(shard * plan.element_bytes, bytes_of(plan, state, kSecondaryShard));
    const std::vector<Piece> own = pieces_of(plan, state, rank), before = pieces_of(plain, state, rank);
    ASSERT_EQ(own.size(), before.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(own[i].owned_first, before[i].owned_first);
      EXPECT_EQ(own[i].owned, before[i].owned);
      EXPECT_EQ(own[i].unit, before[i].unit);
    }
  }
  EXPECT_EQ(covered, elements_of_chunk(plan, state));
}

// Places in the buffer of frozen weights are counted in bytes if some weights are kept in NF4.
TEST(Placement, FrozenWeightsInNf4LieByteByByte) {
  const Plan plan = make_plan(test::spec_of(std::string(test::kSmall) + ", lora: {rank: 4, weights: nf4}",
                                            "data: 3, global_batch: 3, sharding: zero3"));
  const std::uint32_t state = states_of(plan, 0).front();
  std::int64_t next = 0;
  for (const PlacedParameter& p : parameters_of(plan, state, true)) {
    EXPECT_EQ(p.first, next) << p.name;
    EXPECT_EQ(p.local.stored, p.local.nf4 ? narrow_bytes(kNf4Format, p.local.out * p.local.in)
                                          : p.local.out * p.local.in * plan.element_bytes);
    next += p.local.stored;
  }
  std::int64_t owned = 0;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    for (const Piece& p : frozen_pieces_of(plan, state, rank)) owned += p.owned;
  }
  EXPECT_EQ(owned, next);
}

}  // namespace
}  // namespace orrery
