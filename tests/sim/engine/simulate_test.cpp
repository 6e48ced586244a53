#include "sim/engine/simulate.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"
#include "tests/sim/layers_alone.h"
#include "tests/sim/small_plans.h"
#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

TEST(Simulate, LaneRunsInOrderAndTasksWaitForWhatTheyNeed) {
  TinyPlan p;
  const auto a = p.op("a", LaneKind::compute, {.duration = 10});
  const auto b = p.op("b", LaneKind::compute, {.duration = 5});
  const auto copy = p.op("copy", LaneKind::tensor, {.duration = 7});
  p.slot(0);
  const TaskId first = p.task(a);
  const TaskId moved = p.task(copy, {first});
  p.task(b);
  p.task(b, {moved});
  p.finish();
  EXPECT_EQ(timeline(p.plan(), p.run()),
            "slot 0 compute          a      issued   0 entered   0 matched   0 ended  10\n"
            "slot 0 tensor           copy   issued   0 entered  10 matched  10 ended  17\n"
            "slot 0 compute          b      issued   0 entered  10 matched  10 ended  15\n"
            "slot 0 compute          b      issued   0 entered  17 matched  17 ended  22\n");
}

TEST(Simulate, TransferStartsWhenItsLastEndHasEntered) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 30});
  const auto send = p.op("send", LaneKind::send_next, {.duration = 4});
  const auto receive = p.op("recv", LaneKind::receive_previous, {.duration = 4});
  p.slot(0);
  const TaskId out = p.task(send, {p.task(work)});
  p.slot(1);
  const TaskId in = p.task(receive);
  p.task(work, {in});
  p.match({out, in});
  p.finish();
  EXPECT_EQ(timeline(p.plan(), p.run()),
            "slot 0 compute          work   issued   0 entered   0 matched   0 ended  30\n"
            "slot 0 send next        send   issued   0 entered  30 matched  30 ended  34\n"
            "slot 1 receive previous recv   issued   0 entered   0 matched  30 ended  34\n"
            "slot 1 compute          work   issued   0 entered  34 matched  34 ended  64\n");
}

