#include "sim/runs/measured.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/report/attribution.h"
#include "tests/sim/fake_runs.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// A simulated step that is split into the files of its ranks, each with its own clock, and put together again, is the
// same step.
TEST(MeasuredTrace, OfASimulatedStepIsThatStep) {
  for (const std::string& strategy : small_strategies()) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const Plan plan = unfold(small_plan(strategy));
      const Trace simulated = simulate(plan, random_timing(plan, seed, 2'000'000));
      const auto runs = runs_of(plan, simulated, "hash", 2);
      const Trace measured = measured_trace(plan, runs, 0);
      EXPECT_EQ(measured.source, "measured");
      EXPECT_EQ(measured.step_time, simulated.step_time);
      EXPECT_EQ(measured.clock_uncertainty, 70);
      for (TaskId t = 0; t < plan.task_count(); ++t) {
        const Span &a = simulated.spans[t], &b = measured.spans[t];
        ASSERT_EQ(std::tie(a.issued, a.entered, a.matched, a.ended), std::tie(b.issued, b.entered, b.matched, b.ended))
            << strategy << ' ' << t;
      }
      const Attribution was = attribute(plan, simulated), is = attribute(plan, measured);
      EXPECT_EQ(was.by_slot, is.by_slot) << strategy;
    }
  }
}

// Time between steps belongs to the step that follows; no time is lost or counted twice.
TEST(MeasuredTrace, StepsAddUpToTheRun) {
  const Plan plan = unfold(small_plan(small_strategies()[1]));
  const Trace simulated = simulate(plan, random_timing(plan, 1, 2'000'000));
  const auto runs = runs_of(plan, simulated, "hash", 4);
  const auto times = step_times(runs);
  EXPECT_EQ(times, (std::vector<Picoseconds>{simulated.step_time, simulated.step_time + 1'000'000,
                                             simulated.step_time + 2'000'000, simulated.step_time + 3'000'000}));
  const Trace third = measured_trace(plan, runs, 2);
  EXPECT_EQ(third.step_time, times[2]);
  EXPECT_EQ(third.spans[0].issued, simulated.spans[0].issued + 2'000'000);
  for (const auto& split : attribute(plan, third).by_slot) {
    Picoseconds sum = 0;
    for (const Picoseconds part : split) sum += part;
    EXPECT_EQ(sum, third.step_time);
  }
}

