// Measures the speed of the simulation engine and of complete commands. The counter tasks/s is compared with the rate
// of a bare event queue in the same run (the hold model, see hold.h), which shows what simulating a task costs beyond
// queueing its event. The bare queue holds as many events as the engine does: two for each class of ranks, one for
// compute and one for a transfer. For each task of the plan, one event is taken from it and one inserted, at random
// times. The counter of_hold is the time of std::priority_queue over the engine's time; of_own_heap is the time of the
// engine's own heap over the engine's time. That heap removes the first event and inserts another in one operation.

#include <chrono>
#include <string>

#include <benchmark/benchmark.h>

#include "benchmarks/hold.h"
#include "models/load/load_spec.h"
#include "models/plan/hash.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "sim/engine/simulate.h"
#include "sim/predict/predict.h"
#include "sim/predict/server_clocks.h"
#include "sim/report/attribution.h"

namespace orrery {
namespace {

Spec example(const std::string& name, const std::vector<std::string>& overrides = {}) {
  return load_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/" + name + ".yaml", overrides);
}

struct Case {
  Spec spec;
  Profile profile;
  Plan plan;
  Costs costs;

  Case(const Spec& s, bool unfolded) : spec(s), profile(find_profile(s.cluster.gpu)), plan(make_plan(s)) {
    if (unfolded) plan = unfold(plan);
    costs = costs_of(plan, spec, profile);
  }
};

template <class T>
double bytes(const std::vector<T>& v) {
  return static_cast<double>(v.size() * sizeof(T));
}

// Reports two numbers of bytes per task. plan_bytes_per_task counts the plan: tasks, dependencies, matches (transfers)
// and the frames that hold operands. engine_bytes_per_task counts what the engine keeps (see sim/engine/simulate.cpp):
// the task's times, the next task in its lane, a bit for having ended, and for each transfer the number of members that
// have arrived.
void count_bytes(benchmark::State& state, const Plan& plan) {
  const double tasks = plan.task_count();
  state.counters["plan_bytes_per_task"] = (bytes(plan.tasks) + bytes(plan.dependencies) + bytes(plan.matches) +
                                           bytes(plan.match_members) + bytes(plan.frames)) /
                                          tasks;
  state.counters["engine_bytes_per_task"] = sizeof(Span) + sizeof(TaskId) + 1.0 / 8 +
                                            static_cast<double>(plan.matches.size() * sizeof(std::uint32_t)) / tasks;
}

void run_engine(benchmark::State& state, const Case& c) {
  double engine = 0, hold = 0, own = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(simulate(c.plan, c.costs.timing));
    engine += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.PauseTiming();
    // number of pending events: one for compute and one for a transfer, per class of ranks
    const std::size_t pending = 2 * c.plan.classes.size();
    hold += bench::hold_seconds<bench::StdQueue>(pending, c.plan.task_count());
    own += bench::hold_seconds<bench::ReplaceTop>(pending, c.plan.task_count());
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(c.plan.task_count()));
  state.counters["tasks"] = c.plan.task_count();
  state.counters["of_hold"] = hold / engine;
  state.counters["of_own_heap"] = own / engine;
  count_bytes(state, c.plan);
}

void engine_million(benchmark::State& state) {
  run_engine(state, Case(example("gpt-64-gpus", {"strategy.global_batch=128"}), true));
}
BENCHMARK(engine_million)->Unit(benchmark::kMillisecond);

void engine_64_unfolded(benchmark::State& state) { run_engine(state, Case(example("gpt-64-gpus"), true)); }
BENCHMARK(engine_64_unfolded)->Unit(benchmark::kMillisecond);

void engine_64_folded(benchmark::State& state) { run_engine(state, Case(example("gpt-64-gpus"), false)); }
BENCHMARK(engine_64_folded)->Unit(benchmark::kMillisecond);

// 256 workers of as many speeds whose transfers meet at the NIC of parameter servers, each in a step of its own.
void engine_servers(benchmark::State& state) {
  Spec spec = parse_spec(
      "model: {name: small, layers: 4, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 1000}\n"
      "sequence: 1024\n"
      "cluster: {gpu: h100-sxm, gpus_per_node: 8, nodes: 64, nics: 8, nic_Gbps: 400, fabric: infiniband, host: "
      "{dram_GiB: 1024, dram_GBps: 1000000}}\n"
      "software: {profile: orrery, cuda_graphs: true}\n"
      "strategy: {data: 256, micro_batch: 1, clip: 0, sharding: parameter-server, global_batch: 256, "
      "parameter_server: {servers: 4, colocated: false, mode: async}}\n",
      "servers");
  for (std::int64_t rank = 0; rank < 256; ++rank)
    spec.cluster.stragglers.push_back({rank, 1 + 0.5 * static_cast<double>(rank * 97 % 256) / 256});
  const Plan all = unfold(make_plan(spec));
  const ServerSteps steps = server_steps(all, spec, costs_of(all, spec, find_profile(spec.cluster.gpu)), 8);
  for (auto _ : state) benchmark::DoNotOptimize(simulate(steps.plan, steps.timing));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(steps.plan.task_count()));
}
BENCHMARK(engine_servers)->Unit(benchmark::kMillisecond);

