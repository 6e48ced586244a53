#include "sim/validate/validation.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/load/load_spec.h"
#include "models/plan/unfold.h"
#include "tests/sim/cpu_profile.h"
#include "tests/sim/fake_runs.h"

namespace orrery {
namespace {

const char kMeasuredSpec[] =
    "model: {name: small, layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 256}\nsequence: 32\n"
    "cluster: {node: localhost}\ngpus: 2\nsoftware: orrery\n"
    "strategy: {precision: fp32, gradient_precision: fp32, micro_batch: 2, global_batch: 8, pipeline: 2}\n";

struct MeasuredCase {
  Spec spec = parse_spec(kMeasuredSpec, "small.yaml");
  Plan folded = make_plan(spec);
  Prediction prediction;
  MeasuredCase() {
    prediction.plan = unfold(folded);
    prediction.profile = cpu_profile(prediction.plan);
    prediction.costs = costs_of(prediction.plan, spec, prediction.profile);
    prediction.trace = simulate(prediction.plan, prediction.costs.timing);
    prediction.report = make_report(spec, prediction.plan, prediction.costs, prediction.trace, prediction.profile);
  }
  // Runs of ranks whose times and memory are as predicted.
  std::vector<RankRun> runs() const {
    auto runs = runs_of(prediction.plan, prediction.trace, plan_hash(folded), 1);
    for (std::size_t r = 0; r < runs.size(); ++r) runs[r].memory.peak = prediction.report.memory.ranks[r].memory.peak;
    return runs;
  }
};

TEST(Validation, OfWhatWasPredictedHasNoError) {
  const MeasuredCase c;
  const Validation v = validate(c.spec, c.prediction, c.runs());
  EXPECT_NEAR(v.step_error, 0, 1e-3);
  EXPECT_NEAR(v.engine_error, 0, 2e-3);
  EXPECT_NEAR(v.cost_error, 0, 1e-6);
  EXPECT_EQ(v.memory_error, 0);
  for (std::size_t i = 1; i < v.kinds.size(); ++i) EXPECT_LE(v.kinds[i].measured, v.kinds[i - 1].measured);
}

TEST(Validation, TellsMemoryThatIsOff) {
  const MeasuredCase c;
  auto runs = c.runs();
  runs[1].memory.peak *= 2;
  EXPECT_DOUBLE_EQ(validate(c.spec, c.prediction, runs).memory_error, -0.5);
}

TEST(Validation, PrintsBothSidesAndTheirErrors) {
  const MeasuredCase c;
  Validation v = validate(c.spec, c.prediction, c.runs());
  v.name = "a spec";
  v.step_error = 0.25;
  EXPECT_NE(validation_text(v).find("+25.0 %"), std::string::npos);
  Validation other = v;
  other.step_error = -0.05;
  const std::string table = validation_table({v, other}, {});
  EXPECT_NE(table.find("median"), std::string::npos);
  EXPECT_NE(table.find("15.0"), std::string::npos);
  const auto read = nlohmann::json::parse(to_json(std::vector<Validation>{v, other}));
  EXPECT_EQ(read.at("schema"), "orrery.validation/1");
  EXPECT_EQ(read.at("specs").size(), 2U);
  EXPECT_EQ(read.at("specs")[1].at("step_error"), -0.05);
}

}  // namespace
}  // namespace orrery
