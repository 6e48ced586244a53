// Offloading: volumes and memory in closed form, and the order of transfers.
#include <numeric>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using namespace test;

// Bytes that one rank of the plan's first class copies from one memory tier to another in a step.
Bytes copied(const Plan& plan, MemoryTier from, MemoryTier to) {
  Bytes sum = 0;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const auto* c = std::get_if<PlaceCopy>(&plan.op_of(t).work);
    if (c != nullptr && c->from == from && c->to == to) sum += c->bytes;
  }
  return sum;
}

// Bytes of the states in one place, by category; buffers that they pass through are left out.
Bytes states_at(const Plan& plan, MemoryTier place, Category category) {
  Bytes sum = 0;
  for (const Frame& f : plan.frames) {
    if (f.slot != 0 || plan.blocks[f.block].role != BlockRole::state) continue;
    for (const BlockBuffer& s : plan.blocks[f.block].buffers)
      sum += s.home == place && s.category == category ? s.bytes : 0;
  }
  return sum;
}

std::int64_t weights(const Spec& spec) { return local_parameters(spec, 0).front(); }

const std::string kHalf = "precision: bf16, gradient_precision: bf16, ";

Plan plan_of(const std::string& strategy) { return make_plan(spec_of(kSmall, strategy)); }

// ZeRO-Offload (2101.06840, section 4): 2 bytes a parameter stay on the device; master, moments and gradients are the
// host's: 12 bytes, and 4 or 2.
TEST(Offload, KeepsTwoBytesAParameterOnTheDevice) {
  for (const auto& [gradients, on_host] : {std::pair("fp32", 16), std::pair("bf16", 14)}) {
    const Spec spec = spec_of(
        kSmall,
        fmt::format("precision: bf16, gradient_precision: {}, offload: {{optimizer: cpu, gradients: cpu}}", gradients));
    const Plan plan = make_plan(spec);
    const std::int64_t n = weights(spec);
    EXPECT_EQ(states_at(plan, MemoryTier::device, Category::parameters), 2 * n);
    EXPECT_EQ(states_at(plan, MemoryTier::device, Category::gradients), 0);
    EXPECT_EQ(states_at(plan, MemoryTier::device, Category::optimizer), 0);
    EXPECT_EQ(
        states_at(plan, MemoryTier::host, Category::optimizer) + states_at(plan, MemoryTier::host, Category::gradients),
        on_host * n);
  }
}

// Gradients are offloaded once per micro-batch and uploaded to be added to; parameters are uploaded once per step: each
// rank's shards.
TEST(Offload, MovesEachRanksShards) {
  for (const std::int64_t ranks : {1, 4}) {
    for (const std::int64_t m : {1, 3}) {
      const Spec spec = spec_of(
          kSmall, fmt::format("{}data: {}, sharding: zero2, global_batch: {}, offload: {{optimizer: cpu, gradients: "
                              "cpu}}",
                              kHalf, ranks, ranks * m));
      const Plan plan = make_plan(spec);
      const std::int64_t shard = weights(spec) / ranks;
      EXPECT_EQ(copied(plan, MemoryTier::device, MemoryTier::host), m * shard * 2) << ranks << " ranks, " << m;
      EXPECT_EQ(copied(plan, MemoryTier::host, MemoryTier::device), (m - 1) * shard * 2 + shard * 2)
          << ranks << " ranks, " << m;
    }
  }
}

// Gradients that are summed on the device are offloaded once.
TEST(Offload, SumsOnTheDeviceWhereGradientsStay) {
  for (const char* sharding : {"zero1", "zero2", "zero3"}) {
    const Spec spec = spec_of(
        kSmall, fmt::format("{}data: 2, sharding: {}, global_batch: 8, offload: {{optimizer: cpu}}", kHalf, sharding));
    const Plan plan = make_plan(spec);
    EXPECT_EQ(copied(plan, MemoryTier::device, MemoryTier::host), weights(spec) / 2 * 2) << sharding;
    EXPECT_EQ(copied(plan, MemoryTier::host, MemoryTier::device), weights(spec) / 2 * 2) << sharding;
  }
}

