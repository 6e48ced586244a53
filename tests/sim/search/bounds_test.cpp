#include "sim/search/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "sim/predict/predict.h"
#include "sim/search/schedule_bound.h"
#include "sim/search/search.h"
#include "tests/sim/small_space.h"

namespace orrery {
namespace {

using test::Draw;
using test::points_of;
using test::small_space;
using test::SmallSpace;
using test::space_of;
using test::wide_space;

struct Comparison {
  std::size_t compared = 0, refused = 0;
};

// Bounds of some points of a small space against their simulation.
void compare(std::uint64_t seed, const SmallSpace& small, const std::vector<LoggedNccl>& logged, Comparison& counts) {
  const Space space = space_of(small);
  Profile profile = profile_for(space.base(), "");
  profile.nccl = logged;
  ModelCostCache costs(space.base(), profile);
  BoundCache cache(space, profile, costs);
  const std::vector<Point> points = points_of(space);
  Draw random{seed + 1000};
  for (int i = 0; i < 20 && !points.empty(); ++i) {
    const Point& point = points[random.below(points.size())];
    const auto report = evaluate(space, profile, point);
    if (!report) ++counts.refused;
    if (!report) continue;
    const Picoseconds step = picoseconds(report->step_time_s);
    LayoutCosts layout_costs(cache, point.layout);
    const Picoseconds layout = layout_bound(layout_costs);
    if (has_rough_bound(space.base(), point.layout)) {
      EXPECT_LE(rough_bound(cache, point.layout), layout) << space.text_of(point);
    }
    ASSERT_TRUE(is_possible(layout_costs, point.cell)) << space.text_of(point) << small.text;
    const CellBounds parts = cell_bounds(layout_costs, point.cell);
    const Bound cell = bound_of(parts), whole = bound_of(layout_costs, parts, point.features),
                played = schedule_bound(layout_costs, parts, point.features);
    const Picoseconds group = group_bound(layout_costs, point.cell);
    const std::string what = fmt::format("seed {} {}\n{}", seed, space.text_of(point), small.text);
    EXPECT_LE(layout, step) << what;
    EXPECT_LE(cell.time, step) << what;
    EXPECT_LE(whole.time, step) << what;
    EXPECT_LE(group, step) << what;
    EXPECT_LE(played.time, step) << what;
    EXPECT_GE(played.time, whole.time) << what;
    for (const Bytes memory : {cell.memory, whole.memory, played.memory}) {
      if (memory >= kNoRoom) {
        EXPECT_FALSE(report->memory.fits) << what;
      } else {
        EXPECT_LE(memory, report->memory.peak_device) << what;
      }
    }
    EXPECT_GE(whole.time, cell.time) << what;
    ++counts.compared;
  }
}

TEST(SearchBounds, AreBelowWhatIsSimulated) {
  Comparison counts;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) compare(seed, small_space(seed), {}, counts);
  EXPECT_GT(counts.compared, 350U);
  EXPECT_LT(counts.refused, counts.compared / 4);
}

TEST(SearchBounds, AreBelowWithImages) {
  Comparison counts;
  for (std::uint64_t seed = 1; seed <= 15; ++seed) compare(seed, test::seeing_space(seed), {}, counts);
  EXPECT_GT(counts.compared, 150U);
}

TEST(SearchBounds, AreBelowBesideASecondModel) {
  Comparison counts;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) compare(seed, test::two_models_space(seed), {}, counts);
  EXPECT_GT(counts.compared, 80U);
}

// Long sequences of which the student's layers leave the device, while the teacher's keep nothing to leave.
TEST(SearchBounds, AreBelowWhereTheStudentsActivationsLeave) {
  const std::string sizes = "hidden: 2048, heads: 16, feed_forward: 8192, vocab: 1000}\n";
  Comparison counts;
  compare(1,
          {"model: {layers: 6, " + sizes + "teacher: {layers: 4, " + sizes +
           "sequence: 8192\ncluster: {node: dgx-h100, nodes: 1}\nstrategy: {global_batch: 32, micro_batch: 4, tensor: "
           "1, pipeline: 1, context: 1, sharding: zero1, recompute: none}\nsearch: {offload: [none], "
           "offload_activations: [cpu]}\n"},
          {}, counts);
  EXPECT_EQ(counts.compared, 20U);
}