// The simulation stops long before a plan with that many tasks would be done.
TEST(Simulate, EndsWhenTheUserStopsIt) {
  TinyPlan p;
  const auto a = p.op("a", LaneKind::compute, {.duration = 10});
  p.slot(0);
  for (int i = 0; i < 100'000; ++i) p.task(a);
  p.finish();
  std::atomic<bool> stop = false;
  EXPECT_EQ(simulate(p.plan(), p.timing(), &stop).step_time, 1'000'000);
  stop = true;
  EXPECT_THROW(simulate(p.plan(), p.timing(), &stop), Stopped);
}

// A small case computed by hand: two stages, two micro-batches, 1F1B: F 10, B 20, a transfer 3.
TEST(Simulate, GoldenOneFOneB) {
  TinyPlan p;
  const auto f = p.op("F", LaneKind::compute, {.duration = 10});
  const auto b = p.op("B", LaneKind::compute, {.duration = 20});
  const auto sa = p.op("send F", LaneKind::send_next, {.duration = 3});
  const auto ra = p.op("recv F", LaneKind::receive_previous, {.duration = 3});
  const auto sg = p.op("send B", LaneKind::send_previous, {.duration = 3});
  const auto rg = p.op("recv B", LaneKind::receive_next, {.duration = 3});
  p.slot(0);
  const TaskId s0 = p.task(sa, {p.task(f)});
  const TaskId s1 = p.task(sa, {p.task(f)});
  const TaskId g0 = p.task(rg);
  p.task(b, {g0});
  const TaskId g1 = p.task(rg);
  p.task(b, {g1});
  p.slot(1);
  const TaskId r0 = p.task(ra);
  p.task(f, {r0});
  const TaskId t0 = p.task(sg, {p.task(b)});
  const TaskId r1 = p.task(ra);
  p.task(f, {r1});
  const TaskId t1 = p.task(sg, {p.task(b)});
  p.match({s0, r0});
  p.match({s1, r1});
  p.match({t0, g0});
  p.match({t1, g1});
  p.finish();
  EXPECT_EQ(timeline(p.plan(), p.run()),
            "slot 0 compute          F      issued   0 entered   0 matched   0 ended  10\n"
            "slot 0 send next        send F issued   0 entered  10 matched  10 ended  13\n"
            "slot 0 compute          F      issued   0 entered  10 matched  10 ended  20\n"
            "slot 0 send next        send F issued   0 entered  20 matched  20 ended  23\n"
            "slot 0 receive next     recv B issued   0 entered   0 matched  43 ended  46\n"
            "slot 0 compute          B      issued   0 entered  46 matched  46 ended  66\n"
            "slot 0 receive next     recv B issued   0 entered  46 matched  73 ended  76\n"
            "slot 0 compute          B      issued   0 entered  76 matched  76 ended  96\n"
            "slot 1 receive previous recv F issued   0 entered   0 matched  10 ended  13\n"
            "slot 1 compute          F      issued   0 entered  13 matched  13 ended  23\n"
            "slot 1 compute          B      issued   0 entered  23 matched  23 ended  43\n"
            "slot 1 send previous    send B issued   0 entered  43 matched  43 ended  46\n"
            "slot 1 receive previous recv F issued   0 entered  13 matched  20 ended  23\n"
            "slot 1 compute          F      issued   0 entered  43 matched  43 ended  53\n"
            "slot 1 compute          B      issued   0 entered  53 matched  53 ended  73\n"
            "slot 1 send previous    send B issued   0 entered  73 matched  73 ended  76\n");
}

TEST(Simulate, HostIssuesOneTaskAfterAnother) {
  TinyPlan p;
  const auto a = p.op("a", LaneKind::compute, {.duration = 2, .issue = 5});
  p.slot(0);
  for (int i = 0; i < 3; ++i) p.task(a);
  p.finish();
  EXPECT_EQ(timeline(p.plan(), p.run()),
            "slot 0 compute          a      issued   5 entered   5 matched   5 ended   7\n"
            "slot 0 compute          a      issued  10 entered  10 matched  10 ended  12\n"
            "slot 0 compute          a      issued  15 entered  15 matched  15 ended  17\n");
}

// The host stops before the gather until the work it depends on is done, and issues nothing else meanwhile.
TEST(Simulate, HostWaits) {
  TinyPlan p;
  const auto a = p.op("a", LaneKind::compute, {.duration = 20, .issue = 1});
  const auto gather = p.op("gather", LaneKind::data_gather, {.duration = 4, .issue = 1});
  const auto b = p.op("b", LaneKind::compute, {.duration = 3, .issue = 1});
  p.change(gather).host_waits = true;
  p.slot(0);
  const TaskId first = p.task(a);
  p.task(gather, {first});
  p.task(b);
  p.finish();
  const Trace trace = p.run();
  EXPECT_EQ(timeline(p.plan(), trace),
            "slot 0 compute          a      issued   1 entered   1 matched   1 ended  21\n"
            "slot 0 data gather      gather issued  22 entered  22 matched  22 ended  26\n"
            "slot 0 compute          b      issued  23 entered  23 matched  23 ended  26\n");
  ASSERT_EQ(trace.host[0].size(), 2U);
  EXPECT_EQ(trace.host[0][1].time, 21);
  EXPECT_EQ(trace.host[0][1].cause, first);
}

// A host that comes to its wait after the event goes on at once.
TEST(Simulate, HostComesLateToItsWait) {
  TinyPlan p;
  const auto a = p.op("a", LaneKind::compute, {.duration = 2, .issue = 1});
  const auto b = p.op("b", LaneKind::compute, {.duration = 1, .issue = 10});
  const auto wait = p.op("wait", LaneKind::compute, {.duration = 1, .issue = 1});
  p.change(wait).host_waits = true;
  p.slot(0);
  const TaskId first = p.task(a);
  p.task(b);
  p.task(wait, {first});
  p.finish();
  const Trace trace = p.run();
  EXPECT_EQ(trace.host[0][1].time, 11);
  EXPECT_EQ(trace.spans[2].issued, 12);
  EXPECT_EQ(trace.step_time, 13);
}

// Tasks far apart in a lane, awaited in any order, by lanes and a host at once.
TEST(Simulate, ManyWaitForTasksOfOneLane) {
  TinyPlan p;
  const auto a = p.op("a", LaneKind::compute, {.duration = 10});
  const auto first = p.op("first", LaneKind::data_reduce, {.duration = 1});
  const auto second = p.op("second", LaneKind::data_gather, {.duration = 1});
  const auto both = p.op("both", LaneKind::tensor, {.duration = 1});
  const auto held = p.op("held", LaneKind::h2d, {.duration = 1});
  p.change(held).host_waits = true;
  p.slot(0);
  const TaskId one = p.task(a);
  const TaskId two = p.task(a);
  const TaskId three = p.task(a);
  p.task(second, {three});
  p.task(first, {two});
  p.task(both, {three, one});
  p.task(held, {one, two});
  p.task(first, {one});
  p.finish();
  const Trace trace = p.run();
  const std::vector<TaskId> causes = {three, two, three, kNone, 4};
  const std::vector<Picoseconds> entered = {30, 20, 30, 20, 21};
  for (std::size_t i = 0; i < causes.size(); ++i) {
    EXPECT_EQ(trace.spans[3 + i].cause, causes[i]) << i;
    EXPECT_EQ(trace.spans[3 + i].entered, entered[i]) << i;
  }
  EXPECT_EQ(trace.host[0][1].time, 20);
  EXPECT_EQ(trace.host[0][1].cause, two);
}

// While a transfer takes half of the multiprocessors, compute takes twice as long: 10 alone, 10 of 40 under the
// transfer (20 ps of it), the rest alone.
TEST(Simulate, PressureSlowsComputeOfTheSameRankAlone) {
  TinyPlan p;
  const auto delay = p.op("delay", LaneKind::h2d, {.duration = 10});
  const auto work = p.op("work", LaneKind::compute, {.duration = 40});
  const auto move = p.op("move", LaneKind::tensor, {.duration = 20, .pressure = 65536});
  p.slot(0);
  const TaskId d = p.task(delay);
  p.task(work);
  p.task(move, {d});
  p.slot(1);
  p.task(work);
  p.finish();
  const Trace trace = p.run();
  EXPECT_EQ(trace.spans[1].ended, 50);  // 10 + 20 (10 of them useful) + 20
  EXPECT_EQ(trace.spans[2].ended, 30);
  EXPECT_EQ(trace.spans[3].ended, 40);
}

TEST(Simulate, PressuresAddUpAndHoldForComputeThatStartsUnderThem) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 30});
  const auto move = p.op("move", LaneKind::tensor, {.duration = 40, .pressure = 65536});
  const auto other = p.op("other", LaneKind::data_reduce, {.duration = 60, .pressure = 65536});
  p.slot(0);
  p.task(move);
  p.task(other);
  p.task(work);
  p.finish();
  // 40 ps at a third: 13.33 done; 20 ps at a half: 10 done; the rest 6.67 alone.
  const Trace trace = p.run();
  EXPECT_NEAR(static_cast<double>(trace.spans[2].ended), 40 + 20 + (30 - 40 / 3.0 - 10), 1.0);
}