// ZeRO-Infinity (2104.07857, section 4): every pass loads a rank's part of the parameters; an optimizer on disks is
// read and written once, 12 bytes a parameter each way, with gradients read and parameters written beside.
TEST(Offload, LoadsEachRanksPartOfTheParameters) {
  const std::int64_t ranks = 4, m = 2;
  const Spec spec =
      spec_of(kSmall, fmt::format("{}data: {}, sharding: zero3, global_batch: {}, recompute: full, offload: "
                                  "{{optimizer: nvme, gradients: nvme, parameters: nvme}}",
                                  kHalf, ranks, ranks * m));
  const Plan plan = make_plan(spec);
  const std::int64_t shard = weights(spec) / ranks;
  const Bytes loaded = 2 * m * shard * 2;  // loaded in forward and in backward
  EXPECT_EQ(copied(plan, MemoryTier::host, MemoryTier::device), loaded + (m - 1) * shard * 2);
  EXPECT_EQ(copied(plan, MemoryTier::device, MemoryTier::host), m * shard * 2);
  EXPECT_EQ(copied(plan, MemoryTier::nvme, MemoryTier::host), loaded + (m - 1) * shard * 2 + (12 + 2) * shard);
  EXPECT_EQ(copied(plan, MemoryTier::host, MemoryTier::nvme), m * shard * 2 + (12 + 2) * shard);
  for (const Category c : {Category::parameters, Category::gradients, Category::optimizer}) {
    EXPECT_EQ(states_at(plan, MemoryTier::device, c), 0);
    EXPECT_EQ(states_at(plan, MemoryTier::host, c), 0);
  }
  EXPECT_EQ(states_at(plan, MemoryTier::nvme, Category::optimizer), 12 * shard);
}

// Flops of a micro-batch by bytes moved for parameters and gradients: about s·b (2104.07857, equations 9 to 11, with
// parameters loaded for recomputation by themselves, 8 bytes a parameter; here backward's serve both: 6).
TEST(Offload, HasThePublishedArithmeticIntensity) {
  const std::string model =
      "name: wide, layers: 4, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 256, gated: false";
  const std::int64_t sequence = 128, batch = 2;
  const Spec spec = spec_of(model,
                            kHalf +
                                "micro_batch: 2, global_batch: 2, sharding: zero3, recompute: full, offload: "
                                "{optimizer: nvme, gradients: cpu, parameters: cpu}",
                            sequence);
  const Plan plan = make_plan(spec);
  double flops = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    if (plan.op_of(t).lane == LaneKind::compute) flops += cost_of(plan.op_of(t).work, 2).flops;
  }
  const double moved = static_cast<double>(copied(plan, MemoryTier::host, MemoryTier::device) +
                                           copied(plan, MemoryTier::device, MemoryTier::host));
  EXPECT_NEAR(flops / moved / static_cast<double>(sequence * batch), 8.0 / 6, 0.04);
  const double swapped = static_cast<double>(copied(plan, MemoryTier::nvme, MemoryTier::host) +
                                             copied(plan, MemoryTier::host, MemoryTier::nvme));
  EXPECT_NEAR(flops / swapped / static_cast<double>(sequence * batch), 8.0 / 24, 0.01);
}

// Gradients have arrived on the host before an update reads them, and weights are updated before they are uploaded: on
// any order of lanes.
TEST(Offload, UpdatesAfterGradientsHaveArrived) {
  const Plan plan = plan_of(kHalf +
                            "data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, tile: "
                            "10000}, gradients: cpu}");
  TaskId last_down = kNone, update = kNone;
  int tiles = 0;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const Op& op = plan.op_of(t);
    if (op.lane == LaneKind::d2h) last_down = t;
    const auto needs = plan.dependencies_of(t);
    const auto waits_for = [&](TaskId b) { return std::find(needs.begin(), needs.end(), b) != needs.end(); };
    if (std::holds_alternative<Update>(op.work)) {
      EXPECT_EQ(op.lane, LaneKind::cpu);
      if (update == kNone) {
        EXPECT_TRUE(waits_for(last_down));
      }
      update = t;
      ++tiles;
    }
    if (op.name == "parameters up") {
      EXPECT_TRUE(waits_for(update));
    }
  }
  EXPECT_EQ(tiles, ceil_div(weights(spec_of(kSmall, "clip: 1")) / 2, 10000));
}

