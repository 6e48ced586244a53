#include "sim/predict/server_clocks.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/plan/check.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "sim/engine/simulate.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// A spec in which updates take almost no time, and computing most of a step.
Spec paced_spec(const std::string& servers, const std::string& more = "", std::int64_t workers = 8) {
  return parse_spec(
      fmt::format(
          "model: {{name: small, layers: 4, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 1000}}\n"
          "sequence: 1024\ncluster: {{gpu: h100-sxm, gpus_per_node: 1, nodes: 64, nics: 1, nic_Gbps: 400, fabric: "
          "infiniband, host: {{dram_GiB: 1024, dram_GBps: 1000000}}}}\nsoftware: {{profile: orrery, cuda_graphs: "
          "true}}\n"
          "strategy: {{data: {}, micro_batch: 32, clip: 0, sharding: parameter-server, global_batch: {}, "
          "parameter_server: {}{}}}\n",
          workers, 32 * workers, servers, more),
      "case");
}

struct Paced {
  ServerSteps steps;
  Trace trace;
  ServerClocks clocks;
};

Paced paced(const Spec& spec, std::int64_t count = 12) {
  const Plan all = unfold(make_plan(spec));
  Paced p{server_steps(all, spec, costs_of(all, spec, find_profile(spec.cluster.gpu)), count), {}, {}};
  p.trace = simulate(p.steps.plan, p.steps.timing);
  p.clocks = server_clocks(p.steps, p.trace);
  return p;
}

Spec lagging(Spec spec, double slowdown) {
  spec.cluster.stragglers = {{1, slowdown}};
  return spec;
}

// Ho et al. 2013: a worker is never further ahead than the bound; without a bound it may be.
TEST(ServerClocks, BoundedStalenessIsBounded) {
  for (const std::int64_t staleness : {0, 1, 2, 5}) {
    for (const double slowdown : {1.0, 1.7, 4.0}) {
      const Paced p = paced(lagging(
          paced_spec(fmt::format("{{servers: 2, colocated: false, mode: ssp, staleness: {}}}", staleness)), slowdown));
      EXPECT_LE(p.clocks.staleness.most_ahead, staleness) << slowdown;
      EXPECT_GE(p.clocks.staleness.most_ahead, slowdown == 4 ? staleness : 0);
    }
  }
  const Paced free = paced(lagging(paced_spec("{servers: 2, colocated: false, mode: async}"), 4));
  EXPECT_GT(free.clocks.staleness.most_ahead, 5);
}

// A straggler slows all workers if they wait for each other, and only itself if no worker waits.
TEST(ServerClocks, StragglersCostWhatTheyMust) {
  const auto pace = [](const std::string& mode, double slowdown) {
    const Paced p = paced(lagging(paced_spec(fmt::format("{{servers: 8, colocated: false, {}}}", mode)), slowdown), 24);
    return seconds(p.clocks.window) / p.clocks.steps;
  };
  const double even = pace("mode: async", 1), free = pace("mode: async", 3), bound = pace("mode: ssp, staleness: 0", 3);
  // Seven of eight workers go on as before; the slow one makes a third of the steps or a little more, for it computes
  // a part of its step only.
  EXPECT_GT(free, even * 1.02);
  EXPECT_LT(free, even * 8 / (7 + 1.0 / 3) * 1.05);
  EXPECT_GT(bound, 2 * even);
  EXPECT_LE(pace("mode: ssp, staleness: 4", 3), bound);
}

// If only one server's NIC takes time, the weights and gradients of W workers pass through it: Psi W / B each way. Both
// directions are used at once if workers drift apart, one after the other if they stay in step.
TEST(ServerClocks, OneServersNicIsTheBottleneck) {
  Spec spec = paced_spec("{servers: 1, colocated: false, mode: async}", ", bucket_MiB: 100000", 16);
  spec.strategy.micro_batch = 1;
  spec.strategy.global_batch = 16;
  const Paced p = paced(spec, 16);
  Bytes pushed = 0;
  for (TaskId t = p.steps.plan.classes[0].begin; t < p.steps.plan.classes[0].end; ++t) {
    const auto* c = std::get_if<Collective>(&p.steps.plan.op_of(t).work);
    if (c != nullptr && c->kind == CollectiveKind::push) pushed += c->bytes;
  }
  const double all = static_cast<double>(pushed) / static_cast<double>(p.steps.steps) * 16 / (0.98 * 48e9);
  const double step = seconds(p.clocks.window) / p.clocks.steps;
  EXPECT_GT(step, all);
  EXPECT_LT(step, 2.1 * all);
}

// With equal workers, the updates of all other workers fall between a worker's read and its update.
TEST(ServerClocks, EqualWorkersAreAsStaleAsTheyAreMany) {
  for (const std::int64_t workers : {2, 4, 8}) {
    const Paced p = paced(paced_spec("{servers: 4, colocated: false, mode: async}", "", workers), 16);
    EXPECT_NEAR(p.clocks.staleness.mean, static_cast<double>(workers - 1), 0.15 * static_cast<double>(workers));
    EXPECT_NEAR(p.clocks.steps, 16, 1);
  }
}

TEST(ServerClocks, PlansAreSoundAndReportsSumUp) {
  for (const char* servers : {"{servers: 2, mode: async}", "{servers: 3, mode: ssp, staleness: 1}"}) {
    for (const char* more : {"", ", overlap: {gradient_reduce: false, parameter_gather: false}"}) {
      const Spec spec = lagging(paced_spec(servers, more, 4), 2);
      const Prediction p = predict(spec);
      double sum = 0;
      for (const double t : p.report.time_s) sum += t;
      EXPECT_NEAR(sum / p.report.step_time_s, 1, 1e-6) << servers << more;
      EXPECT_NEAR(p.report.tokens_per_s * p.report.step_time_s, 32 * 4 * 1024, 1e-2);
      EXPECT_NE(p.report.remarks.back().find("updates of other workers old"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace orrery
