// Small spaces of which every strategy is simulated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>

#include "models/base/error.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/predict/predict.h"
#include "sim/search/report.h"
#include "sim/search/search.h"
#include "tests/sim/small_space.h"
#include "tests/sim/thread_peers.h"

namespace orrery {
namespace {

using test::offload_space;
using test::points_of;
using test::small_space;
using test::SmallSpace;
using test::space_of;
using test::wide_space;
using test::with_peers;

// The simulated report of a point, without the shortcuts that only searches use.
std::optional<Report> whole(const Space& space, const Profile& profile, const Point& point) {
  const Spec spec = space.spec_of(point);
  if (!rule_broken_by(spec, space.path()).empty()) return std::nullopt;
  try {
    return predict(spec, profile).report;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Text of a point without its offloading of activations: points with equal texts differ in nothing else.
std::string without_activations(const Space& space, Point point) {
  point.cell.activations = "none";
  point.cell.activation_layers = -1;
  return space.text_of(point);
}

// Whether simulation stops once it is slower than the best (cut), or runs to the end as in a prediction (whole).
enum class Play { cut, whole };
// Whether activations of any number of layers are offloaded, or of the fewest layers with which a point fits.
enum class Leave { any, fewest };

// The least step time of all points that fit.
std::optional<double> least_of_all(const Space& space, const Profile& profile, const std::vector<Point>& points,
                                   Bytes most_memory, Play play, Leave leave) {
  std::optional<double> best;
  std::set<std::string> settled;
  for (const Point& point : points) {
    const std::string same = without_activations(space, point);
    if (leave == Leave::fewest && settled.contains(same)) continue;
    const Picoseconds latest = best ? picoseconds(*best) : std::numeric_limits<Picoseconds>::max();
    const Evaluation cut = play == Play::cut ? evaluate_within(space, profile, point, latest) : Evaluation{};
    const auto report = play == Play::cut ? cut.report : whole(space, profile, point);
    const bool fits = report && report->memory.fits && (most_memory == 0 || report->memory.peak_device <= most_memory);
    if (fits || cut.late) settled.insert(same);
    if (fits && (!best || report->step_time_s < *best)) best = report->step_time_s;
  }
  return best;
}

struct Tried {
  std::size_t number = 0;  // number of the space; in every fourth space, points are simulated to the end
  Bytes most_memory = 0;
  Leave leave = Leave::any;
};

// Whether a search finds the step time of the best of all points.
SearchResult expect_the_best(const SmallSpace& small, const Space& space, const std::vector<Point>& points,
                             const Tried& tried = {}) {
  const Profile profile = profile_for(space.base(), "");
  const Play play = tried.number % 4 == 0 ? Play::whole : Play::cut;
  const std::optional<double> best = least_of_all(space, profile, points, tried.most_memory, play, tried.leave);
  SearchResult result = search(space, profile, {.most_memory = tried.most_memory});
  EXPECT_TRUE(result.proven);
  EXPECT_EQ(result.contradiction, "");
  EXPECT_EQ(result.best.empty(), !best.has_value()) << small.text;
  if (best && !result.best.empty()) {
    EXPECT_EQ(result.best.front().report.step_time_s, *best) << small.text;
  }
  EXPECT_LE(result.counts.simulated, points.size());
  return result;
}

// Number of spaces of each kind to try, or ORRERY_SPACES: scripts/brute_force tries hundreds.
std::size_t spaces_to_try(std::size_t usual) {
  const char* count = std::getenv("ORRERY_SPACES");
  return count == nullptr ? usual : std::strtoul(count, nullptr, 10);
}

// Every schedule that searches know and every sharding are tried in their turn.
TEST(Search, FindsWhatTryingAllFindsOfEverySchedule) {
  const std::size_t count = spaces_to_try(30);
  std::set<std::string> schedules, of_two_ways;
  std::size_t spaces = 0;
  for (std::uint64_t seed = 1; seed < 10 * count && spaces < count; ++seed) {
    const SmallSpace small = test::any_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty()) continue;
    expect_the_best(small, space, points, {spaces});
    for (const Point& p : points) {
      schedules.emplace(p.cell.schedule);
      if (p.cell.schedule == "chimera") of_two_ways.emplace(name_of(p.cell.sharding));
    }
    ++spaces;
  }
  EXPECT_EQ(spaces, count);
  std::size_t known = 0;
  for (const ScheduleRow& row : schedule_rows()) known += test::is_searched_with_others(row) ? 1U : 0U;
  EXPECT_EQ(schedules.size(), known) << fmt::format("{}", fmt::join(schedules, " "));
  EXPECT_TRUE(of_two_ways.contains("zero2"));
}

TEST(Search, FindsWhatTryingAllFinds) {
  const std::size_t count = spaces_to_try(15);
  std::size_t spaces = 0;
  for (std::uint64_t seed = 100; seed < 100 + 10 * count && spaces < count; ++seed) {
    const SmallSpace small = small_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 120) continue;
    expect_the_best(small, space, points, {spaces});
    ++spaces;
  }
  EXPECT_EQ(spaces, count);
}

TEST(Search, FindsWhatTryingAllFindsWithImages) {
  const std::size_t count = spaces_to_try(6);
  std::size_t spaces = 0;
  for (std::uint64_t seed = 1; seed < 10 * count && spaces < count; ++seed) {
    const SmallSpace small = test::seeing_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 120) continue;
    for (const Point& point : points) EXPECT_EQ(point.layout.context, 1);
    EXPECT_GT(expect_the_best(small, space, points, {spaces}).counts.simulated, 0U) << small.text;
    ++spaces;
  }
  EXPECT_EQ(spaces, count);
}

TEST(Search, FindsWhatTryingAllFindsBesideASecondModel) {
  const std::size_t count = spaces_to_try(3);
  std::size_t spaces = 0;
  for (std::uint64_t seed = 1; seed < 20 * count && spaces < count; ++seed) {
    const SmallSpace small = test::two_models_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 200) continue;
    EXPECT_GT(expect_the_best(small, space, points, {spaces}).counts.simulated, 0U) << small.text;
    ++spaces;
  }
  EXPECT_EQ(spaces, count);
}

