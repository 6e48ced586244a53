#include "sim/calibration.h"

#include <set>

#include <gtest/gtest.h>

#include "models/unfold.h"
#include "sim/price.h"
#include "tests/sim/cpu_profile.h"
#include "tests/sim/fake_runs.h"

namespace orrery {
namespace {

const char kSpec[] =
    "model: {name: small, layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 256}\nsequence: 32\n"
    "cluster: {node: localhost}\ngpus: 2\nsoftware: orrery\n"
    "strategy: {precision: fp32, gradient_precision: fp32, micro_batch: 2, global_batch: 8, data: 2, "
    "overlap: {gradient_reduce: false}}\n";

// A step priced by a profile, executed (by the simulator), gives that profile's samples back.
TEST(Calibration, FindsTheTimesThatARunWasMadeOf) {
  const Spec spec = parse_spec(kSpec, "small.yaml");
  const Plan folded = make_plan(spec), plan = unfold(folded);
  const Profile profile = cpu_profile(plan);
  const Trace trace = simulate(plan, price(plan, spec, profile).timing);
  Observations seen;
  seen.add(plan, runs_of(plan, trace, plan_hash(folded), 12));
  const MeasuredTimes times = seen.times();
  EXPECT_LT(seen.noise(), 1e-6);
  ASSERT_FALSE(times.ops.empty());
  for (const OpTable& table : times.ops) {
    for (const OpSample& s : table.samples) {
      const double rate = table.kind.starts_with("gemm") || table.kind.starts_with("attention") ? 10e9 : 5e9;
      EXPECT_NEAR(s.seconds * rate / s.amount, 1, 1e-3) << table.kind;
    }
  }
  ASSERT_EQ(times.transfers.size(), 1U);
  EXPECT_EQ(times.transfers[0].kind, "all_reduce");
  const TransferSample& largest = times.transfers[0].samples.back();
  EXPECT_NEAR(largest.seconds, *measured_transfer(profile.measured, "all_reduce", 2, largest.bytes), 1e-7);
}

// Of noisy repetitions it says so.
TEST(Calibration, TellsNoise) {
  const Spec spec = parse_spec(kSpec, "small.yaml");
  const Plan folded = make_plan(spec), plan = unfold(folded);
  const Trace trace = simulate(plan, price(plan, spec, cpu_profile(plan)).timing);
  auto runs = runs_of(plan, trace, plan_hash(folded), 12);
  for (RankRun& run : runs) {
    for (std::size_t k = 0; k < run.steps.size(); ++k) {
      for (std::size_t t = 0; t < run.steps[k].spans.size(); ++t) {
        MeasuredSpan& s = run.steps[k].spans[t];
        s.entered = s.ended - (s.ended - s.entered) * static_cast<Picoseconds>(scrambled(k, t) % 100) / 100;
      }
    }
  }
  Observations seen;
  seen.add(plan, runs);
  EXPECT_GT(seen.noise(), 0.5);
}

// Every spec is valid, has a plan, and together they hold every kind of transfer that CPU ranks use.
TEST(Calibration, SpecsArePlannable) {
  for (const bool quick : {true, false}) {
    std::set<std::string> transfers;
    for (const CalibrationSpec& c : calibration_specs(2, quick)) {
      const Plan plan = make_plan(parse_spec(c.text, c.name));
      for (const Op& op : plan.ops) {
        if (std::holds_alternative<Collective>(op.work) || std::holds_alternative<Transfer>(op.work))
          transfers.insert(transfer_kind(op));
      }
    }
    EXPECT_EQ(transfers,
              (std::set<std::string>{"all_gather", "all_reduce", "all_to_all", "message", "reduce_scatter", "shift"}));
  }
  EXPECT_FALSE(calibration_specs(1, true).empty());
}

}  // namespace
}  // namespace orrery
