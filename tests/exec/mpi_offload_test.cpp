// What leaves the device and comes back, against one rank that keeps everything: optimizer, gradients and parameters on
// the host and on a disk, stored activations, and a delayed update against a delay made by hand.
#include <algorithm>

#include "kernels/elementwise.h"
#include "models/blocks.h"
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

const Case kActivations[] = {
    {kLlama, "data: 2, global_batch: 4, offload: {activations: cpu}"},
    {kGpt, "data: 1, global_batch: 2, recompute: selective, attention: unfused, offload: {activations: cpu}"},
    {kLlama, "data: 1, global_batch: 2, recompute: full, offload: {activations: {device: cpu, layers: 2}}"},
    {kGpt, "pipeline: 2, data: 2, global_batch: 8, offload: {activations: cpu}"},
    {kLlama, "tensor: 2, pipeline: 2, data: 1, global_batch: 4, recompute: [norm], offload: {activations: cpu}"},
    {kLlama, "pipeline: 2, data: 1, schedule: zb-h1, global_batch: 4, offload: {activations: cpu}"},
    {kLlama,
     "data: 2, sharding: zero3, global_batch: 4, recompute: full, offload: {optimizer: cpu, gradients: cpu, "
     "parameters: cpu, activations: cpu}"},
    {kLlama,
     "tensor: 2, sequence_parallel: false, data: 2, global_batch: 4, recompute: full, partition_activations: true"},
    {kGpt,
     "tensor: 4, sequence_parallel: false, data: 1, global_batch: 2, recompute: full, partition_activations: true, "
     "offload: {activations: cpu}"},
};

INSTANTIATE_TEST_SUITE_P(Offload, Offloaded, testing::ValuesIn(kOffload));
INSTANTIATE_TEST_SUITE_P(Infinity, Offloaded, testing::ValuesIn(kInfinity));
INSTANTIATE_TEST_SUITE_P(Activations, Offloaded, testing::ValuesIn(kActivations));

// One rank whose weights follow one step late: before every step they are set to what an Adam of our own, told the
// gradients of the step before the last, makes of them.
Result delayed_by_hand(const Spec& spec) {
  const Spec one = on_one_rank(spec);
  const Plan plan = make_plan(one);
  const Rank rank(one, plan, 0);
  const auto transport = mpi_transport(MPI_COMM_SELF, rank.plan);
  const Text text = read_text(ORRERY_SOURCE_DIR "/exec/data/text.txt", one.model.vocab, one.sequence);
  const std::uint32_t state = rank.states.front();
  const std::size_t n =
      static_cast<std::size_t>(rank.plan.blocks[rank.plan.frames[state].block].slots[kParameters].bytes) / 4;
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
        "9001}, gradients: cpu}"}) {
    SCOPED_TRACE(strategy);
    const Spec spec = spec_of({kLlama, strategy});
    auto result = run_case(spec);
    if (!result) continue;
    result->gradients.clear();  // those that the first update sees are none
    expect_like(spec, *result, delayed_by_hand(spec));
    const Result prompt = reference_of(spec);
    EXPECT_GT(std::abs(result->losses.back() / prompt.losses.back() - 1), 10 * kLimit) << "as if nothing were late";
  }
}

// What does not come up, or comes up late, shows.
TEST(Faults, LostCopiesShow) {
  const Spec spec = spec_of(
      {kLlama, "data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu}, gradients: cpu}"});
  for (const char* lost : {"gradients up", "gradients down", "parameters up"}) {
    const auto drop = [lost](Plan& plan) {
      for (Op& op : plan.ops) {
        if (op.name == lost) op.work = Wait{};
      }
    };
    const auto result = run_case(spec, {.plan = drop});
    if (!result) continue;
    const Distance d = distance(spec, *result, reference_of(spec));
    EXPECT_TRUE(d.gradient > 10 * kLimit || d.weight > 10 * kLimit || d.loss > 10 * kLimit) << lost;
  }
}

}  // namespace
}  // namespace orrery