// Wider spaces: with contexts, experts and offload open.
TEST(Search, FindsWhatTryingAllFindsOnWiderSpaces) {
  const std::size_t count = spaces_to_try(10);
  std::size_t spaces = 0, context = 0, experts = 0, offload = 0;
  for (std::uint64_t seed = 1; seed < 4 * count && spaces < count; ++seed) {
    const SmallSpace small = wide_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 300) continue;
    expect_the_best(small, space, points, {spaces});
    const auto any = [&](auto has) { return std::any_of(points.begin(), points.end(), has) ? 1U : 0U; };
    context += any([](const Point& p) { return p.layout.context > 1; });
    experts += any([](const Point& p) { return p.layout.expert > 1; });
    offload += any([](const Point& p) { return p.cell.offload != "none"; });
    ++spaces;
  }
  EXPECT_EQ(spaces, count);
  EXPECT_GT(context, count / 2);
  EXPECT_GT(experts, count / 6);
  EXPECT_GT(offload, count / 3);
}

// Offloading when memory is short: the fewest layers' activations that suffice are as good as any number.
TEST(Search, FindsWhatTryingAllFindsWithOffload) {
  const std::size_t count = spaces_to_try(8);
  std::size_t spaces = 0, leave = 0, none = 0;
  for (std::uint64_t seed = 1; seed < 6 * count && spaces < count; ++seed) {
    const SmallSpace small = offload_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 400) continue;
    const Profile profile = profile_for(space.base(), "");
    const auto first = evaluate(space, profile, points.front());
    if (!first) continue;
    const double share = 0.55 + 0.05 * static_cast<double>(seed % 8);
    const auto room = static_cast<Bytes>(share * static_cast<double>(first->memory.peak_device));
    const SearchResult r = expect_the_best(small, space, points, {spaces, room});
    none += r.best.empty() ? 1U : 0U;
    if (!r.best.empty()) {
      const MemoryPlan& best = r.best.front().point.cell;
      leave += best.offload != "none" || best.activations != "none" ? 1U : 0U;
    }
    ++spaces;
  }
  EXPECT_EQ(spaces, count);
  EXPECT_GT(leave, count / 6);
  EXPECT_LT(none, 1 + count * 2 / 3);
}

bool is_away(const MemoryPlan& cell) { return cell.offload != "none" || cell.activations != "none"; }

// A little less memory than needed by any point that keeps everything on its device.
Bytes too_little(const Space& space, const std::vector<Point>& points) {
  const Profile profile = profile_for(space.base(), "");
  Bytes least = std::numeric_limits<Bytes>::max();
  for (const Point& point : points) {
    const auto report = is_away(point.cell) ? std::nullopt : evaluate(space, profile, point);
    if (report) least = std::min(least, report->memory.peak_device);
  }
  return least - least / 50;
}

// Spaces with gradients that are reduced unit by unit, and offloaded states, in schedules that split backward or run in
// both directions; in every second space memory is short. In split schedules offloading activations of more layers than
// needed may make a step slightly shorter, which no search tries.
TEST(Search, FindsWhatTryingAllFindsWithUnitsOfSplitAndTwoWaySchedules) {
  const std::size_t count = spaces_to_try(12);
  std::size_t spaces = 0, units = 0, leave = 0, two_way = 0;
  for (std::uint64_t seed = 1; seed < 8 * count && spaces < count; ++seed) {
    const SmallSpace small = test::split_space(seed);
    const Space space = space_of(small);
    const std::vector<Point> points = points_of(space);
    if (points.empty() || points.size() > 150) continue;
    const Bytes room = spaces % 2 == 0 ? 0 : too_little(space, points);
    const SearchResult r = expect_the_best(small, space, points, {spaces, room, Leave::fewest});
    units += std::any_of(
                 points.begin(), points.end(),
                 [](const Point& p) { return p.cell.sharding == find_sharding("fsdp") && p.cell.schedule != "1f1b"; })
                 ? 1U
                 : 0U;
    if (!r.best.empty()) {
      const MemoryPlan& best = r.best.front().point.cell;
      leave += is_away(best) ? 1U : 0U;
      two_way += is_away(best) && find_schedule(best.schedule).placement != ChunkPlacement::in_turn ? 1U : 0U;
    }
    ++spaces;
  }
  EXPECT_EQ(spaces, count);
  EXPECT_GT(units, count / 10);
  EXPECT_GT(leave, count / 5);
  EXPECT_GT(two_way, count / 8);
}