// The rules of simulate.h, task by task, on plans folded and unfolded: a task enters at the latest of its issue, the
// ends of what it depends on and that of the task before it in its lane, which is its cause if it was not the issue.
void expect_rules(const Plan& plan, const Timing& timing) {
  const Trace trace = simulate(plan, timing);
  std::vector<TaskId> last(plan.classes.size() * kLanes, kNone);
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Span& span = trace.spans[t];
    Picoseconds needs = 0;
    const auto need = [&](TaskId before) { needs = std::max(needs, trace.spans[before].ended); };
    if (!waits_on_host(plan, t)) std::ranges::for_each(plan.dependencies_of(t), need);
    TaskId& previous = last[plan.tasks[t].lane];
    if (previous != kNone) need(previous);
    previous = t;
    ASSERT_EQ(span.issued, launch_start(plan, trace, t) + timing.of(plan.slot_of(t), plan.tasks[t].op).issue) << t;
    ASSERT_EQ(span.entered, std::max(span.issued, needs)) << t;
    ASSERT_EQ(span.cause == kNone ? 0 : trace.spans[span.cause].ended, needs) << t;
    const std::uint32_t match = plan.tasks[t].match;
    const TaskId late = match == kNone ? t : last_to_enter(plan, trace, match);
    const TaskId lead = match == kNone ? t : plan.members_of(match).front();
    ASSERT_EQ(span.matched, trace.spans[late].entered) << t;
    ASSERT_EQ(span.ended, span.matched + timing.of(plan.slot_of(lead), plan.tasks[lead].op).duration) << t;
  }
}