// Few micro-batches, and stages of one chunk or of many: a micro-batch comes sooner to the first of many. Ends that
// weigh as much as several layers make the cuts unlike.
TEST(SearchBounds, AreBelowWhateverTheNumberOfChunks) {
  for (const int vocab : {1000, 64000}) {
    for (const char* software : {"megatron-core", "torchtitan", "nanotron"}) {
      const SmallSpace small{
          fmt::format("model: {{name: small, layers: 64, hidden: 4096, heads: 32, feed_forward: 16384, vocab: {}}}\n"
                      "sequence: 8192\ncluster: {{node: dgx-h100, nodes: 1}}\nsoftware: {}\n"
                      "strategy: {{global_batch: 8, micro_batch: 1, tensor: 1, context: 1, data: 1, pipeline: 8, "
                      "sharding: none, recompute: none, optimizer: sgd, clip: 0}}\n"
                      "search: {{schedule: [1f1b, interleaved], virtual_stages: [1, 2, 8], offload: [none], "
                      "offload_activations: [none], overlap_pipeline: [true]}}\n",
                      vocab, software),
          8};
      const Space space = space_of(small);
      const Profile profile = profile_for(space.base(), "");
      ModelCostCache costs(space.base(), profile);
      BoundCache cache(space, profile, costs);
      const std::vector<Point> points = points_of(space);
      std::int64_t most = 0;
      for (const Point& point : points) {
        const auto report = evaluate(space, profile, point);
        if (!report) continue;
        most = std::max(most, point.cell.virtual_stages);
        LayoutCosts layout_costs(cache, point.layout);
        EXPECT_LE(layout_bound(layout_costs), picoseconds(report->step_time_s)) << space.text_of(point) << small.text;
      }
      EXPECT_GT(most, 2) << small.text;
    }
  }
}

TEST(SearchBounds, AreBelowOnWiderSpaces) {
  Comparison counts;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) compare(seed, wide_space(seed), {}, counts);
  EXPECT_GT(counts.compared, 100U);
}

// Bounds with gradients reduced unit by unit, and with offloaded states, in schedules that split backward or run in
// both directions.
TEST(SearchBounds, AreBelowWithUnitsOfSplitAndTwoWaySchedules) {
  Comparison counts;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) compare(seed, test::split_space(seed), {}, counts);
  EXPECT_GT(counts.compared, 350U);
  EXPECT_LT(counts.refused, counts.compared / 20);
}

