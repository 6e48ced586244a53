#include "sim/published/from_steps.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/plan/hash.h"
#include "models/planner/make_plan.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/published/few_steps.h"
#include "sim/published/known_stacks.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

const char* kSpec =
    "model: {layers: 4, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 32000}\nsequence: 2048\n"
    "cluster: {node: dgx-h100, nodes: 2}\nsoftware: megatron-core\n"
    "strategy: {tensor: 2, micro_batch: 2, global_batch: 64}\n";

StackStep step_with(const std::vector<std::string>& overrides) {
  StackStep step;
  step.id = overrides.empty() ? "base" : overrides.front();
  step.text = kSpec;
  step.path = "s.yaml";
  step.overrides = overrides;
  step.spec = parse_spec(kSpec, "s.yaml", overrides);
  return step;
}

// A cluster of which products, the host and the network are slower than built-in constants say.
Profile slower() {
  Profile p = find_profile(find_gpu("h100-sxm"));
  p.steps.steps = 1;
  p.steps.numbers[index_of(FitPart::products)].factor = 1.12;
  p.steps.numbers[index_of(FitPart::host)].factor = 1.5;
  p.steps.numbers[index_of(FitPart::between)].factor = 1.3;
  apply(p.steps, p);
  return p;
}

struct Measured {
  std::vector<StackStep> steps;
  std::vector<StepResponse> responses;
  std::vector<double> seconds;

  std::vector<const StepResponse*> all() const {
    std::vector<const StepResponse*> result;
    for (const StepResponse& r : responses) result.push_back(&r);
    return result;
  }
};

Measured measured() {
  Measured m;
  const std::vector<std::vector<std::string>> all = {{},
                                                     {"strategy.tensor=8"},
                                                     {"strategy.tensor=1"},
                                                     {"strategy.micro_batch=4", "model.hidden=4096"},
                                                     {"strategy.sharding=zero3"}};
  for (const std::vector<std::string>& overrides : all) {
    m.steps.push_back(step_with(overrides));
    m.responses.push_back(response_of(m.steps.back().spec, find_profile(find_gpu("h100-sxm"))));
    m.seconds.push_back(predict_report(m.steps.back().spec, slower()).step_time_s);
    m.steps.back().step_time_s = m.seconds.back();
  }
  return m;
}

TEST(FromSteps, FactorsExplainTheMeasuredSteps) {
  const Measured m = measured();
  const StepsFit fit = fit_steps(m.all(), m.seconds);
  for (std::size_t i = 0; i < m.seconds.size(); ++i) {
    EXPECT_LT(std::abs(m.responses[i].at(fit.shifts) - std::log(m.seconds[i])), .03) << m.steps[i].id;
    EXPECT_GT(std::abs(m.responses[i].built_in - std::log(m.seconds[i])), .05) << "or there is nothing to explain";
  }
  // How much of the whole goes to products depends on how strictly the priors hold them.
  const StepsFit judged = fit_steps(m.all(), m.seconds, judged_priors());
  EXPECT_GT(judged.shifts[index_of(FitPart::products)], .035);
}

TEST(FromSteps, WithoutStepsThePriorStays) {
  const StepsFit fit = fit_steps({}, {});
  EXPECT_EQ(fit.shifts, StepShifts{});
  const StepCovariance prior = covariance_of(built_in_priors());
  for (std::size_t i = 0; i < kFitParts; ++i) {
    for (std::size_t j = 0; j < kFitParts; ++j) EXPECT_NEAR(fit.covariance[i][j], prior[i][j], 1e-12);
  }
}

TEST(FromSteps, MoreStepsTellMore) {
  const Measured m = measured();
  const auto part = [&](std::size_t n) {
    return step_fit({m.responses.begin(), m.responses.begin() + static_cast<std::ptrdiff_t>(n)},
                    {m.seconds.begin(), m.seconds.begin() + static_cast<std::ptrdiff_t>(n)}, "megatron-core");
  };
  const StepFit two = part(2), five = part(5);
  EXPECT_LT(five.high / five.low, two.high / two.low);
  EXPECT_LT(two.high / two.low, 1.35 / .75) << "the interval of an unknown stack";
  EXPECT_LT(five.numbers[0].spread, five.numbers[0].prior_spread);
}

