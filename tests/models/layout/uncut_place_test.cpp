// Places of ranks' parts in uncut weights.
#include "models/layout/uncut_place.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "models/spec/vision.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

// Every element of every uncut matrix lies on a rank, and on as many ranks as hold the same weight; rows of a part have
// the indices that uncut_index() states.
TEST(UncutPlace, PartsOfATensorGroupAreTheWeight) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Spec spec = test::random_spec(seed, test::kAllShardings, test::Drawn::plain);
    const Plan plan = make_plan(spec);
    for (const std::uint32_t state : states_of(plan, 0)) {
      for (const PlacedParameter& placed : parameters_of(plan, state)) {
        const LocalParameter& p = placed.local;
        if (p.experts > 0 || p.over != Dimension::tensor) continue;
        std::map<std::int64_t, std::int64_t> holders;
        const auto group = plan.dimensions[static_cast<std::size_t>(Dimension::tensor)].groups[0];
        for (const std::int32_t rank : group) {
          const GroupPosition seat = position_in(plan, Dimension::tensor, rank);
          const UncutPlace place = uncut_place(spec.model, p, [&](Dimension d) { return position_in(plan, d, rank); });
          EXPECT_EQ(place.whole.out * place.whole.in,
                    uncut_shape(spec.model, p, seat.size).out * uncut_shape(spec.model, p, seat.size).in);
          std::int64_t rows = 0;
          for (const UncutRows& run : place.rows) {
            EXPECT_EQ(run.local, rows);
            rows += run.rows;
            for (std::int64_t r = 0; r < run.rows; ++r) {
              ++holders[run.uncut + r];
              if (p.cut != Cut::columns) {
                EXPECT_EQ(run.uncut + r, uncut_index(spec.model, p, run.local + r, seat.index, seat.size));
              }
            }
          }
          EXPECT_EQ(rows, p.out);
          EXPECT_EQ(place.columns, p.in);
          EXPECT_EQ(place.first_row.back(), place.expert_rows);
        }
        EXPECT_EQ(holders.size(), static_cast<std::size_t>(uncut_shape(spec.model, p, spec.strategy.tensor).out));
      }
    }
  }
}

// A matrix that a grid cuts by rows and columns: the parts of its ranks tile it.
TEST(UncutPlace, PartsOfAGridTileTheMatrix) {
  for (const char* kind : {"2d", "2.5d", "3d"}) {
    SCOPED_TRACE(kind);
    const int tensor = std::string(kind) == "2d" ? 4 : 8;
    const Spec spec =
        test::spec_of("layers: 2, hidden: 64, heads: 8, vocab: 256, feed_forward: 128, gated: false",
                      fmt::format("tensor: {}, tensor_kind: {}, micro_batch: 8, global_batch: 8", tensor, kind));
    const Plan plan = make_plan(spec);
    for (const PlacedParameter& placed : parameters_of(plan, states_of(plan, 0).front())) {
      const LocalParameter& p = placed.local;
      if (!p.columns_over) continue;
      std::set<std::pair<std::int64_t, std::int64_t>> seen;
      std::int64_t whole = 0;
      for (const std::int32_t rank : plan.dimensions[static_cast<std::size_t>(Dimension::tensor)].groups[0]) {
        const UncutPlace place = uncut_place(spec.model, p, [&](Dimension d) { return position_in(plan, d, rank); });
        whole = place.whole.out * place.whole.in;
        for (const UncutRows& run : place.rows) {
          for (std::int64_t r = 0; r < run.rows; ++r) {
            for (std::int64_t c = 0; c < place.columns; ++c)
              EXPECT_TRUE(seen.insert({run.uncut + r, place.column + c}).second) << placed.name;
          }
        }
      }
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), whole) << placed.name;
    }
  }
}

// Experts lie one after another: the second of two expert ranks has the second half of them, each cut in two.
TEST(UncutPlace, ExpertsFollowEachOther) {
  Model model;
  LocalParameter p;
  p.name = "moe.experts.up.weight";
  p.experts = 2;
  p.out = 2 * 6;  // two experts of 6 rows: 3 of the gate and 3 of the up projection
  p.in = 5;
  p.cut = Cut::halves;
  const auto position = [](Dimension d) {
    return d == Dimension::expert || d == Dimension::expert_tensor ? GroupPosition{1, 2} : GroupPosition{};
  };
  const UncutPlace place = uncut_place(model, p, position);
  EXPECT_EQ(place.whole.out, 4 * 12);
  EXPECT_EQ(place.expert_rows, 12);
  ASSERT_EQ(place.rows.size(), 4U);
  EXPECT_EQ(place.rows[0].uncut, 2 * 12 + 3);      // gates of expert 2, second half
  EXPECT_EQ(place.rows[1].uncut, 2 * 12 + 6 + 3);  // its ups
  EXPECT_EQ(place.rows[2].uncut, 3 * 12 + 3);
  EXPECT_EQ(place.rows[2].local, 6);
  EXPECT_EQ(place.rows[3].section, 1);
}

// A tile is a range of rows of a weight.
TEST(UncutPlace, TilesArePartsOfTheirWeight) {
  Model model;
  LocalParameter p;
  p.out = 4;
  p.in = 3;
  p.cut = Cut::halves;
  p.tile = 2;
  p.tile_first = 4;
  p.tile_of = 12;
  const UncutPlace place = uncut_place(model, p, [](Dimension) { return GroupPosition{}; });
  ASSERT_EQ(place.rows.size(), 2U);
  EXPECT_EQ(place.rows[0].uncut, 4);
  EXPECT_EQ(place.rows[0].rows, 2);
  EXPECT_EQ(place.rows[1].section, 1);
  EXPECT_EQ(place.rows[1].local, 2);
  EXPECT_EQ(place.rows[1].uncut, 6);
  EXPECT_EQ(place.whole.out, 12);
}

}  // namespace
}  // namespace orrery
