#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "sim/predict.h"
#include "sim/search.h"
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
    " sharding: [zero1, fsdp], offload: [none], recompute: [none, full, selective, mlp]}\n";

// What runs again in backward changes nothing before it, so that one forward bounds what all of a family take.
TEST(SearchPlayed, TheForwardOfOneBoundsWhatDiffersInBackward) {
  const Space space(parse_open_spec(std::string(kLadders), "t.yaml"), 16);
  const Profile profile = profile_for(space.base(), "");
  StackCosts costs(space.base(), profile);
  Bounds bounds(space, profile, costs);
  std::map<std::tuple<std::int64_t, std::string_view, std::int64_t, Sharding, bool>, ForwardPart> first;
  int shared = 0;
  for (const Point& p : test::points_of(space)) {
    const Evaluation e = evaluate_within(space, profile, p, std::numeric_limits<Picoseconds>::max());
    if (!e.report) continue;
    const auto [it, fresh] = first.try_emplace(
        {p.layout.pipeline, p.cell.schedule, p.cell.virtual_stages, p.cell.sharding, p.features.pipeline}, e.forward);
    const ForwardPart& known = it->second;
    bounds.enter(p.layout);
    bounds.of(p.cell);
    bounds.of(p.features);
    const bool whole = bounds.runs_whole_stage_again();
    const Turn& turn = whole ? known.free : known.begins;
    if (!whole) {
      EXPECT_EQ(e.forward.begins.time, known.begins.time) << space.text_of(p);
    }
    EXPECT_EQ(e.forward.free.time, known.free.time) << space.text_of(p);
    EXPECT_LE(turn.time + bounds.after_turn(p.features, turn.stage), picoseconds(e.report->step_time_s))
        << space.text_of(p);
    shared += fresh ? 0 : 1;
  }
  EXPECT_GT(shared, 100);
}

// Activations that leave for the host do so in forward, and those that will be computed again do not: such forwards
// differ, and none bounds another.
TEST(SearchPlayed, ForwardsThatOffloadActivationsAreNotShared) {
  std::string text(kLadders);
  text.replace(text.find("micro_batch: 2"), 14, "micro_batch: 2, offload: {activations: cpu}");
  const std::string ladders = "search: {pipeline: [2], virtual_stages: [1], schedule: [1f1b], sharding: [zero1], ";
  text.replace(text.find("search: {"), text.find(" offload: [none]") - text.find("search: {") + 1, ladders);
  const Space space(parse_open_spec(text, "t.yaml"), 16);
  const Profile profile = profile_for(space.base(), "");
  StackCosts costs(space.base(), profile);
  Bounds bounds(space, profile, costs);
  std::set<Picoseconds> turns;
  for (const Point& p : test::points_of(space)) {
    bounds.enter(p.layout);
    bounds.of(p.cell);
    EXPECT_FALSE(bounds.forward_is_shared()) << space.text_of(p);
    const Evaluation e = evaluate_within(space, profile, p, std::numeric_limits<Picoseconds>::max());
    if (e.report) turns.insert(e.forward.free.time);
  }
  EXPECT_GT(turns.size(), 1U);
}

}  // namespace
}  // namespace orrery