// Steps that no factors explain make the interval of new ones as wide as they scatter.
TEST(FromSteps, StepsThatScatterWidenTheInterval) {
  Measured m = measured();
  const StepFit calm = step_fit(m.responses, m.seconds, "megatron-core");
  for (std::size_t i = 0; i < m.seconds.size(); ++i) m.seconds[i] *= i % 2 == 0 ? 1.3 : .75;
  const StepFit wild = step_fit(m.responses, m.seconds, "megatron-core");
  EXPECT_GT(wild.high, 1.2);
  EXPECT_LT(calm.high, 1.15);
}

// A new step is predicted with the profile nearer to what the slower cluster takes.
TEST(FromSteps, TheProfilePredictsNewSteps) {
  const Measured m = measured();
  Profile p = find_profile(find_gpu("h100-sxm"));
  p.steps = step_fit(m.responses, m.seconds, "megatron-core");
  apply(p.steps, p);
  const Spec spec = step_with({"strategy.pipeline=2", "sequence=4096"}).spec;
  const double truth = predict_report(spec, slower()).step_time_s;
  EXPECT_NEAR(predict_report(spec, p).step_time_s / truth, 1, .03);
  EXPECT_GT(std::abs(predict_report(spec, find_profile(find_gpu("h100-sxm"))).step_time_s / truth - 1), .05);
}

TEST(FromSteps, ProposesWhatTellsMost) {
  const Measured m = measured();
  const StepsFit fit = fit_steps({&m.responses[0]}, {m.seconds[0]});
  const auto runs = next_runs({m.steps[0]}, fit, 3, [](std::string_view) {});
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_LE(runs[0].narrower, runs[1].narrower);
  EXPECT_LT(runs[0].narrower, 1);
  EXPECT_EQ(runs[0].of, "base");
  EXPECT_GT(runs[0].predicted_s, 0);
}

// Before any step is measured, the step itself may be what tells most; a measured one tells less of its variations.
TEST(FromSteps, ProposesTheStepItselfWhereItIsNotMeasured) {
  const auto proposed = [](const StackStep& step) {
    const auto runs = next_runs({step}, fit_steps({}, {}), 100, [](std::string_view) {});
    return std::ranges::any_of(runs, [](const NextRun& run) { return run.override.empty(); });
  };
  StackStep step = step_with({});
  EXPECT_TRUE(proposed(step));
  step.step_time_s = 1;
  EXPECT_FALSE(proposed(step));
}

// Proposals leave out what was measured, however its row is written.
TEST(FromSteps, MeasuredStepsAreNotProposed) {
  std::vector<StackStep> steps;
  for (const char* change : {"strategy.micro_batch=2", "strategy.micro_batch=4", "sequence=4096"})
    steps.push_back(step_with({change}));
  for (StackStep& step : steps) step.step_time_s = 1;
  std::vector<std::string> seen;
  for (const NextRun& run : next_runs(steps, fit_steps({}, {}), 100, [](std::string_view) {})) {
    const auto base = std::find_if(steps.begin(), steps.end(), [&](const StackStep& s) { return s.id == run.of; });
    ASSERT_NE(base, steps.end());
    std::vector<std::string> overrides = base->overrides;
    std::istringstream changes(run.override);
    for (std::string change; changes >> change;) overrides.push_back(change);
    seen.push_back(plan_hash(make_plan(step_with(overrides).spec)));
  }
  EXPECT_GT(seen.size(), 5u);
  for (const StackStep& step : steps) seen.push_back(plan_hash(make_plan(step.spec)));
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "a plan measured or proposed twice";
}

// Steps of an unknown stack are corrected from the known one that they look like.
TEST(FromSteps, AnUnknownStackIsLikeAKnownOne) {
  const std::string text =
      "model: {layers: 4, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 32000}\nsequence: 2048\n"
      "cluster: {node: dgx-a100, nodes: 1}\nstrategy: {tensor: 2, micro_batch: 2, global_batch: 64}\n";
  std::vector<StackStep> steps;
  std::vector<StepResponse> responses;
  for (const char* change : {"sequence=2048", "sequence=1024", "strategy.tensor=4"}) {
    StackStep step{.id = change, .text = text, .path = "s.yaml", .overrides = {change}};
    step.spec = parse_spec(text, "s.yaml", step.overrides);
    EXPECT_FALSE(names_stack(step.spec));
    step.step_time_s = std::exp(*ln_seconds_with(step, "megatron-deepspeed-2022"));
    responses.push_back(response_of(step.spec, find_profile(find_gpu("a100-sxm-80gb"))));
    steps.push_back(step);
  }
  const LikelyStack likely = likely_stack(steps, responses);
  EXPECT_NEAR(std::exp(*ln_seconds_with(steps[0], likely.name)) / steps[0].step_time_s, 1, .02) << likely.name;
  EXPECT_NE(likely.name, kAnyStack);
  EXPECT_GT(likely.probability, .2) << "stacks of one family share it";
  EXPECT_TRUE(names_stack(with_stack(steps[0], likely.name)));
}