// Real spans have gaps of all kinds, and clocks that disagree; every moment is charged once all the same.
TEST(MeasuredTrace, EveryMomentIsChargedOnceWhateverTheDelays) {
  for (const std::string& strategy : small_strategies()) {
    const Plan plan = unfold(small_plan(strategy));
    auto runs = runs_of(plan, simulate(plan, random_timing(plan, 5, 2'000'000)), "hash", 1);
    for (RankRun& run : runs) {
      run.clock_offset += static_cast<Picoseconds>(scrambled(9, run.rank) % 100'000'000);
      Picoseconds later = 0;
      for (std::size_t i = 0; i < run.steps[0].spans.size(); ++i) {
        MeasuredSpan& s = run.steps[0].spans[i];
        later += static_cast<Picoseconds>(scrambled(run.rank, i) % 1'000'000);
        s.issued += later;
        s.entered += later + static_cast<Picoseconds>(scrambled(run.rank, i + 1000) % 500'000);
        s.ended = std::max(s.ended + later, s.entered);
        run.steps[0].end = std::max(run.steps[0].end, s.ended);
      }
      Picoseconds busy = 0;  // the compute lane is one thread
      for (std::size_t i = 0; i < run.steps[0].spans.size(); ++i) {
        if (plan.op_of(plan.classes[run.rank].begin + static_cast<TaskId>(i)).lane != LaneKind::compute) continue;
        MeasuredSpan& s = run.steps[0].spans[i];
        s.entered = std::max(s.entered, busy);
        busy = s.ended = std::max(s.ended, s.entered);
        run.steps[0].end = std::max(run.steps[0].end, busy);
      }
    }
    const Trace trace = measured_trace(plan, runs, 0);
    for (const auto& split : attribute(plan, trace).by_slot) {
      Picoseconds sum = 0;
      for (const Picoseconds part : split) {
        EXPECT_GE(part, 0);
        sum += part;
      }
      EXPECT_EQ(sum, trace.step_time) << strategy;
    }
  }
}

TEST(MedianStep, LeavesTheFirstOut) {
  EXPECT_EQ(median_step(std::vector<Picoseconds>{9}), 0U);
  EXPECT_EQ(median_step(std::vector<Picoseconds>{1, 9}), 1U);
  EXPECT_EQ(median_step(std::vector<Picoseconds>{1, 9, 8}), 2U);
  EXPECT_EQ(median_step(std::vector<Picoseconds>{50, 3, 9, 5}), 3U);
}

TEST(MeasuredReport, TakesMemoryAndLossesFromTheRanks) {
  const Spec spec = load_spec(ORRERY_SOURCE_DIR "/examples/cpu-small.yaml");
  const Plan folded = make_plan(spec), plan = unfold(folded);
  const auto runs = fake_runs(folded, 3);
  const Report r = measured_report(spec, plan, runs, measured_trace(plan, runs, 1));
  EXPECT_EQ(r.source, "measured");
  EXPECT_EQ(r.plan_hash, plan_hash(folded));
  EXPECT_EQ(r.memory.peak, 1003);
  EXPECT_EQ(r.memory.first_step_peak, 900);
  EXPECT_EQ(r.memory.peak_reserved, 2048);
  EXPECT_EQ(r.memory.tier_peak[index_of(MemoryTier::host)], 20000);
  EXPECT_EQ(r.memory.ranks.at(2).memory.peak, 1002);
  EXPECT_EQ(r.losses, (std::vector<double>{5.5, 4.5, 3.5}));
  EXPECT_EQ(r.mfu, 0);
  EXPECT_LT(r.step_time_low_s, r.step_time_high_s);
  ASSERT_FALSE(r.communication.empty());
  EXPECT_EQ(r.communication[0].algorithm, "none");
  EXPECT_EQ(r.communication[0].link, "air");
}

// Ranks 0 and 1 (a tensor group) on one node, 2 and 3 on another: memory is per node, stages are a network apart.
TEST(MeasuredReport, KnowsNodes) {
  const Spec spec = load_spec(ORRERY_SOURCE_DIR "/examples/cpu-small.yaml");
  const Plan folded = make_plan(spec), plan = unfold(folded);
  auto runs = fake_runs(folded, 3);
  for (RankRun& run : runs) run.host = run.rank < 2 ? "a" : "b";
  runs[3].memory.tier_peak[index_of(MemoryTier::host)] = 7000;
  const Report r = measured_report(spec, plan, runs, measured_trace(plan, runs, 1));
  EXPECT_EQ(r.memory.tier_peak[index_of(MemoryTier::host)], 12000);
  for (const CommunicationRow& row : r.communication)
    EXPECT_EQ(row.link, row.group == "tensor" ? "air" : "network") << row.group;
}

TEST(ReadRuns, RefusesWhatIsNotOfThisPlan) {
  const Plan folded = make_plan(load_spec(ORRERY_SOURCE_DIR "/examples/cpu-small.yaml")), plan = unfold(folded);
  const auto runs = fake_runs(folded, 2);
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path("read_runs");
  std::filesystem::create_directories(folder);
  const auto write = [&] {
    for (const RankRun& run : runs) write_rank_run(rank_file(folder, run.rank), run);
  };
  write();
  EXPECT_EQ(read_runs(folder, plan, plan_hash(folded)).size(), 4U);
  EXPECT_THROW(read_runs(folder, plan, "other"), Error);
  const auto change = [&](auto&& edit) {
    write();
    RankRun run = runs[2];
    edit(run);
    write_rank_run(rank_file(folder, 2), run);
    EXPECT_THROW(read_runs(folder, plan, plan_hash(folded)), Error);
  };
  change([](RankRun& r) { r.rank = 1; });
  change([](RankRun& r) { r.steps.pop_back(), r.losses.pop_back(); });
  change([](RankRun& r) { r.plan_hash = "x"; });
  change([](RankRun& r) { r.source = "composed"; });
  change([](RankRun& r) {
    for (auto& step : r.steps) step.spans.pop_back();
  });
  change([](RankRun& r) { r.steps.clear(), r.losses.clear(); });
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace orrery
