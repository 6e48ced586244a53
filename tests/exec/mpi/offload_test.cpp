// Offloading against one rank that keeps everything: optimizer, gradients and parameters on the host and on a disk,
// stored activations, and a delayed update against a delay made by hand.
#include <algorithm>

#include "kernels/cpu/elementwise.h"
#include "models/layers/blocks.h"
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

void expect_like(const Spec& spec, const Result& result, const Result& reference) {
  const Distance d = distance(spec, result, reference);
  EXPECT_LE(d.gradient, kLimit) << "gradient of " << d.of_gradient;
  EXPECT_LE(d.weight, kLimit) << "weight " << d.of_weight;
  EXPECT_LE(d.change, kChangeLimit) << "change of " << d.of_change;
  EXPECT_LE(d.loss, kLimit);
}

// Runs a spec on as many ranks as it asks for. Nothing on ranks other than the first.
std::optional<Result> run_case(const Spec& spec, const Changes& changes = {}) {
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return {};
  Result result = run(some, spec, changes);
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return {};
  return result;
}

class Offloaded : public testing::TestWithParam<Case> {};

TEST_P(Offloaded, AgreesWithOneRank) {
  const Spec spec = spec_of(GetParam());
  if (const auto result = run_case(spec)) expect_like(spec, *result, reference_of(spec));
}

// A tile of so many elements cuts weights and shards in two.
const Case kOffload[] = {
    {kLlama, "data: 1, global_batch: 3, offload: {optimizer: {device: cpu, tile: 5003}, gradients: cpu}"},
    {kLlama, "data: 1, global_batch: 2, offload: {optimizer: {device: cpu, tile: 70001}}", "sgd"},
    {kLlama,
     "data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, tile: 9001}, gradients: cpu}"},
    {kGpt, "data: 3, sharding: zero2, global_batch: 6, offload: {optimizer: {device: cpu, tile: 9001}}"},
    {kLlama, "data: 2, sharding: zero1, global_batch: 4, offload: {optimizer: {device: cpu, tile: 9001}}"},
    {kGpt,
     "data: 2, sharding: zero1, global_batch: 4, overlap: {gradient_reduce: false, parameter_gather: false}, offload: "
     "{optimizer: cpu}"},
    {kLlama, "pipeline: 2, data: 2, sharding: zero1, global_batch: 8, offload: {optimizer: cpu, gradients: cpu}"},
    {kLlama,
     "tensor: 2, sequence_parallel: false, data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: cpu, "
     "gradients: cpu}"},
    {kGpt, "data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: cpu, gradients: cpu}", "adamw",
     "deepspeed-megatron-2021"},
};

const Case kInfinity[] = {
    {kLlama, "data: 2, sharding: zero3, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, parameters: cpu}"},
    {kGpt, "data: 1, sharding: zero3, global_batch: 2, offload: {optimizer: cpu, parameters: cpu}"},
    {kLlama,
     "data: 2, sharding: zero3, global_batch: 4, offload: {optimizer: {device: nvme, tile: 9001}, gradients: cpu}"},
    {kLlama,
     "data: 2, sharding: zero3, global_batch: 4, prefetch_units: 2, units_in_flight: 4, offload: {optimizer: {device: "
     "nvme, tile: 9001}, gradients: nvme, parameters: nvme}"},
    {kGpt, "data: 3, sharding: zero3, global_batch: 6, offload: {optimizer: nvme, gradients: nvme, parameters: nvme}"},
    {kLlama,
     "data: 2, sharding: zero3, global_batch: 2, offload: {optimizer: {device: nvme, tile: 40000}, gradients: nvme, "
     "parameters: cpu}",
     "sgd"},
};