TEST(Simulate, KeepsItsRulesForEveryTask) {
  for (const std::string& strategy : small_strategies()) {
    SCOPED_TRACE(strategy);
    const Plan folded = small_plan(strategy);
    for (const Plan& plan : {folded, unfold(folded)}) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) expect_rules(plan, random_timing(plan, seed, seed * 10'000'000));
    }
  }
}

// A GPT of equal virtual stages whose layers alone take time.
Spec pipeline_spec(const std::string& schedule, std::int64_t p, std::int64_t m, std::int64_t v, std::int64_t layers) {
  return parse_spec(fmt::format(R"(
model: {{name: tiny, layers: {}, hidden: 64, heads: 4, feed_forward: 256, vocab: 512, gated: false}}
sequence: 32
cluster: {{gpu: h100-sxm, gpus_per_node: 8, nodes: {}}}
software: orrery
strategy: {{pipeline: {}, virtual_stages: {}, schedule: {}, data: 1, global_batch: {}, clip: 0}}
)",
                                layers * p * v, (p + 7) / 8, p, v, schedule, m),
                    "case");
}

// The bubble by its closed form: the naive order, GPipe, 1F1B, interleaved 1F1B, with times of a whole stage.
Picoseconds closed_form(const std::string& schedule, std::int64_t p, std::int64_t m, std::int64_t v, Picoseconds both) {
  if (schedule == "naive") return p * m * both;
  return m * both + (p - 1) * both / v;
}

TEST(Simulate, PipelinesTakeTheirClosedFormToThePicosecond) {
  std::mt19937_64 random(1);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  int cases = 0;
  for (int i = 0; i < 260; ++i) {
    const char* const schedules[] = {"naive", "gpipe", "1f1b", "dapple", "interleaved", "interleaved"};
    const std::string schedule = schedules[i % 6];
    const bool chunked = schedule == "interleaved";
    const std::int64_t p = draw(chunked ? 2 : 1, 6);
    const std::int64_t v = chunked ? draw(2, 4) : 1;
    const std::int64_t m = chunked ? p * draw(1, 2) : draw(1, 12);
    const std::int64_t layers = draw(1, 2);
    const Plan plan = make_plan(pipeline_spec(schedule, p, m, v, layers));
    for (int j = 0; j < 8; ++j, ++cases) {
      const Picoseconds f = draw(1, 1'000'000), b = draw(1, 3'000'000);
      const Trace trace = simulate(plan, layers_alone(plan, f, b));
      ASSERT_EQ(trace.step_time, closed_form(schedule, p, m, v, layers * v * (f + b)))
          << schedule << " p " << p << " m " << m << " v " << v << " layers " << layers << " f " << f << " b " << b;
    }
  }
  EXPECT_GE(cases, 2000);
}