const char* const kExamples[] = {"gpt-64-gpus", "gpt3-175b-512", "gpt3-175b-4096", "llama-3.1-405b"};

void command(benchmark::State& state) {
  state.SetLabel(kExamples[state.range(0)]);
  for (auto _ : state) benchmark::DoNotOptimize(to_json(predict(example(kExamples[state.range(0)])).report));
}
BENCHMARK(command)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);

// The following benchmarks measure the parts of a command's time, one part each; this one measures make_plan().
void part_make_plan(benchmark::State& state) {
  const Spec spec = example(kExamples[state.range(0)]);
  state.SetLabel(kExamples[state.range(0)]);
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(spec));
}
BENCHMARK(part_make_plan)->DenseRange(2, 3)->Unit(benchmark::kMillisecond);

void part_price(benchmark::State& state) {
  const Case c(example(kExamples[state.range(0)]), false);
  state.SetLabel(kExamples[state.range(0)]);
  for (auto _ : state) benchmark::DoNotOptimize(costs_of(c.plan, c.spec, c.profile));
}
BENCHMARK(part_price)->DenseRange(2, 3)->Unit(benchmark::kMillisecond);

void part_simulate(benchmark::State& state) {
  const Case c(example(kExamples[state.range(0)]), false);
  state.SetLabel(kExamples[state.range(0)]);
  for (auto _ : state) benchmark::DoNotOptimize(simulate(c.plan, c.costs.timing));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(c.plan.task_count()));
}
BENCHMARK(part_simulate)->DenseRange(2, 3)->Unit(benchmark::kMillisecond);

void part_attribute(benchmark::State& state) {
  const Case c(example(kExamples[state.range(0)]), false);
  const Trace trace = simulate(c.plan, c.costs.timing);
  state.SetLabel(kExamples[state.range(0)]);
  for (auto _ : state) benchmark::DoNotOptimize(attribute(c.plan, trace));
}
BENCHMARK(part_attribute)->DenseRange(2, 3)->Unit(benchmark::kMillisecond);

void part_memory(benchmark::State& state) {
  const Case c(example(kExamples[state.range(0)]), false);
  const Trace trace = simulate(c.plan, c.costs.timing);
  state.SetLabel(kExamples[state.range(0)]);
  for (auto _ : state)
    benchmark::DoNotOptimize(replay_memory(c.plan, trace, {.capacity = c.spec.cluster.gpu.memory_bytes}));
}
BENCHMARK(part_memory)->DenseRange(2, 3)->Unit(benchmark::kMillisecond);

void part_plan_hash(benchmark::State& state) {
  const Case c(example(kExamples[state.range(0)]), false);
  state.SetLabel(kExamples[state.range(0)]);
  for (auto _ : state) benchmark::DoNotOptimize(plan_hash(c.plan));
}
BENCHMARK(part_plan_hash)->DenseRange(2, 3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