// Fully sharded fp32 shards (CPUOffload), and shards that have replicas.
const Case kFullShards[] = {
    {kLlama, "data: 2, sharding: fsdp, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, parameters: cpu}"},
    {kGpt, "data: 3, sharding: fsdp, global_batch: 6, offload: {optimizer: cpu, parameters: cpu}"},
    {kGpt, "data: 2, sharding: fsdp, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, parameters: cpu}",
     "adamw", "pytorch-fsdp"},
    {kLlama, "data: 1, sharding: fsdp, global_batch: 2, offload: {optimizer: cpu, gradients: cpu, parameters: cpu}"},
    {kGpt,
     "data: 2, sharding: fsdp-grad-op, global_batch: 4, recompute: full, offload: {optimizer: {device: cpu, tile: "
     "9001}, gradients: cpu, parameters: cpu}",
     "sgd"},
    {kLlama, "data: 2, sharding: fsdp, global_batch: 4, offload: {optimizer: {device: cpu, tile: 9001}}"},
    {kLlama, "data: 2, sharding: fsdp, global_batch: 4, offload: {optimizer: cpu, gradients: cpu}"},
    {kLlama,
     "data: 4, sharding: hsdp, shard_group: 2, global_batch: 8, offload: {optimizer: cpu, gradients: cpu, parameters: "
     "cpu}"},
    {kGpt, "data: 4, sharding: hsdp, shard_group: 2, global_batch: 4, offload: {optimizer: cpu}"},
    {kLlama,
     "data: 2, sharding: fsdp, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, parameters: cpu, tiling: "
     "4}"},
    {with_experts("tiny-mixtral", "experts: 8, top_k: 2, feed_forward: 48"),
     "data: 4, expert: 2, sharding: hsdp, shard_group: 2, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, "
     "parameters: cpu}"},
};

const Case kActivations[] = {
    {kLlama, "data: 2, global_batch: 4, offload: {activations: cpu}"},
    {kGpt, "data: 1, global_batch: 2, recompute: selective, attention: unfused, offload: {activations: cpu}"},
    {kLlama, "data: 1, global_batch: 2, recompute: full, offload: {activations: {device: cpu, layers: 2}}"},
    {kGpt, "pipeline: 2, data: 2, global_batch: 8, offload: {activations: cpu}"},
    {kLlama, "tensor: 2, pipeline: 2, data: 1, global_batch: 4, recompute: [norm], offload: {activations: cpu}"},
    {kLlama, "pipeline: 2, data: 1, schedule: zb-h1, global_batch: 4, offload: {activations: cpu}"},
    {kLlama, "pipeline: 4, data: 1, schedule: dualpipe, global_batch: 8, offload: {activations: cpu}"},
    {kGpt, "pipeline: 2, data: 2, schedule: v-half, global_batch: 8, offload: {activations: cpu}"},
    {kGpt, "pipeline: 2, data: 2, schedule: vocab-1f1b, global_batch: 8, offload: {activations: cpu}"},
    {kLlama,
     "data: 2, sharding: zero3, global_batch: 4, recompute: full, offload: {optimizer: cpu, gradients: cpu, "
     "parameters: cpu, activations: cpu}"},
    {kLlama,
     "tensor: 2, sequence_parallel: false, data: 2, global_batch: 4, recompute: full, partition_activations: true"},
    {kGpt,
     "tensor: 4, sequence_parallel: false, data: 1, global_batch: 2, recompute: full, partition_activations: true, "
     "offload: {activations: cpu}"},
};

const Case kOnDisk[] = {
    {kLlama, "data: 2, global_batch: 4, offload: {activations: nvme}"},
    {kGpt, "pipeline: 2, data: 2, global_batch: 8, offload: {activations: {device: nvme, layers: 1}}"},
    {kLlama,
     "data: 2, sharding: zero3, global_batch: 4, recompute: full, offload: {optimizer: nvme, gradients: nvme, "
     "parameters: nvme, activations: nvme}"},
};