// ZB-H1 (Qi et al. 2024): (p - 1)(T_F + T_B - 2 T_W), T_B the whole backward, for T_W <= min(T_F, T_B - T_W).
TEST(Simulate, ZeroBubbleTakesItsClosedFormToThePicosecond) {
  std::mt19937_64 random(2);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 40; ++i) {
    const std::int64_t p = draw(1, 6), m = p + draw(0, 9), layers = draw(1, 2);
    const Plan plan = make_plan(pipeline_spec("zb-h1", p, m, 1, layers));
    for (int j = 0; j < 8; ++j) {
      const Picoseconds f = draw(1, 1'000'000), b = draw(1, 2'000'000), w = draw(0, std::min(f, b));
      const Trace trace = simulate(plan, layers_alone(plan, f, b, w));
      ASSERT_EQ(trace.step_time, layers * (m * (f + b + w) + (p - 1) * (f + b - w)))
          << "p " << p << " m " << m << " layers " << layers << " f " << f << " b " << b << " w " << w;
    }
  }
}

// ZB-H2 without a barrier between steps, its updates validated in the next: max(0, (p - 1)(T_F + T_B - 3 T_W)) a period
// of the stage that is busy longest, whatever the norm's way there and back.
TEST(Simulate, ValidatedZeroBubbleTakesItsClosedFormToThePicosecond) {
  std::mt19937_64 random(4);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 30; ++i) {
    const std::int64_t p = draw(2, 6), m = 2 * p + draw(0, 6), layers = draw(1, 2);
    Spec spec = pipeline_spec("zb-h2", p, m, 1, layers);
    spec.strategy.clip = 1;
    spec.software.communication.post_update_validation = true;
    const Plan plan = make_plan(spec);
    for (int j = 0; j < 8; ++j) {
      const Picoseconds f = draw(1, 1'000'000), b = draw(1, 2'000'000), w = draw(0, std::min(f, b));
      const Trace trace = simulate(plan, layers_alone(plan, f, b, w));
      const Report report = make_report(spec, plan, trace, std::vector<TransferNote>(plan.ops.size()), {});
      const Picoseconds bubble = std::max<Picoseconds>(0, (p - 1) * (f + b - 2 * w));
      ASSERT_NEAR(report.step_time_s * 1e12, static_cast<double>(layers * (m * (f + b + w) + bubble)), 1e-3)
          << "p " << p << " m " << m << " layers " << layers << " f " << f << " b " << b << " w " << w;
    }
  }
}

// Without flushes no stage waits once the pipeline is filled: a step takes the time of its own work, and so did the
// step before.
TEST(Simulate, AsynchronousStepsHaveNoBubble) {
  std::mt19937_64 random(3);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 40; ++i) {
    const std::int64_t p = draw(1, 6), layers = draw(1, 2);
    const std::string schedule = i % 2 == 0 ? "pipedream" : "pipedream-2bw";
    const std::int64_t m = i % 2 == 0 ? draw(1, 9) : p + draw(0, 5);
    const Plan plan = make_plan(pipeline_spec(schedule, p, m, 1, layers));
    for (int j = 0; j < 4; ++j) {
      const Picoseconds f = draw(1, 1'000'000), b = draw(1, 3'000'000);
      const Trace trace = simulate(plan, layers_alone(plan, f, b));
      EXPECT_EQ(period_of(plan, trace).length(), layers * m * (f + b)) << schedule << " p " << p << " m " << m;
      EXPECT_EQ(period_of(plan, trace, plan.reported - 1).length(), layers * m * (f + b)) << schedule << " p " << p;
    }
  }
}

}  // namespace
}  // namespace orrery