class StepTable : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(folder_.path("s.yaml")) << kSpec; }
  std::string table(const std::string& text) const {
    std::ofstream(folder_.path("t.csv")) << text;
    return folder_.path("t.csv");
  }
  test::TemporaryFolder folder_;
};

// The factors are those of one stack on one GPU.
TEST_F(StepTable, AProfileOfStepsIsForTheirStackAndGpu) {
  Profile p;
  p.rest_built_in = true;
  p.steps.steps = 3;
  p.steps.software = "megatron-core";
  p.fingerprint = {{"gpu", "h100-sxm"}};
  const std::string path = folder_.path("p.json");
  std::ofstream(path) << to_json(p);
  const auto refusal = [&](const std::vector<std::string>& overrides) -> std::string {
    try {
      profile_for(parse_spec(kSpec, "s.yaml", overrides), path);
      return "";
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code, 2);
      return e.what();
    }
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({"software=torchtitan"}).find("megatron-core on h100-sxm"), std::string::npos);
  EXPECT_NE(refusal({"cluster.node=dgx-a100"}).find("megatron-core on a100-sxm-80gb"), std::string::npos);
}

TEST_F(StepTable, HasAStepALine) {
  const auto steps = read_steps(table(
      "spec,overrides,seconds,memory_GiB\ns.yaml,,1.5,\ns.yaml,strategy.tensor=4; strategy.micro_batch=1,2.5,33\n"));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].spec.strategy.tensor, 4);
  EXPECT_EQ(steps[1].spec.strategy.micro_batch, 1);
  EXPECT_DOUBLE_EQ(steps[1].step_time_s, 2.5);
  EXPECT_FALSE(steps[0].peak_memory_bytes);
  EXPECT_DOUBLE_EQ(*steps[1].peak_memory_bytes, 33.0 * (1 << 30));
}

TEST_F(StepTable, RefusesWhatIsNoStep) {
  EXPECT_THROW(read_steps(table("spec,overrides,seconds\n")), Error);
  EXPECT_THROW(read_steps(table("spec,seconds\ns.yaml,-1\n")), Error);
  EXPECT_THROW(read_steps(table("spec,seconds\nabsent.yaml,1\n")), Error);
  EXPECT_THROW(read_steps(table("spec,overrides,seconds\ns.yaml,strategy.tensr=4,1\n")), Error);
}

TEST(FewSteps, UnknownStacksAreJudgedByDraws) {
  std::vector<PublishedRow> rows;
  for (int i = 0; i < 9; ++i) {
    PublishedRow row;
    row.id = "r" + std::to_string(i);
    row.source = "s";
    row.spec = R"({"model": {"layers": 2, "hidden": 1024, "heads": 16, "feed_forward": 4096, "vocab": 32000}, )"
               R"("sequence": 1024, "cluster": {"node": "dgx-h100", "nodes": 1}, "strategy": {"tensor": )" +
               std::to_string(1 << i % 3) + R"(, "micro_batch": )" + std::to_string(1 + i / 3) +
               R"(, "global_batch": 96}})";
    row.step_time_s =
        1.2 * predict_report(parse_spec(row.spec, row.id), find_profile(find_gpu("h100-sxm"))).step_time_s;
    rows.push_back(row);
  }
  const ForEach one_by_one = [](std::size_t n, const std::function<void(std::size_t)>& body) {
    for (std::size_t i = 0; i < n; ++i) body(i);
  };
  const std::vector<FewSteps> judged = judge_few_steps(rows, 3, one_by_one).groups;
  ASSERT_EQ(judged.size(), 1u);
  EXPECT_EQ(judged[0].rows, 9u);
  EXPECT_NEAR(judged[0].before, .167, .002);
  EXPECT_LT(judged[0].fitted, .06);
  EXPECT_LT(judged[0].one_factor, .001);
  EXPECT_TRUE(judge_few_steps({rows.begin(), rows.begin() + 5}, 3, one_by_one).groups.empty()) << "too few to judge";
}

}  // namespace
}  // namespace orrery