// Linear layers in tiles, each gathered and reduced by itself.
const Case kTiles[] = {
    {kLlama, "data: 1, global_batch: 2, offload: {tiling: 4}"},
    {kGpt, "data: 2, sharding: zero1, global_batch: 4, offload: {tiling: 2}"},
    {kLlama, "data: 2, sharding: zero2, global_batch: 4, offload: {tiling: 2}"},
    {kLlama, "data: 2, sharding: zero3, global_batch: 4, offload: {tiling: 4}"},
    {kGpt, "data: 2, sharding: zero3, global_batch: 4, recompute: full, offload: {tiling: 2}"},
    {kGpt, "data: 3, sharding: fsdp, global_batch: 3, prefetch_units: 2, units_in_flight: 4, offload: {tiling: 8}"},
    {kLlama, "data: 4, sharding: hsdp, shard_group: 2, global_batch: 4, offload: {tiling: 2}", "sgd"},
    {kLlama, "tensor: 2, data: 2, sharding: zero3, global_batch: 4, offload: {tiling: 2}"},
    {kLlama, "tensor: 2, pipeline: 2, data: 1, schedule: zb-h1, global_batch: 4, offload: {tiling: 2}"},
    {kLlama, "pipeline: 2, data: 2, sharding: zero3, schedule: zb-h1, global_batch: 8, offload: {tiling: 2}"},
    {kQwen, "tensor: 4, data: 1, sequence_parallel: false, global_batch: 2, offload: {tiling: 2}"},
    {kGpt,
     "data: 2, sharding: zero3, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, parameters: cpu, tiling: "
     "2}"},
    {kLlama,
     "data: 2, sharding: zero3, global_batch: 4, recompute: full, offload: {optimizer: nvme, gradients: nvme, "
     "parameters: nvme, tiling: 4}"},
    {kLlama, "data: 1, sharding: zero3, global_batch: 2, offload: {optimizer: cpu, parameters: cpu, tiling: 2}"},
};

const std::string kPredicting =
    "{name: tiny-mtp, layers: 2, hidden: 64, heads: 4, kv_heads: 2, feed_forward: 96, vocab: 250, mtp_layers: 1}";

