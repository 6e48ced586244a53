#include "sim/report/report_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

Spec small_spec(const std::vector<std::string>& overrides = {}) {
  return parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, "
      "strategy: {tensor: 2, pipeline: 2, global_batch: 16}}",
      "spec.yaml", overrides);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(ReportText, SaysWhatAReaderAsksFirst) {
  const Spec spec = small_spec({"software=orrery"});  // a stack whose host keeps up with so small a model
  const std::string text = report_text(spec, predict(spec).report, {});
  for (const char* part :
       {"gpt2: 124.4 M parameters on 8 x NVIDIA A100", "step time", "tokens/s", "MFU", "fits: ", "where the time goes",
        "compute", "memory per rank", "stage 1", "peaks at", "communication", "all_gather", "limited by compute"}) {
    EXPECT_TRUE(has(text, part)) << part;
  }
}

TEST(ReportText, FitsATerminalOf120Columns) {
  for (const char* model : {"model=gpt2", "model=gpt3-175b"}) {
    const Spec spec = small_spec({model});
    std::istringstream lines(report_text(spec, predict(spec).report, {.bars = true}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 120U) << line;
  }
}

TEST(ReportText, SaysByHowMuchItDoesNotFit) {
  const Spec spec = small_spec();
  Report report = predict(spec).report;
  report.memory.fits = false;
  report.memory.peak_device = report.memory.capacity + 1073741824;
  EXPECT_TRUE(has(report_text(spec, report, {}), "DOES NOT FIT: 1.00 GiB more than the 79.25 GiB of a GPU"));
  // A request larger than the free memory is not reported as fragmentation, whatever the allocator met first.
  SlotMemory& first = report.memory.ranks.front().memory;
  first.out_of_memory = true;
  first.refused = 100;
  first.free_then = 200;
  EXPECT_FALSE(has(report_text(spec, report, {}), "fragmented"));
  report.memory.peak_device = report.memory.capacity - 1;
  EXPECT_TRUE(has(report_text(spec, report, {}), "DOES NOT FIT: fragmented: no "));
  first.out_of_memory = false;
  EXPECT_TRUE(has(report_text(spec, report, {}), "DOES NOT FIT: the allocator finds no room"));
}

TEST(ReportText, RemarksOnWhatIsNotUsedAndWhatIsTooLong) {
  const auto remarks = [](const std::string& strategy, std::int64_t sequence) {
    const Spec spec =
        parse_spec(fmt::format("{{model: {{base: llama-3.1-8b, layers: 2}}, sequence: {}, cluster: {{node: "
                               "dgx-a100, nodes: 2}}, strategy: {}}}",
                               sequence, strategy),
                   "s.yaml");
    return report_text(spec, predict(spec).report, {});
  };
  const char* all = "{tensor: 8, global_batch: 2}";
  EXPECT_FALSE(has(remarks(all, 1024), "of the cluster's"));
  EXPECT_TRUE(has(remarks("{tensor: 4, data: 2, global_batch: 2}", 1024), "gpus: 8 of the cluster's 16 are used"));
  EXPECT_FALSE(has(remarks(all, 131072), "positions"));
  EXPECT_TRUE(has(remarks(all, 131080), "sequence: 131080 tokens are more than the 131072 positions"));
}

TEST(ReportText, MarksWhatIsUncalibrated) {
  Spec spec = small_spec();
  EXPECT_FALSE(has(title(spec, {}), "UNCALIBRATED"));
  spec.cluster.gpu.uncalibrated = true;
  EXPECT_TRUE(has(title(spec, {}), "UNCALIBRATED"));
}

TEST(ReportText, ExposedShareSumsTheFiveGroups) {
  Report r;
  r.step_time_s = 10;
  for (int k = 0; k < kTimeKinds; ++k) r.time_s[static_cast<std::size_t>(k)] = 1;
  EXPECT_DOUBLE_EQ(exposed_share(r), 0.5);
}

TEST(ReportText, SaysWhichMemoryIsShort) {
  MemoryReport m;
  m.capacity = 80LL << 30;
  m.peak_device = 81LL << 30;
  EXPECT_EQ(lack_text(m), "1.00 GiB over");
  m.tier_capacity[index_of(MemoryTier::nvme)] = 1LL << 30;
  m.tier_peak[index_of(MemoryTier::nvme)] = 3LL << 30;
  EXPECT_EQ(lack_text(m), "disks 2.00 GiB over");
  m.tier_capacity[index_of(MemoryTier::host)] = 1LL << 30;
  m.tier_peak[index_of(MemoryTier::host)] = 4LL << 30;
  EXPECT_EQ(lack_text(m), "host memory 3.00 GiB over");
}

}  // namespace
}  // namespace orrery