// For cells that differ in the number of recomputed layers, the points of the next cell may lie below those of the cell
// before by may_fall() at most.
TEST(SearchBounds, FallNoFurtherThanTheySayAsMoreRunsAgain) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Space space = space_of(seed % 2 == 0 ? small_space(seed) : test::split_space(seed));
    const Profile profile = profile_for(space.base(), "");
    ModelCostCache costs(space.base(), profile);
    BoundCache cache(space, profile, costs);
    for (const RankLayout& layout : space.layouts()) {
      LayoutCosts layout_costs(cache, layout);
      for (MemoryPlan cell : space.cells(layout)) {
        if (cell.recompute == "none" || cell.activations != "none" || !is_possible(layout_costs, cell)) continue;
        const auto least = [&](std::int64_t layers) {
          cell.recompute_layers = layers;
          const CellWork work = cell_work(layout_costs, cell);
          const TimeBound bound = time_bound(layout_costs, work);
          Picoseconds time = std::numeric_limits<Picoseconds>::max();
          for (const Features& features : space.features(layout, cell))
            time = std::min(time, point_time(layout_costs, work, bound, features).on_device);
          return time;
        };
        for (std::int64_t layers = 1; layers < space.fullest_stage(layout.pipeline, cell); ++layers) {
          const Picoseconds one = least(layers);
          const auto fall = may_fall(cell_work(layout_costs, cell));
          if (!fall) continue;
          EXPECT_LE(one - *fall, least(layers + 1)) << space.text_of({layout, cell, {}});
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 500U);
}

// Cases in which bounds were once too high: further predictions are recomputed whatever the number of layers; woven
// passes keep less than both; both copies share shards of hybrid sharding; weight gradients begin before a send has
// ended; two copies share gradients that no other rank has.
TEST(SearchBounds, AreBelowWhereTheyOnceWereNot) {
  const auto space = [](const std::string& model, const std::string& software, const std::string& search) {
    return "model: {name: big, hidden: 6144, heads: 64, kv_heads: 8, feed_forward: 24576, " + model +
           "}\nsequence: 8192\ncluster: {node: dgx-a100, nodes: 2}\nsoftware: " + software +
           "\nstrategy: {global_batch: 16, micro_batch: 1}\nsearch: {context: [1], rank_order: [tp-cp-dp-pp], "
           "overlap_tensor: [false], recompute_layers: [null, 1], " +
           search + "}\n";
  };
  const std::vector<SmallSpace> spaces = {
      {space("vocab: 16000, layers: 8, mtp_layers: 1", "deepspeed-2019",
             "tensor: [1], pipeline: [4], schedule: [zb-1p, zb-2p, 1f1b], sharding: [zero1], recompute: [mlp, full]")},
      {space("vocab: 16000, layers: 8", "deepspeed-2019",
             "tensor: [2], pipeline: [2], schedule: [dualpipe], sharding: [zero1, fsdp], recompute: [none]")},
      {space("vocab: 16000, layers: 6", "megatron-core",
             "tensor: [1], pipeline: [2], schedule: [dualpipe], sharding: [hsdp], shard_group: [2], recompute: [none], "
             "offload: [optimizer+gradients]")},
      {space("vocab: 256000, layers: 8", "pytorch-fsdp",
             "tensor: [1], pipeline: [2], schedule: [zb-h1, zb-h2, zb-1p, zb-2p], sharding: [fsdp-grad-op], recompute: "
             "[none, full]")},
      {space("vocab: 16000, layers: 4, tied_embeddings: true", "megatron-core",
             "tensor: [2], pipeline: [4], schedule: [zb-h1], sharding: [zero1], recompute: [none], overlap_pipeline: "
             "[false], sequence_parallel: [true]")},
      {space("vocab: 16000, layers: 6", "torchtitan",
             "tensor: [2], pipeline: [4], schedule: [chimera], sharding: [zero2], recompute: [none]")}};
  std::uint64_t seed = 0;
  for (const SmallSpace& small : spaces) {
    Comparison counts;
    compare(++seed, small, {}, counts);
    EXPECT_EQ(counts.compared, 20U) << small.text;
  }
}

// Orders fit what hosts take to issue a phase, and where a rank order puts tensor groups: bounds play the plan's
// orders.
TEST(SearchBounds, AreBelowWhereHostsAndRankOrdersShapeOrders) {
  Comparison counts;
  for (const char* tensor : {"1", "4"}) {
    const SmallSpace small = {
        std::string(
            "model: {name: tiny, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 64000, layers: 10}\n"
            "sequence: 1024\ncluster: {node: dgx-h100, nodes: 4}\nsoftware: {profile: megatron-core, call_us: 150}\n"
            "strategy: {global_batch: 96, micro_batch: 1}\nsearch: {context: [1], pipeline: [4], schedule: "
            "[zb-1p, zb-2p, zb-v], sharding: [none, zero1], recompute: [none, full], rank_order: "
            "[tp-cp-dp-pp, dp-tp-cp-pp], tensor: [") +
        tensor + "]}\n"};
    for (std::uint64_t seed = 1; seed <= 3; ++seed) compare(seed, small, {}, counts);
  }
  EXPECT_GE(counts.compared, 60U);
}

// Restricted settings: each leaves strategies that the rules allow, and the bounds must include its costs.
TEST(SearchBounds, AreBelowWithWhatRulesRestrict) {
  for (const std::string more :
       {", offload: {optimizer: cpu}, sharding: zero1",
        ", offload: {optimizer: {device: cpu, delayed_update: true}}, sharding: zero1",
        ", offload: {optimizer: cpu, gradients: cpu}, sharding: zero2",
        ", offload: {activations: {device: cpu, layers: 3}}",
        ", partition_activations: true, recompute: full, sequence_parallel: false, tensor: 2", ", precision: fp8"}) {
    Comparison counts;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SmallSpace small = small_space(seed, more);
      const std::size_t key = small.text.find("search: {");
      small.text = small.text.substr(0, key) +
                   "search: {context: [1, 2], pipeline: [1, 2], recompute_layers: [null, 1], micro_batch: [1, 2]" +
                   (more.find("activations:") != std::string::npos ? ", offload: [none]}\n"
                                                                   : ", offload_activations: [none]}\n");
      const bool eight_bit = more.find("fp8") != std::string::npos;
      if (eight_bit && small.text.find("dgx-h100") == std::string::npos) continue;
      compare(seed, small, {}, counts);
    }
    EXPECT_GT(counts.compared, 10U) << more << " refused " << counts.refused;
  }
}

// A communicator's own log has priority over the model: here it is faster.
TEST(SearchBounds, AreBelowWithLoggedTransfers) {
  std::vector<LoggedNccl> logged;
  for (std::int64_t nodes = 1; nodes <= 2; ++nodes) {
    for (const std::int64_t each : {1, 2, 4, 8}) {
      if (nodes * each == 1) continue;
      LoggedNccl l{.nodes = nodes, .ranks = nodes * each};
      l.collective_channels = l.nvls_channels = 16;
      l.ring = NcclGraph{.channels = 16, .intra_GBps = 60, .inter_GBps = 60};
      l.tree = l.ring;
      logged.push_back(l);
    }
  }
  Comparison counts;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) compare(seed, small_space(seed), logged, counts);
  EXPECT_GT(counts.compared, 120U);
}

}  // namespace
}  // namespace orrery