// Gradients that ranks of a model sum before the gradients are offloaded: those of norms, of key/value heads, of a
// token-embedding table on two stages.
const Case kSummed[] = {
    {kLlama,
     "tensor: 2, data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, tile: 9001}, gradients: "
     "cpu}"},
    {kLlama, "tensor: 2, data: 2, sharding: zero1, global_batch: 4, offload: {optimizer: cpu}"},
    {kGpt, "tensor: 2, data: 1, global_batch: 2, offload: {optimizer: cpu}", "sgd"},
    {kGpt, "tensor: 2, data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: cpu}"},
    {kQwen, "tensor: 4, data: 1, global_batch: 2, offload: {optimizer: cpu, gradients: cpu}"},
    {kQwen,
     "tensor: 4, data: 1, sharding: zero3, sequence_parallel: false, global_batch: 2, offload: {optimizer: cpu, "
     "gradients: cpu, parameters: cpu, tiling: 2}"},
    {kLlama,
     "tensor: 2, data: 2, sharding: zero3, global_batch: 4, recompute: full, offload: {optimizer: nvme, gradients: "
     "nvme, parameters: nvme, tiling: 2}"},
    {kGpt,
     "tensor: 2, data: 2, sharding: fsdp, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, parameters: cpu}"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero1, global_batch: 8, offload: {optimizer: cpu}"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: cpu, gradients: cpu}"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: cpu}"},
    {kGpt,
     "pipeline: 2, data: 2, sharding: zero3, global_batch: 4, offload: {optimizer: nvme, gradients: nvme, parameters: "
     "nvme}"},
    {kGpt, "tensor: 2, pipeline: 2, data: 1, global_batch: 4, offload: {optimizer: cpu, gradients: cpu}"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero1, schedule: dualpipe, global_batch: 8, offload: {optimizer: cpu}"},
    {kGpt,
     "pipeline: 2, data: 2, sharding: zero2, schedule: zb-v, global_batch: 8, offload: {optimizer: cpu, gradients: "
     "cpu}"},
    {kGpt,
     "pipeline: 2, data: 2, sharding: zero2, schedule: vocab-1f1b, global_batch: 8, offload: {optimizer: cpu, "
     "gradients: cpu}"},
    {kGpt,
     "pipeline: 2, data: 2, sharding: zero3, schedule: vocab-v-half, global_batch: 8, offload: {optimizer: cpu, "
     "gradients: cpu, parameters: cpu}"},
    {kPredicting, "pipeline: 2, data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: cpu, gradients: cpu}"},
};

// ZeRO-R: gradients reduced in a buffer of constant size, and the inputs that layers keep in one contiguous arena.
const Case kResidual[] = {
    {kLlama, "data: 2, global_batch: 4, fused_buffers: true, bucket_MiB: 0.05"},
    {kGpt, "data: 3, sharding: zero1, global_batch: 6, fused_buffers: true, bucket_MiB: 1000000"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero1, global_batch: 8, fused_buffers: true, bucket_MiB: 0.02"},
    {kLlama,
     "data: 2, sharding: zero1, global_batch: 4, fused_buffers: true, bucket_MiB: 0.05, offload: {optimizer: cpu}"},
    {kGpt, "data: 2, global_batch: 4, fused_buffers: true, bucket_MiB: 0.05", "adamw", "deepspeed-megatron-2021"},
    {kLlama, "data: 2, global_batch: 4, recompute: full, contiguous_activations: true"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero1, global_batch: 8, recompute: full, contiguous_activations: true"},
    {kLlama, "pipeline: 4, data: 1, schedule: zb-h1, global_batch: 8, recompute: full, contiguous_activations: true"},
    {kLlama, "data: 2, sharding: fsdp, global_batch: 4, recompute: full, contiguous_activations: true"},
    {kLlama,
     "tensor: 2, sequence_parallel: false, data: 2, global_batch: 4, recompute: full, partition_activations: true, "
     "contiguous_activations: true"},
};

INSTANTIATE_TEST_SUITE_P(Disks, Offloaded, testing::ValuesIn(kOnDisk));
INSTANTIATE_TEST_SUITE_P(Summed, Offloaded, testing::ValuesIn(kSummed));
INSTANTIATE_TEST_SUITE_P(Tiles, Offloaded, testing::ValuesIn(kTiles));
INSTANTIATE_TEST_SUITE_P(Residual, Offloaded, testing::ValuesIn(kResidual));
INSTANTIATE_TEST_SUITE_P(Offload, Offloaded, testing::ValuesIn(kOffload));
INSTANTIATE_TEST_SUITE_P(FullShards, Offloaded, testing::ValuesIn(kFullShards));
INSTANTIATE_TEST_SUITE_P(Infinity, Offloaded, testing::ValuesIn(kInfinity));
INSTANTIATE_TEST_SUITE_P(Activations, Offloaded, testing::ValuesIn(kActivations));

// One rank whose weights follow one step late: before every step they are set to what an Adam of our own, told the
// gradients of the step before the last, makes of them.
Result delayed_by_hand(const Spec& spec) {
  const Spec one = on_one_rank(spec);
  const Plan plan = make_plan(one);
  const Rank rank(one, plan, 0);
  const auto transport = mpi_transport(MPI_COMM_SELF, rank.plan);
  const Text text = read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", one.model.vocab, one.sequence);
  const std::uint32_t state = rank.states.front();
  const std::size_t n =
      static_cast<std::size_t>(rank.plan.blocks[rank.plan.frames[state].block].buffers[kParameters].bytes) / 4;
  std::vector<float> weights, due, first(n), second(n);
  const Buffers* buffers = nullptr;
  const auto held = [&](std::uint16_t slot) { return reinterpret_cast<float*>(buffers->state(state, slot)); };
  ExecuteOptions options;
  options.steps = kSteps;
  options.training = training_of(one);
  Tensors initial, last;
  options.on_gradients = [&](std::int64_t step, const Buffers& b) {
    buffers = &b;
    if (step == 0) {
      weights.assign(held(kParameters), held(kParameters) + n);
      add(initial, owned_values(rank, b, Quantity::weights));
    } else {
      const double factor =
          kernels::clip_factor(kernels::squared_norm(static_cast<std::int64_t>(n), due.data()), options.training.clip);
      kernels::update(options.training.rule, {step, factor}, static_cast<std::int64_t>(n), due.data(), weights.data(),
                      first.data(), second.data(), static_cast<float*>(nullptr));
    }
    due.assign(held(kGradients), held(kGradients) + n);
  };
  options.on_step = [&](std::int64_t step) {
    if (step > 0) std::copy(weights.begin(), weights.end(), held(kParameters));
  };
  options.on_end = [&](const Buffers& b) {
    std::copy(weights.begin(), weights.end(), held(kParameters));
    add(last, owned_values(rank, b, Quantity::weights));
  };
  const Execution e = execute(rank, *transport, text, options);
  return {{}, initial, last, {}, e.losses};
}

TEST(DelayedUpdate, AgreesWithADelayMadeByHand) {
  for (const char* strategy :
       {"data: 1, global_batch: 2, offload: {optimizer: {device: cpu, delayed_update: true, tile: 9001}}",
        "data: 2, sharding: zero1, global_batch: 4, offload: {optimizer: {device: cpu, delayed_update: true}}",
        "data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, delayed_update: true, tile: "
        "9001}, gradients: cpu}",
        "data: 2, sharding: fsdp, global_batch: 4, offload: {optimizer: {device: cpu, delayed_update: true, tile: "
        "9001}}",
        "tensor: 2, data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, delayed_update: "
        "true}, gradients: cpu}",
        "tensor: 2, data: 1, global_batch: 2, offload: {optimizer: {device: cpu, delayed_update: true}}"}) {
    SCOPED_TRACE(strategy);
    const Spec spec = spec_of({kLlama, strategy});
    auto result = run_case(spec);
    if (!result) continue;
    result->gradients.clear();  // the first update sees no gradients
    expect_like(spec, *result, delayed_by_hand(spec));
    const Result prompt = reference_of(spec);
    EXPECT_GT(std::abs(result->losses.back() / prompt.losses.back() - 1), 10 * kLimit) << "as if nothing were late";
  }
}

// The comparison with a reference detects a tile that is not gathered or not reduced, and a fused buffer that is not
// emptied.
TEST(Faults, LostTilesAndBuffersShow) {
  const std::pair<const char*, const char*> cases[] = {
      {"reduce unit", "data: 2, sharding: zero3, global_batch: 4, offload: {tiling: 4}"},
      {"gather unit", "data: 2, sharding: zero3, global_batch: 4, offload: {tiling: 4}"},
      {"unfuse gradients", "data: 2, global_batch: 4, fused_buffers: true, bucket_MiB: 0.05"}};
  for (const auto& [lost, strategy] : cases) {
    const Spec spec = spec_of({kLlama, strategy});
    const auto drop = [name = std::string(lost)](Plan& plan) {
      for (TaskId t = 0, found = 0; t < plan.task_count(); ++t) {
        Op op = plan.op_of(t);
        if (op.name != name || ++found != 5) continue;  // one of the first layer's tiles
        op.work = Wait{};
        plan.tasks[t].op = static_cast<std::uint32_t>(plan.ops.size());
        plan.ops.push_back(op);
      }
    };
    const auto result = run_case(spec, {.plan = drop});
    if (!result) continue;
    const Distance d = distance(spec, *result, reference_of(spec));
    EXPECT_TRUE(!(d.gradient <= 10 * kLimit) || !(d.weight <= 10 * kLimit) || !(d.loss <= 10 * kLimit)) << lost;
  }
}

// The comparison with a reference detects a copy to the device that is left out or comes too late.
TEST(Faults, LostCopiesShow) {
  const Spec spec = spec_of(
      {kLlama, "data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu}, gradients: cpu}"});
  const Spec full =
      spec_of({kLlama,
               "data: 4, sharding: hsdp, shard_group: 2, global_batch: 8, offload: {optimizer: cpu, gradients: cpu, "
               "parameters: cpu}"});
  const Spec shared =
      spec_of({kLlama,
               "tensor: 2, data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: cpu, gradients: "
               "cpu}"});
  const Spec tied = spec_of(
      {kGpt, "pipeline: 2, data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: cpu, gradients: cpu}"});
  const std::pair<const Spec*, const char*> cases[] = {{&shared, "reduce norm gradients"},
                                                       {&tied, "reduce tied embedding"},
                                                       {&spec, "gradients up"},
                                                       {&spec, "gradients down"},
                                                       {&spec, "parameters up"},
                                                       {&full, "shard up"},
                                                       {&full, "cast shard"},
                                                       {&full, "reduce replicas"}};
  for (const auto& [of, lost] : cases) {
    const auto drop = [name = lost](Plan& plan) {
      for (Op& op : plan.ops) {
        if (op.name == name) op.work = Wait{};
      }
    };
    const auto result = run_case(*of, {.plan = drop});
    if (!result) continue;
    const Distance d = distance(*of, *result, reference_of(*of));
    EXPECT_TRUE(!(d.gradient <= 10 * kLimit) || d.weight > 10 * kLimit || d.loss > 10 * kLimit) << lost;
  }
}

}  // namespace
}  // namespace orrery