// A delayed update is the first task of a step on the host, and needs nothing of that step.
TEST(Offload, DelayedUpdateRunsBesideTheStep) {
  const Plan plan = plan_of(kHalf +
                            "global_batch: 2, offload: {optimizer: {device: cpu, delayed_update: true}, "
                            "gradients: cpu}");
  const auto begin = plan.classes[0].begin;
  EXPECT_TRUE(std::holds_alternative<Update>(plan.op_of(begin).work));
  EXPECT_TRUE(plan.dependencies_of(begin).empty());
  EXPECT_TRUE(std::holds_alternative<Exchange>(plan.op_of(plan.classes[0].end - 1).work));
}

// Stored activations are offloaded and prefetched once per micro-batch; if only the inputs of recomputed layers are
// stored, those are.
TEST(Offload, MovesStoredActivationsOnce) {
  const Spec spec =
      spec_of(kSmall, kHalf + "micro_batch: 2, global_batch: 6, recompute: full, offload: {activations: cpu}");
  const Plan plan = make_plan(spec);
  const Bytes input = 2 * 32 * 64 * 2;  // b s h bytes
  EXPECT_EQ(copied(plan, MemoryTier::device, MemoryTier::host), 3 * 8 * input);
  EXPECT_EQ(copied(plan, MemoryTier::host, MemoryTier::device), 3 * 8 * input);
  const Plan some = plan_of(kHalf +
                            "micro_batch: 2, global_batch: 6, recompute: full, offload: {activations: {device: "
                            "cpu, layers: 3}}");
  EXPECT_EQ(copied(some, MemoryTier::device, MemoryTier::host), 3 * 3 * input);
}

// ZeRO-R Pa (1910.02054, section 6.1): a rank keeps 2sbh/t bytes of a recomputed layer, and gathers them once.
TEST(Offload, CutsCheckpointsOverTheTensorGroup) {
  const Spec spec = spec_of(kSmall, kHalf +
                                        "tensor: 4, sequence_parallel: false, global_batch: 2, recompute: full, "
                                        "partition_activations: true");
  const Plan plan = make_plan(spec);
  const Bytes input = 32 * 64 * 2;
  EXPECT_EQ(copied(plan, MemoryTier::device, MemoryTier::device), 2 * 8 * input / 4);
  EXPECT_EQ(elements_moved(plan, 0, Dimension::tensor, CollectiveKind::all_gather), 2 * 8 * input / 2);
}

// Activations on disks pass through the host in both directions, and none of them stay there.
TEST(Offload, MovesStoredActivationsThroughTheHost) {
  const Plan plan = plan_of(kHalf + "micro_batch: 2, global_batch: 6, recompute: full, offload: {activations: nvme}");
  const Bytes moved = 3 * 8 * (2 * 32 * 64 * 2);  // micro-batches, layers, b s h bytes
  for (const auto& [from, to] :
       {std::pair(MemoryTier::device, MemoryTier::host), std::pair(MemoryTier::host, MemoryTier::nvme),
        std::pair(MemoryTier::nvme, MemoryTier::host), std::pair(MemoryTier::host, MemoryTier::device)})
    EXPECT_EQ(copied(plan, from, to), moved);
  for (const Op& op : plan.ops) {
    if (op.name != "activations to disk") continue;
    ASSERT_EQ(op.frees.size(), 1U);
    EXPECT_EQ(op.frees.front().slot, op.operands.front().slot);
  }
}

// Most bytes of gathered weights, and of units' gradients, at one time in the order of issue.
std::pair<Bytes, Bytes> working_memory(const Plan& plan) {
  std::map<std::uint32_t, Bytes> held;
  Bytes now[2] = {0, 0}, most[2] = {0, 0};
  const auto change = [&](TaskId t, const Operand& o, bool takes) {
    if (o.scope != Scope::unit || (o.slot != kGathered && o.slot != kUnitGradient)) return;
    const Frame& f = plan.frames[frame_of(plan, plan.tasks[t].frame, o)];
    const int kind = o.slot == kGathered ? 0 : 1;
    Bytes& is = held[f.first_buffer + o.slot];
    now[kind] -= is;
    is = takes ? plan.blocks[f.block].buffers[o.slot].bytes : 0;
    now[kind] += is;
    most[kind] = std::max(most[kind], now[kind]);
  };
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    for (const Operand& o : plan.op_of(t).allocates) change(t, o, true);
    for (const Operand& o : plan.op_of(t).frees) change(t, o, false);
  }
  return {most[0], most[1]};
}

