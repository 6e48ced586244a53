#include "sim/run_length/run_length.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "sim/report/goodput.h"

namespace orrery {
namespace {

constexpr Seconds kDay = 24 * 3600;

TEST(RunLength, KindsOfFailuresAreAllOfThem) {
  double sum = 0;
  for (const FailureKind& kind : failure_kinds()) sum += kind.share;
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_LE(failure_kinds().size(), RunTimes{}.failures.size());
}

// Daly's equation gives the mean share of useful time of a long run with synchronous checkpoints.
TEST(RunLength, AgreesWithDalysEquation) {
  for (const Seconds mean : {3600.0, 10800.0, 86400.0}) {
    for (const Seconds restart : {0.0, 300.0, 1800.0}) {
      for (const Seconds interval : {600.0, 1800.0, 3600.0}) {
        const LongRun run = {
            .length = 500 * mean, .between_failures = mean, .interval = interval, .stall = 60, .restart = restart};
        const double share = goodput({mean, 60, restart, interval});
        EXPECT_NEAR(play_often(run, 3, 400).mean_share / share, 1, .01) << mean << ' ' << restart << ' ' << interval;
      }
    }
  }
}

TEST(RunLength, EveryPartOfTheTimeIsCounted) {
  const LongRun run = {.length = 20 * kDay,
                       .between_failures = 7200,
                       .interval = 1800,
                       .stall = 20,
                       .writing = 400,
                       .detection = 120,
                       .restart = 300,
                       .repair = 2 * kDay,
                       .spares = 12};
  for (std::uint64_t i = 0; i < 50; ++i) {
    const RunTimes t = play(run, 1, i);
    EXPECT_NEAR(t.training + t.undone + t.checkpoints + t.restarting + t.waiting, run.length, 1e-3);
    EXPECT_EQ(play(run, 1, i).training, t.training);
    EXPECT_GT(t.training, 0);
    EXPECT_GT(t.all_failures(), 100);
  }
  EXPECT_NE(play(run, 1, 0).training, play(run, 2, 0).training);
}

// A link that goes down for 2 s every 1,000 s holds InfiniBand up until the first resend, 4.295 s later.
TEST(RunLength, OutagesOfLinksTakeTheirShareOfTheTime) {
  const LongRun run = {.length = 50 * kDay, .interval = 1800, .between_flaps = 1000, .flap = held_by_flap(2)};
  EXPECT_NEAR(held_by_flap(2), 4.295, .001);
  EXPECT_NEAR(held_by_flap(5), 2 * 4.295, .001);
  EXPECT_EQ(held_by_flap(0), 0);
  const RunQuantiles q = play_often(run, 1, 200);
  EXPECT_NEAR(q.mean.flaps / run.length, 4.295 / 1004.295, 1e-4);
  EXPECT_NEAR(q.mean.training + q.mean.checkpoints + q.mean.flaps, run.length, 1);
  const LongRun rare = {.length = 1000, .interval = 1800, .between_flaps = 1000, .flap = 4};
  EXPECT_NEAR(play_often(rare, 1, 20000).mean.flaps, 4000.0 / 1004, .1);  // few outages are drawn one by one
}

// One failure at a time: what it costs is known exactly.
TEST(RunLength, WaitsForDetectionRepairAndRestartOnce) {
  const LongRun run = {.length = 100 * kDay,
                       .between_failures = 200 * kDay,
                       .interval = 3600,
                       .detection = 100,
                       .restart = 200,
                       .repair = 5000,
                       .spares = 0};
  int waited = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const RunTimes t = play(run, 9, i);
    if (t.all_failures() != 1 || t.restarting < 299.999) continue;  // or the run ended before the restart
    EXPECT_NEAR(t.restarting, 300, 1e-6);
    EXPECT_NEAR(t.waiting, t.waiting > 0 ? 5000 : 0, 1e-6);
    waited += t.waiting > 0 ? 1 : 0;
  }
  EXPECT_GT(waited, 20);
}

// Plays of neighbouring seeds share no stretch of random numbers.
TEST(RunLength, SeedsAreApart) {
  const LongRun run = {.length = 54 * kDay, .between_failures = 10800, .interval = 1800};
  double equal = 0;
  for (std::uint64_t i = 0; i < 100; ++i)
    equal += std::abs(play(run, 1, i).all_failures() - play(run, 2, i).all_failures()) <= 2 ? 1 : 0;
  EXPECT_LT(equal, 30);
}

TEST(RunLength, RefusesMoreFailuresThanCanBePlayed) {
  EXPECT_THROW(play_often({.length = kDay, .between_failures = 1e-9, .interval = 60}, 1, 10), Error);
  EXPECT_THROW(play_often({.length = kDay, .between_failures = 60, .restart = 1e9}, 1, 10'000'000), Error);
}

TEST(RunLength, FailsAsOftenAsPoissonSays) {
  const LongRun run = {.length = 54 * kDay, .between_failures = 54 * kDay / 419, .interval = 1800};
  const RunQuantiles q = play_often(run, 5, 4000);
  EXPECT_NEAR(q.failures[1], 419, 3);
  EXPECT_NEAR(q.failures[0], 419 - 1.645 * std::sqrt(419), 4);
  EXPECT_NEAR(q.failures[2], 419 + 1.645 * std::sqrt(419), 4);
  EXPECT_NEAR(q.mean.failures[0], 148, 2);
  EXPECT_NEAR(std::accumulate(q.mean.failures.begin(), q.mean.failures.end(), 0.0), 419, 2);
}

TEST(RunLength, LosesMoreWithFewerSparesAndUnfinishedCheckpoints) {
  LongRun run = {
      .length = 30 * kDay, .between_failures = 10800, .interval = 1800, .stall = 5, .restart = 300, .repair = kDay};
  const double enough = play_often(run, 1, 200).mean_share;
  run.spares = 8;
  const RunQuantiles few = play_often(run, 1, 200);
  EXPECT_LT(few.mean_share, enough);
  EXPECT_GT(few.mean.waiting, 0);
  run.spares = -1;
  run.writing = 1200;
  EXPECT_LT(play_often(run, 1, 200).mean_share, enough);
  run.between_failures = 0;
  EXPECT_NEAR(play_often(run, 1, 2).mean_share, 1800.0 / 1805, 1e-3);
}

// Checkpoints of the strategy count if it has any, or else those that lose least.
TEST(RunLength, IsThatOfTheSpec) {
  const auto run_of = [](const std::string& more) {
    const Spec spec = parse_spec(
        "model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 4, nvme: {TB: 30, write_GBps: 20}, "
        "failures: {node_mtbf_hours: 1000, restart_s: 600, detect_s: 60, spares: 2}}\n"
        "strategy: {" +
            more + "}\n",
        "run.yaml");
    Spec step = spec;
    step.cluster.failures.reset();
    return long_run(spec, predict(step).report, 10);
  };
  const LongRun plain = run_of("data: 32");
  EXPECT_DOUBLE_EQ(plain.between_failures, 900'000);
  EXPECT_EQ(plain.restart, 600);
  EXPECT_EQ(plain.detection, 60);
  EXPECT_EQ(plain.spares, 2);
  EXPECT_GT(plain.interval, plain.stall);
  const LongRun beside = run_of("data: 32, checkpoint: {every: 1000, asynchronous: true}");
  EXPECT_GT(beside.writing, 0);
  EXPECT_LT(beside.stall, plain.stall);
}

// A switch of one of two planes halves the rate of NICs until it is repaired, and ends no run.
TEST(RunLength, GoesOnWithoutASwitchOfAPlane) {
  const auto spec_of = [](const std::string& network) {
    return parse_spec(
        "model: llama-3.2-1b\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 4, nic_Gbps: 50, network: "
        "{leaf: {nodes: 2}" +
            network + "}}\nstrategy: {data: 32}\n",
        "run.yaml");
  };
  EXPECT_FALSE(without_a_switch(spec_of("")));
  EXPECT_FALSE(without_a_switch(spec_of(", planes: 2, faults: [{plane: 0, node: 3}]")))
      << "two nodes without a common plane";
  const Spec spec = spec_of(", planes: 2"), broken = *without_a_switch(spec);
  const Report report = predict(spec).report;
  const Seconds slow = predict(broken).report.step_time_s;
  EXPECT_GT(slow, report.step_time_s);
  LongRun run = long_run(spec, report, 54, slow), ends = long_run(spec, report, 54);
  EXPECT_NEAR(1 / ends.between_failures, 1 / run.between_failures + 1 / run.between_lost_planes, 1e-12);
  for (LongRun* r : {&run, &ends}) {
    r->between_failures *= 0.01;
    r->restart = 3600;
  }
  run.between_lost_planes *= 0.01;
  run.repair = 600;
  const RunQuantiles on = play_often(run, 1, 400), over = play_often(ends, 1, 400);
  EXPECT_EQ(on.mean.failures[3], 0) << "a switch that ends nothing is no failure of the run";
  EXPECT_EQ(over.mean.survived, 0);
  EXPECT_NEAR(on.mean.survived / over.mean.failures[3], 1, 0.12);
  EXPECT_NEAR((on.mean.all_failures() + on.mean.survived) / over.mean.all_failures(), 1, 0.06);
  const double trained = run.length - on.mean.restarting;
  EXPECT_NEAR(on.mean.slowed / (trained / run.between_lost_planes * run.repair * run.slowed_share), 1, 0.05);
  EXPECT_GT(on.mean_share, over.mean_share);
}

// A switch that takes a day to repair slows the steps after later failures too: at any time one is broken with the
// probability 1 - exp(-repair / between).
TEST(RunLength, SwitchesStayBrokenOverFailures) {
  LongRun run;
  run.length = 200 * 86400.0;
  run.interval = 600;
  run.between_failures = 3 * 3600.0;
  run.restart = 60;
  run.between_lost_planes = 33 * 3600.0;
  run.slowed_share = 0.1;
  run.repair = 24 * 3600.0;
  const RunQuantiles q = play_often(run, 1, 100);
  const double trained = run.length - q.mean.restarting - q.mean.waiting;
  EXPECT_NEAR(q.mean.slowed / (trained * 0.1 * (1 - std::exp(-24 / 33.0))), 1, 0.03);
}

TEST(RunLength, IsPrintedForPeopleAndPrograms) {
  const Spec spec = parse_spec(
      "model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 4}\nstrategy: {data: 32}\n", "run.yaml");
  const Report report = predict(spec).report;
  const LongRun run = long_run(spec, report, 54);
  const RunQuantiles q = play_often(run, 1, 100);
  EXPECT_NE(run_length_text(spec, report, run, q, 100).find("useful time"), std::string::npos);
  EXPECT_NE(run_length_json(report, run, q, 100).find("orrery.run_length/1"), std::string::npos);
  EXPECT_NE(run_length_json(report, run, q, 100).find("switches_survived"), std::string::npos);
}

// A fault that makes steps twice as long for 1,000 s costs 500 s; one that ends the job costs what came after the last
// checkpoint, the restart, and the wait.
TEST(RunLength, FaultsAtGivenTimesArePlayed) {
  LongRun run = {.length = 10'000, .interval = 400, .restart = 300, .spares = 0};
  run.faults = {{.from = 2000, .until = 3000, .lost = .5}};
  const RunTimes slow = play(run, 1, 0);
  EXPECT_NEAR(slow.slowed, 500, 1e-6);
  EXPECT_NEAR(slow.training, 9500, 1e-6);
  run.faults = {{.from = 2100, .until = 2500, .lost = 1, .ends = true}};
  const RunTimes ended = play(run, 1, 0);
  EXPECT_EQ(ended.faults, 1);
  EXPECT_NEAR(ended.undone, 100, 1e-6);
  EXPECT_NEAR(ended.waiting, 400, 1e-6);
  EXPECT_NEAR(ended.restarting, 300, 1e-6);
  EXPECT_NEAR(ended.training, 10'000 - 800, 1e-6);
}

// A fault that begins while the job is down for another one holds up its restart until it is over.
TEST(RunLength, FaultsThatOverlapAreAllWaitedFor) {
  LongRun run = {.length = 10'000, .interval = 400, .restart = 300, .spares = 0};
  run.faults = {{.from = 2100, .until = 2500, .lost = 1, .ends = true},
                {.from = 2200, .until = 6000, .lost = 1, .ends = true}};
  const RunTimes ended = play(run, 1, 0);
  EXPECT_NEAR(ended.waiting + ended.restarting, 6000 - 2100, 1e-6);
  EXPECT_NEAR(ended.training, 10'000 - 3900 - 100, 1e-6);
}

}  // namespace
}  // namespace orrery
