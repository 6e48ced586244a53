#include "sim/calibrate/calibration.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/plan/unfold.h"
#include "sim/cost/costs.h"
#include "tests/sim/cpu_profile.h"
#include "tests/sim/swinging_runs.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

const char kSpec[] =
    "model: {name: small, layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 256}\nsequence: 32\n"
    "cluster: {node: localhost}\ngpus: 2\nsoftware: orrery\n"
    "strategy: {precision: fp32, gradient_precision: fp32, micro_batch: 2, global_batch: 8, data: 2, "
    "overlap: {gradient_reduce: false}}\n";

// Calibration from a step that the simulator executed with a profile gives the profile's samples back.
TEST(Calibration, FindsTheTimesThatARunWasMadeOf) {
  const Spec spec = parse_spec(kSpec, "small.yaml");
  const Plan folded = make_plan(spec), plan = unfold(folded);
  const Profile profile = cpu_profile(plan);
  const Trace trace = simulate(plan, costs_of(plan, spec, profile).timing);
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

// FSDP casts units on the lane that gathers them, beside the layers' compute: tasks that compute beside each other are
// no samples of tasks alone. Here such a task takes half of its time.
TEST(Calibration, LeavesOutComputeBesideCompute) {
  std::string text = kSpec;
  text.replace(text.find("data: 2"), 7, "data: 2, sharding: fsdp");
  text.replace(text.find("precision: fp32"), 15, "precision: bf16");
  const Spec spec = parse_spec(text, "small.yaml");
  const Plan folded = make_plan(spec), plan = unfold(folded);
  const Profile profile = cpu_profile(plan);
  Trace trace = simulate(plan, costs_of(plan, spec, profile).timing);
  int beside = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    Span& s = trace.spans[t];
    if (moves(plan.op_of(t)) || plan.op_of(t).lane == LaneKind::compute || s.ended == s.entered) continue;
    for (TaskId u = 0; u < plan.task_count(); ++u) {
      const Span& other = trace.spans[u];
      if (plan.slot_of(u) != plan.slot_of(t) || plan.op_of(u).lane != LaneKind::compute) continue;
      if (other.entered > s.entered || other.ended < s.ended) continue;
      s.ended = s.entered + (s.ended - s.entered) / 2;
      ++beside;
      break;
    }
  }
  ASSERT_GT(beside, 0);
  Observations seen;
  seen.add(plan, runs_of(plan, trace, plan_hash(folded), 12));
  for (const OpTable& table : seen.times().ops) {
    const double rate = table.kind.starts_with("gemm") || table.kind.starts_with("attention") ? 10e9 : 5e9;
    for (const OpSample& s : table.samples) EXPECT_NEAR(s.seconds * rate / s.amount, 1, 1e-3) << table.kind;
  }
}

// Two other lanes that each compute beside a task for 4 % of its time disturb it for 8 %, more than the 5 % that a
// sample of a task alone may be.
TEST(Calibration, AddsUpTheLanesBesideATask) {
  std::string one_rank = kSpec;
  one_rank.replace(one_rank.find("data: 2"), 7, "data: 1");
  one_rank.replace(one_rank.find("gpus: 2"), 7, "gpus: 1");
  one_rank.replace(one_rank.find("global_batch: 8"), 15, "global_batch: 2");
  one_rank.replace(one_rank.find("vocab: 256"), 10, "vocab: 320");
  const auto counted = [&](double share) {
    const Spec spec = parse_spec(one_rank, "small.yaml");
    const Plan folded = make_plan(spec);
    Plan plan = unfold(folded);
    Trace trace = simulate(plan, costs_of(plan, spec, cpu_profile(plan)).timing);
    const RankClass& own = plan.classes[0];
    std::vector<TaskId> compute;  // tasks of which no other one has the shape, so that each is all of a sample
    for (TaskId t = own.begin; t < own.end; ++t)
      if (plan.op_of(t).name == "logits" || plan.op_of(t).name == "embedding" || plan.op_of(t).name == "final norm")
        compute.push_back(t);
    EXPECT_GE(compute.size(), 3U);
    if (compute.size() < 3) return false;
    const auto longest = std::max_element(compute.begin(), compute.end(), [&](TaskId a, TaskId b) {
      return trace.spans[a].ended - trace.spans[a].entered < trace.spans[b].ended - trace.spans[b].entered;
    });
    std::iter_swap(compute.begin(), longest);
    const Span& s = trace.spans[compute[0]];
    const auto part = static_cast<Picoseconds>(share * static_cast<double>(s.ended - s.entered));
    const LaneKind lanes[] = {LaneKind::data_gather, LaneKind::tensor};
    for (std::size_t i = 0; i < 2; ++i) {
      plan.ops[plan.tasks[compute[i + 1]].op].lane = lanes[i];
      Span& other = trace.spans[compute[i + 1]];
      other.matched = other.entered = s.entered + static_cast<Picoseconds>(i) * (s.ended - s.entered) / 2;
      other.ended = other.entered + part;
    }
    Observations seen;
    seen.add(plan, runs_of(plan, trace, plan_hash(folded), 12));
    const WorkShape shape = shape_of(plan.op_of(compute[0]).work, plan.element_bytes);
    for (const OpTable& table : seen.times().ops)
      for (const OpSample& sample : table.samples)
        if (table.kind == shape.kind && sample.sizes == shape.sizes) return true;
    return false;
  };
  EXPECT_TRUE(counted(0.02));
  EXPECT_FALSE(counted(0.04));
}