// Memory-centric tiling (2104.07857, section 5.1.3): working memory shrinks with the number of tiles; what is computed
// and gathered is the same, a recomputed layer's weights once more.
TEST(Offload, TilesShrinkWorkingMemory) {
  const std::string model =
      "name: wide, layers: 4, hidden: 256, heads: 4, feed_forward: 1024, vocab: 256, gated: false";
  const auto of = [&](int tiles, const char* recompute) {
    return make_plan(spec_of(model, fmt::format("{}data: 4, sharding: zero3, global_batch: 4, prefetch_units: 0, "
                                                "recompute: {}, offload: {{tiling: {}}}",
                                                kHalf, recompute, tiles)));
  };
  const Plan whole = of(1, "none"), tiled = of(16, "none");
  const Bytes layer = 12 * 256 * 256 * 2, tile = 4 * 256 * 256 / 16 * 2, norms = 2 * 256 * 2;
  const auto [gathered, gradients] = working_memory(tiled);
  EXPECT_GE(working_memory(whole).first, layer);
  EXPECT_LE(gathered, 256 * 256 * 2 + tile + 2 * norms);  // the embedding, or a tile of the widest products
  EXPECT_LE(gradients, 256 * 256 * 2 + tile + 2 * norms);
  const auto flops = [](const Plan& plan) {
    double sum = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const auto* g = std::get_if<Gemm>(&plan.op_of(t).work);
      sum += g != nullptr ? cost_of(*g, 2).flops : 0;
    }
    return sum;
  };
  EXPECT_EQ(flops(whole), flops(tiled));
  const auto moved = [](const Plan& plan, CollectiveKind kind) {
    return elements_moved(plan, 0, Dimension::data, kind);
  };
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
    EXPECT_EQ(moved(whole, kind), moved(tiled, kind));
  const std::int64_t matrices = 4 * 12 * 256 * 256;
  EXPECT_EQ(moved(of(16, "full"), CollectiveKind::all_gather) - moved(of(1, "full"), CollectiveKind::all_gather),
            matrices);
}

// Every tile has a unit of its own behind the unit of its layer, however many kinds of layers and stages there are.
TEST(Offload, EveryTileHasAUnit) {
  for (const char* strategy :
       {"data: 2, recompute: full, recompute_layers: 1", "data: 2, tensor: 2, pipeline: 4, global_batch: 8",
        "data: 4, pipeline: 2, virtual_stages: 2, global_batch: 8"}) {
    const Plan plan = make_plan(spec_of(std::string(kSmall) + ", sliding_window: {window: 8, every: 3}, bias: true",
                                        fmt::format("sharding: zero3, offload: {{tiling: 4}}, {}", strategy)));
    for (const Frame& f : plan.frames) {
      const auto& parameters = plan.blocks[f.block].parameters;
      if (parameters.empty()) continue;
      std::uint32_t unit = f.unit;
      for (const LocalParameter& p : parameters) {
        if (p.tile == 0) continue;
        unit = plan.frames[unit].next;
        ASSERT_NE(unit, kNone) << strategy;
        EXPECT_EQ(plan.frames[unit].base, f.base + p.offset);
        EXPECT_EQ(plan.blocks[plan.frames[unit].block].buffers[kUnitGradient].bytes, p.out * p.in * plan.element_bytes);
      }
      EXPECT_EQ(plan.frames[unit].next, kNone);
    }
  }
}

TEST(Offload, RefusesWhatIsNotBuilt) {
  const std::pair<const char*, const char*> cases[] = {
      {"offload: {tiling: 5}", "5 does not divide"},
      {"data: 2, sharding: zero2, fused_buffers: true", "strategy.fused_buffers"},
      {"contiguous_activations: true", "recompute: full"},
      {"recompute: full, contiguous_activations: true, offload: {activations: cpu}", "offload.activations: none"},
      {"data: 2, sharding: fsdp, offload: {optimizer: nvme}", "for the host alone; choose zero3"},
      {"data: 2, offload: {optimizer: cpu}", "every rank would update everything; choose zero2"},
      {"offload: {gradients: cpu}", "set offload.optimizer: cpu or nvme"},
      {"data: 2, sharding: zero2, offload: {optimizer: cpu, parameters: cpu}",
       "nothing gathers them before use; choose zero3 or fsdp"},
      {"offload: {optimizer: {device: nvme, delayed_update: true}}", "delayed_update"},
      {"partition_activations: true", "recompute: full"}};
  for (const auto& [strategy, line] : cases) {
    try {
      plan_of(strategy);
      ADD_FAILURE() << strategy;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(line), std::string::npos) << strategy << ": " << e.what();
    }
  }
}

