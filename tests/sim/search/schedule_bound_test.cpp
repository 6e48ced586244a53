#include "sim/search/schedule_bound.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "sim/predict/predict.h"
#include "sim/search/search.h"
#include "tests/sim/small_space.h"

namespace orrery {
namespace {

constexpr std::string_view kLadders =
    "model: {name: small, layers: 8, hidden: 2048, heads: 16, kv_heads: 16, feed_forward: 8192, vocab: 32000}\n"
    "sequence: 2048\ncluster: {node: dgx-a100, nodes: 2}\nsoftware: megatron-core\n"
    "strategy: {global_batch: 16, context: 1, data: 4, micro_batch: 2, sequence_parallel: true, rank_order: "
    "tp-cp-dp-pp,"
    " overlap: {gradient_reduce: true, parameter_gather: true, tensor: false}}\n"
    "search: {pipeline: [1, 2], virtual_stages: [1, 2], schedule: [1f1b, gpipe, interleaved, zb-h1],"
    " sharding: [zero1, fsdp], offload: [none], offload_activations: [none], recompute: [none, full, selective, "
    "mlp]}\n";

// Compares the turn of every point of a space with that of its family. Returns how many points have one.
int expect_shared_forwards(const std::string& text) {
  const Space space(parse_open_spec(text, "t.yaml"), 16);
  const Profile profile = profile_for(space.base(), "");
  ModelCostCache costs(space.base(), profile);
  BoundCache cache(space, profile, costs);
  std::map<std::tuple<std::int64_t, std::string_view, std::int64_t, Sharding, bool>, ForwardPart> first;
  int shared = 0;
  for (const Point& p : test::points_of(space)) {
    const Evaluation e = evaluate_within(space, profile, p, std::numeric_limits<Picoseconds>::max());
    if (!e.report) continue;
    const auto [it, fresh] = first.try_emplace(
        {p.layout.pipeline, p.cell.schedule, p.cell.virtual_stages, p.cell.sharding, p.features.pipeline}, e.forward);
    const ForwardPart& known = it->second;
    LayoutCosts layout(cache, p.layout);
    const CellBounds cell = cell_bounds(layout, p.cell);
    const bool whole = runs_whole_stage_again(cell.work);
    const Turn& turn = whole ? known.free : known.begins;
    if (!whole) {
      EXPECT_EQ(e.forward.begins.time, known.begins.time) << space.text_of(p);
    }
    EXPECT_EQ(e.forward.free.time, known.free.time) << space.text_of(p);
    EXPECT_LE(turn.time + after_turn(layout, cell, p.features, turn.stage), picoseconds(e.report->step_time_s))
        << space.text_of(p);
    shared += fresh ? 0 : 1;
  }
  return shared;
}

// Recomputation in backward changes nothing before it, so that one forward bounds the time of all members of a family.
TEST(ScheduleBound, TheForwardOfOneBoundsWhatDiffersInBackward) {
  EXPECT_GT(expect_shared_forwards(std::string(kLadders)), 100);
}

// A schedule that runs every forward first does so without a pipeline too.
TEST(ScheduleBound, OneStageOfAScheduleThatRunsAllForwardsFirstIsBounded) {
  std::string text(kLadders);
  const auto set = [&](std::string_view old, std::string_view now) { text.replace(text.find(old), old.size(), now); };
  set("[1f1b, gpipe, interleaved, zb-h1]", "[gpipe]");
  set("global_batch: 16", "global_batch: 64");
  EXPECT_GT(expect_shared_forwards(text), 20);
}

// Offloaded activations and states make no forward shorter: the forward of a strategy without offloading bounds them.
TEST(ScheduleBound, TheForwardOfOneBoundsWhatLiesElsewhere) {
  std::string text(kLadders);
  const std::string open =
      "search: {pipeline: [1, 2], virtual_stages: [1], schedule: [1f1b], sharding: [zero1, fsdp], offload: [none, "
      "optimizer, optimizer+parameters], offload_activations: [none, cpu], recompute: [none, mlp], recompute_layers: "
      "[null]}\n";
  text.replace(text.find("search: {"), std::string::npos, open);
  const Space space(parse_open_spec(text, "t.yaml"), 16);
  const Profile profile = profile_for(space.base(), "");
  ModelCostCache costs(space.base(), profile);
  BoundCache cache(space, profile, costs);
  std::map<std::tuple<std::int64_t, Sharding, bool>, ForwardPart> stays;
  int compared = 0;
  for (const Point& p : test::points_of(space)) {
    const Evaluation e = evaluate_within(space, profile, p, std::numeric_limits<Picoseconds>::max());
    if (!e.report) continue;
    const auto family = std::tuple(p.layout.pipeline, p.cell.sharding, p.features.pipeline);
    if (p.cell.activations == "none" && p.cell.offload == "none") stays.try_emplace(family, e.forward);
    const ForwardPart& known = stays.at(family);
    LayoutCosts layout(cache, p.layout);
    const CellBounds cell = cell_bounds(layout, p.cell);
    ASSERT_TRUE(forward_is_shared(space.base(), p.cell));
    const Turn& turn = runs_whole_stage_again(cell.work) ? known.free : known.begins;
    EXPECT_LE(turn.time + after_turn(layout, cell, p.features, turn.stage), picoseconds(e.report->step_time_s))
        << space.text_of(p);
    ++compared;
  }
  EXPECT_GT(compared, 40);
}

}  // namespace
}  // namespace orrery
