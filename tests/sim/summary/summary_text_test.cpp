#include "sim/summary/summary_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/sim/summary/layouts.h"

namespace orrery {
namespace {

using layouts::TraceFile;

TEST(SummaryText, TellsTimesClassesKernelsAndWhatIsUnknown) {
  std::string with_unknown(layouts::kTorch113);
  const std::string known = "ampere_sgemm_32x32_sliced1x4_tn";
  with_unknown.replace(with_unknown.find(known), known.size(), "a_thing_of_my_own");
  const TraceFile file(with_unknown);
  const TraceSummary s = summarize_traces({file.path()});
  const std::string text = summary_text(s, 15, {});
  for (const char* part : {"1 file, 19 events, 3 kernels", "66.7 % of kernel time in known classes",
                           "3 events left out, by category: ac2g 2, Trace 1", "rank 3", "collective",
                           "kernels of no known class", "a_thing_of_my_own: 1 of them", "nccl:all_reduce"})
    EXPECT_NE(text.find(part), std::string::npos) << part << '\n' << text;
  std::string narrow = summary_text(s, 15, {.columns = 60});
  for (std::size_t at = 0; at < narrow.size();) {
    const std::size_t end = narrow.find('\n', at);
    if (narrow.substr(at, 2) != "  ") {
      EXPECT_LE(end - at, 60U) << narrow.substr(at, end - at);
    }
    at = end + 1;
  }
}

TEST(SummaryText, AThousandRanksShareRows) {
  TraceSummary s;
  for (int rank = 0; rank < 1024; ++rank) {
    RankTotal r;
    r.name = fmt::format("rank {}", rank);
    r.times.window = 1'000'000'000;
    r.times.compute = rank < 16 ? 1'000'000'000 : 500'000'000;
    r.times.idle_other = r.times.window - r.times.compute;
    r.steps = {.count = 2, .sum = 900'000'000};
    r.allocated = rank == 40 ? 3 << 20 : 1 << 20;
    s.ranks.push_back(r);
  }
  const std::string text = summary_text(s, 15, {});
  for (const char* part : {"1,024 ranks; a row has the means", "rank 0 to rank 31      1.00     75.0",
                           "rank 992 to rank 1023  1.00     50.0", "450.0\n", "rank 32 to rank 63          3.00"})
    EXPECT_NE(text.find(part), std::string::npos) << part << '\n' << text;
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 80);
}

// Shells list the files of ranks 10 to 19 before that of rank 2. A rank that marks no steps is in no mean of them.
TEST(SummaryText, ARowHasRanksOfConsecutiveNumbers) {
  TraceSummary s;
  for (int rank = 0; rank < 64; ++rank) {
    RankTotal r;
    r.name = fmt::format("rank {}", rank);
    r.times.window = 1'000'000'000;
    if (rank % 2 == 0) r.steps = {.count = 2, .sum = 900'000'000};
    s.ranks.push_back(r);
  }
  std::ranges::sort(s.ranks, {}, &RankTotal::name);
  const std::string text = summary_text(s, 15, {});
  std::size_t at = 0;
  for (int rank = 0; rank < 64; rank += 2) {
    const std::size_t row = text.find(fmt::format("rank {} to rank {} ", rank, rank + 1));
    ASSERT_NE(row, std::string::npos) << text;
    EXPECT_GT(row, at);
    at = row;
    EXPECT_EQ(text.substr(text.find('\n', row) - 5, 5), "450.0") << text;
  }
}

TEST(SummaryJson, HasEveryFigure) {
  const TraceFile file(layouts::kTorch21);
  const auto json = nlohmann::json::parse(summary_json(summarize_traces({file.path()})));
  EXPECT_EQ(json.at("schema"), "orrery.trace_summary/1");
  EXPECT_EQ(json.at("kernels"), 1);
  EXPECT_EQ(json.at("tied").at("id"), 1);
  EXPECT_TRUE(json.at("left_out").empty());
  const auto& rank = json.at("ranks").at(0);
  EXPECT_DOUBLE_EQ(rank.at("busy_s").get<double>(), 6e-6);
  EXPECT_TRUE(rank.at("mean_step_s").is_null());
  EXPECT_EQ(rank.at("memory").at("reserved_bytes"), 4096);
  EXPECT_EQ(json.at("classes").at(0).at("class"), "elementwise");
  EXPECT_EQ(json.at("by_kernel").at(0).at("name"), "vectorized_elementwise_kernel CUDAFunctor_add");
  EXPECT_EQ(json.at("by_operator").at(0).at("name"), "aten::add");
}

}  // namespace
}  // namespace orrery
