#include "viz/timeline/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/viz/events.h"
#include "tests/viz/traces.h"
#include "viz/timeline/op_groups.h"

using namespace orrery;

namespace {

constexpr Picoseconds kMatchedMicro = 1'000'000;

Matching matched(const Timeline& a, const Timeline& b) { return match(ComparedSide(a), ComparedSide(b)); }

std::vector<Difference> differences_of(const Timeline& a, const Timeline& b, bool by_name) {
  return differences(ComparedSide(a), ComparedSide(b), by_name);
}

const Difference* row_named(const std::vector<Difference>& rows, std::string_view name, bool whole_class) {
  for (const Difference& d : rows) {
    if (d.name == name && d.whole_class == whole_class) return &d;
  }
  return nullptr;
}

// Details of a made-up prediction: an event's key is the number of its shape.
class MadeShapes : public DetailSource {
 public:
  explicit MadeShapes(std::vector<std::string> shapes) : shapes_(std::move(shapes)) {}
  Details details(std::uint64_t) const override { return {}; }
  std::string shape(std::uint64_t key) const override { return shapes_[key]; }

 private:
  std::vector<std::string> shapes_;
};

// A prediction of the step in tests/viz/traces.h, by other names: two like ranks as one class.
Timeline predicted(const std::string& product) {
  TimelineBuilder b;
  Process p;
  p.name = "stage 0 (rank 0, x2)";
  p.rank = 0;
  p.ranks = 2;
  p.members = {0, 1};
  b.add_process(p);
  const std::uint64_t source = b.add_source(std::make_shared<MadeShapes>(
      std::vector<std::string>{"all_gather 2000 bytes", product, "", "all_reduce 8000 bytes", ""}));
  const auto compute = b.add_thread(0, "compute", 0), data = b.add_thread(0, "data", 1);
  const auto add = [&](std::uint32_t lane, const char* name, Kind kind, KernelClass op_class, int begin, int lasts,
                       std::uint64_t key) {
    b.add({begin * kMatchedMicro, (begin + lasts) * kMatchedMicro, lane, b.label(name, kind, op_class), source | key});
  };
  add(data, "gather", Kind::data, KernelClass::collective, 0, 25, 0);
  add(compute, "mlp up", Kind::forward, KernelClass::gemm, 100, 60, 1);
  add(compute, "gelu", Kind::forward, KernelClass::elementwise, 200, 10, 2);
  add(data, "reduce", Kind::tensor, KernelClass::collective, 300, 50, 3);
  add(compute, "adam", Kind::optimizer, KernelClass::optimizer, 900, 40, 4);
  Timeline t = b.finish(0);
  t.step_time = t.end;
  return t;
}

Timeline measured(const traces::Layout& layout) {
  return traces::read({traces::TorchTrace(layout, 0).text(3), traces::TorchTrace(layout, 1).text(3)});
}

}  // namespace

TEST(Compare, MatchesTheSameTimelineWithItself) {
  const Timeline t = two_lanes();
  const Matching m = matched(t, t);
  EXPECT_EQ(m.matched, 5u);
  EXPECT_TRUE(m.by_name);
  for (EventId e = 0; e < t.events(); ++e) {
    EXPECT_EQ(m.there[e], e);
    EXPECT_EQ(relative_change(t, t, m, e), 0);
  }
}

TEST(Compare, MatchesByIdentityNotByPlace) {
  const Timeline a = two_lanes();
  TimelineBuilder b;
  Process p;
  p.rank = 0;
  b.add_process(p);
  const auto lane = b.add_thread(0, "compute", 0);
  b.add({5, 25, lane, b.label("new", Kind::forward), 0}, {0, 3, 0});
  b.add({30, 90, lane, b.label("qkv", Kind::forward), 0}, {1, 3, 0});
  const Timeline other = b.finish();
  const Matching m = matched(a, other);
  EXPECT_EQ(m.matched, 1u);
  EXPECT_EQ(m.there[0], kNoEvent);
  EXPECT_EQ(m.there[1], 1u);
  EXPECT_EQ(m.back[1], 1u);
  EXPECT_EQ(m.back[0], kNoEvent);
}

TEST(Compare, RanksDifferencesWithOneSign) {
  const Timeline a = two_lanes();
  Timeline b = two_lanes();
  std::vector<Picoseconds> begins, ends;  // everything takes twice as long
  for (EventId e = 0; e < b.events(); ++e) {
    begins.push_back(b.begins[e] * 2);
    ends.push_back(b.ends[e] * 2);
  }
  b.begins = begins;
  b.ends = ends;
  b.end *= 2;
  const auto rows = differences_of(a, b, true);
  ASSERT_EQ(rows.size(), 6u);  // three classes, three ops
  EXPECT_TRUE(rows[0].whole_class);
  EXPECT_FALSE(rows[3].whole_class);
  EXPECT_NEAR(rows[3].more(), 20e-6, 1e-12);
  const auto backwards = differences_of(b, a, true);
  EXPECT_NEAR(backwards[3].more(), -20e-6, 1e-12);
  const Matching m = matched(a, b);
  EXPECT_NEAR(relative_change(a, b, m, 0), -0.5, 1e-12);
  EXPECT_NEAR(relative_change(b, a, matched(b, a), 0), 1, 1e-12);
}