// Devices just large enough for all activations, where a step may be shorter if some are offloaded: fewer calls for
// memory.
TEST(Search, FindsWhatTryingAllFindsOnDevicesThatTakeMemoryAgain) {
  for (const std::string layers : {"", ", offload_activation_layers: [1]"}) {
    const SmallSpace small{
        "model: {name: small, layers: 4, hidden: 512, heads: 8, feed_forward: 2048, vocab: 4096}\nsequence: 256\n"
        "cluster: {node: dgx-h100, nodes: 1}\nsoftware: megatron-core\n"
        "strategy: {data: 8, tensor: 1, context: 1, pipeline: 1, global_batch: 32, micro_batch: 4, sharding: zero3, "
        "recompute: none, sequence_parallel: false}\n"
        "search: {overlap_gradient_reduce: [true], overlap_parameter_gather: [true], offload: [none], "
        "offload_activations: [none, cpu]" +
        layers + "}\n"};
    OpenSpec open = parse_open_spec(small.text, "small.yaml");
    open.spec.software.host.segment_us = 20'000;
    const Space roomy(open, small.gpus);
    const std::vector<Point> points = points_of(roomy);
    const Report all = evaluate(roomy, profile_for(roomy.base(), ""), points.front()).value();
    std::size_t again = 0, leave = 0;
    for (int less = 0; less < 24; less += 2) {
      open.spec.cluster.gpu.memory_bytes = all.memory.peak_device - (Bytes{less} << 20);
      const Space space(open, small.gpus);
      const auto here = evaluate(space, profile_for(space.base(), ""), points.front());
      if (!here || here->memory.device_calls == 0) continue;
      ++again;
      const SearchResult r = expect_the_best(small, space, points);
      leave += !r.best.empty() && is_away(r.best.front().point.cell) ? 1U : 0U;
      with_peers(2, [&](Peers& peers) {
        const Space own(open, small.gpus);
        const SearchResult shared = search(own, profile_for(own.base(), ""), {.peers = &peers});
        EXPECT_EQ(search_json(own, shared), search_json(space, r));
      });
    }
    EXPECT_GT(again, 0U);
    EXPECT_GT(leave, 0U);
  }
}

// A point lacks the room for weights that it gathers ahead, which the bound of its cell leaves out: some activations
// are offloaded.
TEST(Search, FindsWhatTryingAllFindsWhereFeaturesTakeTheLastRoom) {
  const SmallSpace small{
      "model: {name: small, layers: 16, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 32000}\nsequence: 2048\n"
      "cluster: {node: dgx-a100, nodes: 1}\nsoftware: torchtitan\n"
      "strategy: {tensor: 1, context: 1, pipeline: 2, global_batch: 64, micro_batch: 4, sharding: fsdp, recompute: "
      "none, sequence_parallel: false}\n"
      "search: {schedule: [1f1b], virtual_stages: [1], overlap_parameter_gather: [true], offload: [none], "
      "offload_activations: [none, cpu]}\n"};
  const Space space = space_of(small);
  const std::vector<Point> points = points_of(space);
  const Profile profile = profile_for(space.base(), "");
  ModelCostCache costs(space.base(), profile);
  BoundCache cache(space, profile, costs);
  const Point& point = points.front();
  ASSERT_FALSE(is_away(point.cell));
  LayoutCosts layout(cache, point.layout);
  const CellBounds parts = cell_bounds(layout, point.cell);
  const Bytes cell = bound_of(parts).memory, room = bound_of(layout, parts, point.features).memory - 1;
  EXPECT_LE(cell, room);
  const SearchResult r = expect_the_best(small, space, points, {0, room});
  ASSERT_FALSE(r.best.empty());
  EXPECT_TRUE(is_away(r.best.front().point.cell));
}

// Two copies of a model whose ends share their weights.
TEST(Search, FindsTheBestAmongTwoCopiesWithTiedEmbeddings) {
  const SmallSpace small{
      "model: {name: small, layers: 8, hidden: 1024, heads: 8, kv_heads: 8, feed_forward: 4096, vocab: 32000, "
      "tied_embeddings: true}\nsequence: 1024\ncluster: {node: dgx-a100, nodes: 1}\n"
      "strategy: {global_batch: 16, micro_batch: 1, recompute: none}\n"
      "search: {tensor: [1, 2], context: [1], pipeline: [2, 4], schedule: [1f1b, chimera], sharding: [none, zero1], "
      "overlap_tensor: [false]}\n"};
  const Space space = space_of(small);
  const std::vector<Point> points = points_of(space);
  EXPECT_TRUE(std::any_of(points.begin(), points.end(), [](const Point& p) { return p.cell.schedule == "chimera"; }));
  expect_the_best(small, space, points);
}

}  // namespace
}  // namespace orrery
