// Transfers of groups.
#include "sim/picture/talks.h"

#include <gtest/gtest.h>

#include "sim/predict/predict.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

// Every byte and call of the report is in the talk of its dimension.
TEST(Talks, AreTheReports) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Spec spec = test::random_spec(seed);
    const Prediction p = predict(spec);
    double bytes = 0, reported = 0;
    for (const DimensionTalk& talk : talks_of(spec, p.plan, p.report)) {
      for (const Talk& t : talk.talks) bytes += t.bytes;
    }
    for (const CommunicationRow& row : p.report.communication) reported += row.bytes_per_gpu;
    EXPECT_NEAR(bytes, reported, 1e-9 * reported);
  }
}

TEST(Talks, StagesSendToTheirNeighbours) {
  using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
  const auto pairs = [](const std::string& strategy) {
    const Spec spec = test::spec_of(test::kSmall, strategy);
    const Prediction p = predict(spec);
    for (const DimensionTalk& talk : talks_of(spec, p.plan, p.report)) {
      if (talk.dimension == Dimension::pipeline) return talk.pairs;
    }
    return Pairs{};
  };
  EXPECT_EQ(pairs("pipeline: 4, global_batch: 4"), (Pairs{{0, 1}, {1, 0}, {1, 2}, {2, 1}, {2, 3}, {3, 2}}));
  // Chunks of an interleaved schedule pass from the last stage to the first.
  EXPECT_EQ(pairs("pipeline: 4, schedule: interleaved, virtual_stages: 2, global_batch: 4"),
            (Pairs{{0, 1}, {0, 3}, {1, 0}, {1, 2}, {2, 1}, {2, 3}, {3, 0}, {3, 2}}));
  EXPECT_EQ(pairs("data: 2, global_batch: 2"), Pairs{});
}

TEST(Talks, LinksHaveTheirNames) {
  const Spec spec = test::spec_of("llama-3.2-1b", "tensor: 8, data: 2, global_batch: 2", 1024);
  const Prediction p = predict(spec);
  const std::vector<DimensionTalk> talks = talks_of(spec, p.plan, p.report);
  ASSERT_FALSE(talks.empty());
  EXPECT_EQ(talks[0].dimension, Dimension::tensor);
  EXPECT_EQ(talks[0].talks[0].link, "NVLink");
  for (const DimensionTalk& talk : talks) {
    if (talk.dimension == Dimension::data) {
      EXPECT_EQ(talk.talks[0].link, "InfiniBand");
    }
  }
}

}  // namespace
}  // namespace orrery