// Two like ranks that are shown once, or each by itself, differ in nothing.
TEST(Compare, TimesAreMeansPerRank) {
  Timeline a = two_lanes(), b = two_lanes();
  a.processes[0].ranks = 8;
  for (const Difference& d : differences_of(a, b, true)) EXPECT_EQ(d.more(), 0) << d.name;
}

TEST(Compare, APredictionMatchesTracesOfPytorchByStepClassShapeAndStream) {
  const Timeline a = predicted("gemm 1024x512x256");
  for (const traces::Layout& layout : traces::kLayouts) {
    const Timeline b = measured(layout);
    const Comparison c = compare(a, b);
    EXPECT_FALSE(c.matching.by_name) << layout.version;
    const auto counterpart = [&](std::string_view kernel) {
      const EventId e = traces::event_named(b, kernel);
      return e == kNoEvent || c.matching.back[e] == kNoEvent ? std::string("none") : a.name(c.matching.back[e]);
    };
    EXPECT_EQ(counterpart("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"), "gather");
    EXPECT_EQ(counterpart("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT"), "mlp up") << layout.version;
    EXPECT_EQ(counterpart("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"), "reduce") << layout.version;
    EXPECT_EQ(counterpart("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>()"), "adam");
    EXPECT_EQ(counterpart("triton_poi_fused_gelu_0"), "none");      // what torch.compile fused is of no class of a plan
    EXPECT_EQ(c.matching.matched, 2u * 3u * 4u) << layout.version;  // of both ranks, in all steps
    EXPECT_EQ(c.offset, 610 * kMatchedMicro);
    EXPECT_EQ(c.step_b, 1000 * kMatchedMicro);
    const Difference* const gemm = row_named(c.rows, "gemm", true);
    ASSERT_NE(gemm, nullptr);
    EXPECT_NEAR(gemm->a, 60e-6, 1e-12);
    EXPECT_NEAR(gemm->b, 80e-6, 1e-12) << layout.version;
    EXPECT_NEAR(gemm->count_b, 1, 1e-12);
    EXPECT_NE(row_named(c.rows, "gemm 1024x512x256", false), nullptr) << layout.version;
  }
}

TEST(Compare, TablesShowTheUsefulHalfOfNames) {
  const Timeline t = measured(traces::kLayouts[3]);
  const std::vector<Difference> rows = differences_of(t, t, true);
  const auto adam = std::ranges::find_if(
      rows, [](const Difference& d) { return d.name.starts_with("void at::native::multi_tensor_apply_kernel<"); });
  ASSERT_NE(adam, rows.end());
  EXPECT_TRUE(adam->shown.starts_with("multi_tensor_apply_kernel")) << adam->shown;
  EXPECT_EQ(row_named(rows, "gemm", true)->shown, "gemm");
}

TEST(Compare, SumsUpClassesWhereNoEventMatches) {
  const Timeline a = predicted("gemm 7x7x7"), b = measured(traces::kLayouts[2]);
  const Comparison c = compare(a, b);
  const EventId product = traces::event_named(b, "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT");
  EXPECT_EQ(a.name(c.matching.back[product]), "mlp up");  // the one product of a step, whatever its shape
  const Timeline other = two_lanes();
  const Comparison none = compare(other, b);
  EXPECT_EQ(none.matching.matched, 0u);
  const Difference* const gemm = row_named(none.rows, "gemm", true);
  ASSERT_NE(gemm, nullptr);
  EXPECT_NEAR(gemm->more(), 80e-6, 1e-12);
  const Difference* const forward = row_named(none.rows, "forward", true);
  ASSERT_NE(forward, nullptr);
  EXPECT_NEAR(forward->more(), -20e-6, 1e-12);
}

TEST(Compare, StepsOfTwoTracesAreMatchedInTheirOrder) {
  const traces::Layout& layout = traces::kLayouts[3];
  const Timeline a = traces::read({traces::TorchTrace(layout, 0).text(2, 5)});
  const Timeline b = traces::read({traces::TorchTrace(layout, 0, 1.5).text(3, 551)});
  const Comparison c = compare(a, b);
  EXPECT_TRUE(c.matching.by_name);
  EXPECT_EQ(c.matching.matched, 15u);
  std::vector<EventId> products;
  for (EventId e = 0; e < b.events(); ++e) {
    if (b.labels[b.label[e]].op_class == KernelClass::gemm) products.push_back(e);
  }
  ASSERT_EQ(products.size(), 3u);
  EXPECT_EQ(a.begins[c.matching.back[products[1]]], b.begins[products[1]]);
  EXPECT_EQ(c.matching.back[products[2]], c.matching.back[products[1]]);  // a has no third step
  EXPECT_EQ(c.offset, 0);
  const Difference* const gemm = row_named(c.rows, "gemm", true);
  ASSERT_NE(gemm, nullptr);
  EXPECT_NEAR(gemm->more(), 40e-6, 1e-12);
}