// A GPU whose link is unknown is refused: the link is not assumed to be infinitely fast or slow.
TEST(Offload, NeedsAKnownLink) {
  for (const char* offload : {"optimizer: cpu", "activations: cpu"}) {
    const std::string text = fmt::format(
        "model: {{{}}}\nsequence: 64\ngpus: 1\ncluster: {{gpu: tpu-v4, gpus_per_node: 4, host: {{dram_GiB: 512, "
        "dram_GBps: 400}}}}\nstrategy: {{offload: {{{}}}}}\n",
        kSmall, offload);
    try {
      parse_spec(text, "spec.yaml");
      ADD_FAILURE() << offload;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("spec.yaml:5: offload: tpu-v4 has no known link"), std::string::npos)
          << e.what();
    }
  }
}

// FSDP's CPUOffload: each rank's fp32 shard is uploaded, cast on the device and gathered; the shard itself is the
// master weights.
TEST(Offload, CastsFullShardsOnTheDevice) {
  const Spec spec = spec_of(kSmall, kHalf +
                                        "data: 4, sharding: fsdp, global_batch: 4, offload: {optimizer: cpu, "
                                        "gradients: cpu, parameters: cpu}");
  const Plan plan = make_plan(spec);
  const auto units = static_cast<double>(spec.model.layers + 3), n = static_cast<double>(weights(spec)) / 4;
  const auto real = [](Bytes bytes) { return static_cast<double>(bytes); };
  EXPECT_NEAR(real(copied(plan, MemoryTier::host, MemoryTier::device)), 2 * 4 * n,
              2 * 4 * units);  // a shard is rounded up
  EXPECT_NEAR(real(copied(plan, MemoryTier::device, MemoryTier::host)), 2 * n, 2 * units);
  EXPECT_NEAR(real(states_at(plan, MemoryTier::host, Category::parameters)), 4 * n, 4 * units);
  EXPECT_NEAR(real(states_at(plan, MemoryTier::host, Category::optimizer)), 8 * n, 8 * units);
  for (const Category c : {Category::parameters, Category::gradients, Category::optimizer})
    EXPECT_EQ(states_at(plan, MemoryTier::device, c), 0);
}

// fp16: the scale of the next loss follows from the norm, so the host's update does not delay the loss.
TEST(Offload, DelayedUpdateOfFp16HoldsUpNoLoss) {
  const Plan plan = plan_of(
      "precision: fp16, gradient_precision: fp16, global_batch: 2, offload: {optimizer: {device: cpu, delayed_update: "
      "true}}");
  std::vector<bool> late(plan.tasks.size(), false);  // tasks that depend on a task of the host
  TaskId last_compute = kNone;
  int losses = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (op.phase == Phase::step && losses > 0) break;
    late[t] = op.lane == LaneKind::cpu;
    for (const TaskId before : plan.dependencies_of(t)) late[t] = late[t] || late[before];
    if (op.lane != LaneKind::compute) continue;
    late[t] = late[t] || (last_compute != kNone && late[last_compute]);
    last_compute = t;
    if (op.name != "loss gradient") continue;
    ++losses;
    EXPECT_FALSE(late[t]);
  }
  EXPECT_EQ(losses, 2);
}

// fp16: infinities found in one chunk are still known after the next chunk.
TEST(Offload, EveryChunksInfinitiesCount) {
  const Plan plan = plan_of(
      "precision: fp16, gradient_precision: fp16, pipeline: 2, virtual_stages: 2, clip: 0, global_batch: 4, offload: "
      "{optimizer: cpu}");
  std::vector<Access> found;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    if (plan.op_of(t).name != "clip gradients") continue;
    for (const Operand& o : plan.op_of(t).operands) {
      if (o.scope == Scope::rank && o.slot == kFoundInfinity) found.push_back(o.access);
    }
  }
  EXPECT_EQ(found, (std::vector{Access::write, Access::read_write}));
}

TEST(Offload, AStageMayHaveNoWeights) {
  const Plan plan = make_plan(
      test::spec_of(test::kSmall, "pipeline: 3, stage_layers: [4, 0, 4], offload: {optimizer: cpu}, global_batch: 3"));
  EXPECT_EQ(plan.classes.size(), 3U);
}

}  // namespace
}  // namespace orrery
