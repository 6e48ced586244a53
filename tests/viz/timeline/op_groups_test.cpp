#include "viz/timeline/op_groups.h"

#include <gtest/gtest.h>

#include "tests/viz/events.h"
#include "tests/viz/traces.h"

using namespace orrery;

namespace {

Timeline ranks(std::vector<Process> processes) {
  TimelineBuilder b;
  for (Process& p : processes) b.add_process(std::move(p));
  for (std::uint32_t p = 0; p < processes.size(); ++p)
    b.add({0, 10, b.add_thread(p, "compute", 0), b.label("op", Kind::forward), 0});
  return b.finish();
}

Process rank(std::int64_t number, std::vector<std::int64_t> members = {}, std::int64_t stage = -1) {
  Process p;
  p.name = "process " + std::to_string(number);
  p.rank = number;
  p.ranks = std::max<std::int64_t>(1, std::ssize(members));
  p.members = std::move(members);
  p.coordinates[2] = stage;
  return p;
}

using Groups = std::vector<std::uint32_t>;

}  // namespace

TEST(OpGroups, RanksAreFoldedIntoTheirClasses) {
  const Timeline classes = ranks({rank(0, {0, 1}), rank(2, {2, 3})});
  const Timeline all = ranks({rank(0), rank(1), rank(2), rank(3)});
  EXPECT_EQ(fold_ranks(classes, all).b, (Groups{0, 0, 1, 1}));
  const RankFolding other = fold_ranks(all, classes);
  EXPECT_EQ(other.b, (Groups{0, 2}));
  EXPECT_EQ(other.a, (Groups{0, 0, 2, 2}));
  const Timeline stages = ranks({rank(0, {}, 0), rank(8, {}, 1)});
  EXPECT_EQ(fold_ranks(stages, ranks({rank(100, {}, 1)})).b, (Groups{1}));
  EXPECT_EQ(fold_ranks(classes, ranks({rank(-1), rank(-1), rank(-1)})).b, (Groups{0, 1, 0}));
}

// Ranks that the other trace does not have stay by themselves.
TEST(OpGroups, RanksOfAnotherPartOfTheJobHaveNoMatch) {
  const Timeline low = ranks({rank(0), rank(1)}), high = ranks({rank(1), rank(8), rank(9)});
  const RankFolding folding = fold_ranks(low, high);
  EXPECT_EQ(folding.b, (Groups{1, kNone, kNone}));
  EXPECT_EQ(folding.a, (Groups{0, 1}));
}

TEST(OpGroups, ShapesAreReadOfFewEvents) {
  const Timeline t = traces::read({traces::TorchTrace(traces::kLayouts[1], 0).text(2)});
  const ComparedSide side(t);
  EXPECT_TRUE(has_few_shapes(side));
  EXPECT_FALSE(has_few_shapes(side, 1));
}

TEST(OpGroups, LikeOpsHaveOneNumber) {
  const Timeline t = traces::read({traces::TorchTrace(traces::kLayouts[1], 0).text(2)});
  const ComparedSide side(t);
  OpNumbers numbers;
  const auto shapes = numbers.of_shapes(side);
  const auto classes = numbers.of_classes(side);
  for (EventId e = 0; e < t.events(); ++e) {
    if (!works(t, e)) {
      EXPECT_EQ(shapes[e], kNone);
    } else if (t.labels[t.label[e]].op_class == KernelClass::gemm) {
      EXPECT_EQ(numbers.text(shapes[e]), "gemm 1024x512x256");
      EXPECT_EQ(numbers.text(classes[e]), "gemm");
    } else if (t.name(e).starts_with("ncclDevKernel_AllReduce")) {
      EXPECT_EQ(numbers.text(shapes[e]), "collective: all_reduce 8000 bytes");
      EXPECT_EQ(numbers.text(classes[e]), "collective: all_reduce");
    }
  }
}

TEST(OpGroups, TheMainStreamIsTheOneThatComputes) {
  const Timeline t = two_lanes();
  EXPECT_EQ(main_tracks(t), (Groups{0}));
}
