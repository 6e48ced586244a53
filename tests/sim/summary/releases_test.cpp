// One step in the layouts of PyTorch 1.12 to 2.10: summaries, measured runs and imports find the same in each.
#include <algorithm>

#include <gtest/gtest.h>

#include "sim/calibrate/import.h"
#include "sim/summary/summary.h"
#include "sim/whatif/measured_run.h"
#include "tests/sim/summary/layouts.h"
#include "tests/sim/summary/releases.h"

namespace orrery {
namespace {

using layouts::TraceFile;
using releases::kReleases;
using releases::Release;
using releases::step_of;

TEST(Releases, ASummaryFindsTheSameStepInEach) {
  for (const Release& release : kReleases) {
    SCOPED_TRACE(release.name);
    const TraceFile file(step_of(release, 1));
    const TraceSummary s = summarize_traces({file.path()});
    ASSERT_EQ(s.ranks.size(), 1U);
    const RankTotal& r = s.ranks[0];
    EXPECT_EQ(r.name, "rank 1");
    EXPECT_EQ(r.device, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(r.steps.count, 1);
    EXPECT_EQ(r.times.window, 1'000'000);
    EXPECT_EQ(r.times.compute, 360'000);
    EXPECT_EQ(r.times.exposed_communication, 200'000);
    const auto count = [&](KernelClass c) { return s.classes[static_cast<std::size_t>(c)].count; };
    EXPECT_EQ(count(KernelClass::gemm), 3);
    EXPECT_EQ(count(KernelClass::collective), 2);
    EXPECT_EQ(count(KernelClass::triton), 1);
    EXPECT_EQ(count(KernelClass::norm), 1);
    EXPECT_EQ(count(KernelClass::optimizer), 1);
    EXPECT_EQ(s.kernels, 8);
    EXPECT_EQ(s.tied(), release.repeats_ids ? 7 : 8);  // of a Triton kernel without a recorded call nothing is known
    std::vector<std::string> operators;
    for (const OperatorTotal& o : s.by_operator) operators.push_back(o.name);
    for (const char* name : {"aten::addmm", "aten::mm", "_LayerNormLinear", "aten::_fused_adamw_"})
      EXPECT_EQ(std::count(operators.begin(), operators.end(), name), 1) << name;
  }
}

// Collectives name their process group from PyTorch 2.2 on; before, a collective is a transfer of one rank.
TEST(Releases, AMeasuredRunHasTheSameOpsInEach) {
  for (const Release& release : kReleases) {
    SCOPED_TRACE(release.name);
    const TraceFile first(step_of(release, 0), "first.json"), second(step_of(release, 1), "second.json");
    const MeasuredRun run = read_measured_run({first.path(), second.path()});
    EXPECT_EQ(run.workers, (std::vector<std::string>{"0", "1"}));
    ASSERT_EQ(run.operations.size(), 16U);
    std::size_t grouped = 0, transfers = 0;
    for (const MeasuredOp& o : run.operations) {
      EXPECT_EQ(o.step, 3);
      transfers += run.transfers[o.op];
      grouped += o.group >= 0;
    }
    EXPECT_EQ(transfers, 4U);
    EXPECT_EQ(grouped, release.collectives ? 4U : 0U);
    ASSERT_EQ(run.remarks.size(), release.collectives ? 0U : 1U);
    if (!release.collectives) {
      EXPECT_TRUE(run.remarks[0].starts_with("4 collectives name no process group")) << run.remarks[0];
    }
  }
}

TEST(Releases, AnImportTakesTheSameProductsFromEach) {
  for (const Release& release : kReleases) {
    SCOPED_TRACE(release.name);
    const TraceFile file(step_of(release, 0));
    const Imported found = import_file(file.path());
    std::vector<std::string> kinds;
    for (const OpRow& op : found.ops) kinds.push_back(op.shape.kind);
    std::sort(kinds.begin(), kinds.end());
    EXPECT_EQ(kinds, (std::vector<std::string>{"gemm/input_gradient bf16", "gemm/output bf16", "gemm/output bf16"}));
    EXPECT_EQ(found.ends.size(), release.collectives ? 2U : 0U);
  }
}

}  // namespace
}  // namespace orrery