// Ranks that are measured one by one each need the time in which clocks settle.
TEST(Calibration, SettlesEachRank) {
  const Plan folded = make_plan(parse_spec(kSpec, "small.yaml"));
  const std::int64_t steps = settled_steps(folded, 1e-5);
  EXPECT_GT(steps, 10);
  EXPECT_EQ(settled_steps(unfold(folded), 1e-5), steps);
  EXPECT_NEAR(static_cast<double>(settled_steps(folded, 2e-5)), static_cast<double>(2 * steps), 1);
}

// Calibration also works where the loads of experts vary: it uses the counted rows of an op, not the planned ones.
TEST(Calibration, KnowsHowManyRowsExpertsGot) {
  const Spec spec = swinging_spec("");
  const Plan plan = unfold(make_plan(spec));
  Observations seen;
  seen.add(plan, swinging_runs(spec, swinging_profile(plan), 24));
  int grouped = 0;
  for (const OpTable& table : seen.times().ops) {
    const double rate = table.kind.starts_with("gemm") || table.kind.starts_with("attention") ? 10e9 : 5e9;
    for (const OpSample& s : table.samples) EXPECT_NEAR(s.seconds * rate / s.amount, 1, 2e-2) << table.kind;
    if (table.kind.starts_with("grouped gemm")) grouped += static_cast<int>(table.samples.size());
  }
  EXPECT_GE(grouped, 12);  // two shapes, three products, several numbers of rows
}

// Calibration also works if the host copies and updates while the device computes, and both slow each other.
TEST(Calibration, FindsWhatTheHostDoesBeside) {
  std::string text = kSpec;
  text.replace(text.find("data: 2"), 7, "data: 2, sharding: zero2, offload: {optimizer: cpu, gradients: cpu}");
  text.replace(text.find("global_batch: 8"), 15, "global_batch: 4");  // no upload runs while gradients are offloaded
  const Spec spec = parse_spec(text, "small.yaml");
  const Plan folded = make_plan(spec), plan = unfold(folded);
  Profile profile = cpu_profile(plan);
  profile.measured.beside_slowdown = 1.5;
  profile.measured.copy_slowdown = 1.25;
  for (OpTable& table : profile.measured.ops) {
    if (!table.kind.starts_with("copy/")) continue;
    for (OpSample& s : table.samples) s.seconds *= 20;  // longer than the tasks beside them
  }
  const Trace trace = simulate(plan, costs_of(plan, spec, profile).timing);
  Observations seen;
  seen.add(plan, runs_of(plan, trace, plan_hash(folded), 12));
  const MeasuredTimes times = seen.times();
  EXPECT_NEAR(times.beside_slowdown, 1.5, 0.02);
  EXPECT_GE(times.copy_slowdown, 1);
  int copies = 0;
  for (const OpTable& table : times.ops) {
    if (!table.kind.starts_with("copy/")) continue;
    ++copies;
    for (const OpSample& s : table.samples) EXPECT_NEAR(s.seconds * 5e9 / s.amount, 20, 0.3) << table.kind;
  }
  EXPECT_EQ(copies, 2);
}

std::set<std::string> kinds_of(const Plan& plan) {
  std::set<std::string> kinds;
  for (const Op& op : plan.ops) {
    const WorkShape shape = shape_of(op.work, plan.element_bytes);
    if (moves(op))
      kinds.insert(transfer_kind(op));
    else if (kernels_of(op.work) > 0)
      kinds.insert(shape.kind);
  }
  return kinds;
}

// Calibration runs measure every kind of op in the validation specs of benchmarks/.
TEST(Calibration, HoldsTheKindsOfTheValidationSpecs) {
  std::set<std::string> measured;
  for (const CalibrationSpec& c : calibration_specs(2, false))
    measured.merge(kinds_of(make_plan(parse_spec(c.text, c.name))));
  for (const char* script : {"cpu_validation_specs", "cpu_family_specs"}) {
    const test::TemporaryFolder folder;
    const std::string command = fmt::format("{}/benchmarks/{} {}", ORRERY_SOURCE_DIR, script, folder.path());
    ASSERT_EQ(std::system(command.c_str()), 0);
    int specs = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      ++specs;
      for (const std::string& kind : kinds_of(make_plan(load_spec(file.path().string()))))
        EXPECT_TRUE(measured.contains(kind)) << file.path() << ": " << kind;
    }
    EXPECT_GE(specs, 6);
  }
}

// Each kind of spec for a GPU measures what it is there for: a sharding that one rank drops, for one, would not.
TEST(Calibration, GpuSpecsHoldTheKindsTheyAreFor) {
  std::map<std::string, std::set<std::string>> kinds;
  for (const CalibrationSpec& c : gpu_calibration_specs(false))
    kinds[c.name.substr(0, c.name.find(':'))].merge(kinds_of(make_plan(parse_spec(c.text, c.name))));
  const std::pair<const char*, const char*> aims[] = {
      {"llama", "gemm/weight_gradient/add/4 bf16"},
      {"llama", "embedding/backward/4 bf16"},
      {"units", "gemm/weight_gradient bf16"},
      {"units", "cast/4-2 bf16"},
      {"narrow", "gemm/weight_gradient/add bf16"},
      {"narrow", "embedding/backward bf16"},
      {"dropout", "residual/bias/dropout/forward bf16"},
      {"unfused", "softmax/forward bf16"},
  };
  for (const auto& [spec, kind] : aims)
    EXPECT_TRUE(kinds[spec].contains(kind))
        << spec << ": " << kind << " is not in " << fmt::format("{}", fmt::join(kinds[spec], ", "));
}

// Calibration reports noisy repetitions.
TEST(Calibration, TellsNoise) {
  const Spec spec = parse_spec(kSpec, "small.yaml");
  const Plan folded = make_plan(spec), plan = unfold(folded);
  const Trace trace = simulate(plan, costs_of(plan, spec, cpu_profile(plan)).timing);
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
