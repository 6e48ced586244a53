// QLoRA: frozen weights in NF4, against runs whose frozen weights are what the NF4 weights are converted to.
#include <algorithm>
#include <optional>

#include "exec/memory/caching_memory.h"
#include "kernels/reference/quantize.h"
#include "models/layers/blocks.h"
#include "models/layout/uncut_place.h"
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

std::string qlora(const std::string& sizes, const std::string& more = "") {
  return "{name: qlora, layers: 4, " + sizes + ", lora: {rank: 4, weights: nf4" + more + "}}";
}
const std::string kEven = "hidden: 64, heads: 8, kv_heads: 4, feed_forward: 96, vocab: 250";
// Weights whose bytes in NF4 are odd, behind which norms and biases begin at any address.
const std::string kUneven = "hidden: 36, heads: 6, kv_heads: 3, feed_forward: 50, vocab: 131, qkv_bias: true";

// The frozen matrices of a rank as NF4 keeps them, in their places in the uncut weights: each rank converts its own
// part.
Tensors kept_in_nf4(const Spec& spec, std::int64_t number) {
  Spec wide = on_one_rank(spec);
  wide.strategy = spec.strategy;
  wide.strategy.sharding = Sharding::none;
  wide.strategy.units = {};
  wide.strategy.no_sync.reset();
  wide.strategy.shard_group = 0;
  wide.strategy.precision = wide.strategy.gradient_precision = Precision::fp32;
  wide.gpus = spec.gpus;
  wide.model.lora->nf4 = false;
  const Plan plan = make_plan(wide);
  const Rank rank(wide, plan, number);
  CachingMemory memory(host_segments());
  const Buffers buffers(rank, memory);
  set_initial_weights(rank, training_of(spec).seed, buffers);
  Tensors tensors;
  for (const std::uint32_t state : rank.states) {
    const auto* values = reinterpret_cast<const float*>(buffers.state(state, kFrozen));
    for (const PlacedParameter& p : rank.frozen.at(state)) {
      if (!is_nf4(spec.model, p.local.name, p.local.in)) continue;
      const std::int64_t n = p.local.out * p.local.in;
      const std::vector<float> kept = kernels::reference::quantized_nf4({values + p.first, values + p.first + n});
      const UncutPlace place = uncut_place(wide.model, p.local, [&](Dimension d) { return rank.position_in(d); });
      auto& all = tensors[p.name];
      all.resize(static_cast<std::size_t>(place.whole.out * place.whole.in), NAN);
      for (const UncutRows& run : place.rows) {
        for (std::int64_t r = 0; r < run.rows; ++r)
          std::copy_n(kept.begin() + (run.local + r) * p.local.in, p.local.in,
                      all.begin() + (run.uncut + r) * place.whole.in + place.column);
      }
    }
  }
  return tensors;
}

// Sets frozen weights of one rank that holds them whole, in fp32.
void set_frozen(const Rank& rank, const Buffers& buffers, const Tensors& values) {
  for (const std::uint32_t state : rank.states) {
    auto* to = reinterpret_cast<float*>(buffers.state(state, kFrozen));
    for (const PlacedParameter& p : rank.frozen.at(state)) {
      const auto it = values.find(p.name);
      if (it == values.end()) continue;
      ASSERT_EQ(static_cast<std::int64_t>(it->second.size()), p.local.out * p.local.in) << p.name;
      std::copy(it->second.begin(), it->second.end(), to + p.first);
    }
  }
}

class Qlora : public testing::TestWithParam<Case> {};

TEST_P(Qlora, AsTheModelOfTheConvertedWeights) {
  const Spec spec = spec_of(GetParam());
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  int number = 0;
  MPI_Comm_rank(some, &number);
  const Result result = run(some, spec);
  const Tensors kept = collect(some, kept_in_nf4(spec, number));
  MPI_Comm_free(&some);
  if (number > 0) return;
  Spec one = on_one_rank(spec);
  one.model.lora->nf4 = false;
  std::size_t set = 0;
  const Result reference =
      run(MPI_COMM_SELF, one, {.on_begin = [&](std::int64_t step, const Rank& rank, const Buffers& buffers) {
            if (step > 0 || set > 0) return;
            set_frozen(rank, buffers, kept);
            set = kept.size();
          }});
  EXPECT_EQ(set, static_cast<std::size_t>(spec.model.layers * 4));
  expect_agreement(distance(spec, result, reference));
  EXPECT_NE(result.losses.back(), result.losses.front());
  // The converted weights matter: without them the gradients are others.
  const Result wide = run(MPI_COMM_SELF, one, {.steps = 1});
  EXPECT_GT(worst(result.gradients, wide.gradients).first, 100 * kLimit);
}

const Case kQloraCases[] = {
    {qlora(kEven), "data: 1, global_batch: 2"},
    {qlora(kUneven), "data: 1, global_batch: 2, recompute: full"},
    {qlora(kEven), "data: 2, no_sync: false, global_batch: 8"},
    {qlora(kUneven), "data: 3, sharding: zero1, global_batch: 6"},
    {qlora(kUneven + ", tied_embeddings: true"), "data: 2, sharding: zero3, global_batch: 4"},
    {qlora(kEven), "data: 2, sharding: zero2, global_batch: 8"},
    {qlora(kEven), "data: 4, sharding: zero3, global_batch: 8"},
    {qlora(kUneven), "data: 5, sharding: zero3, global_batch: 10, recompute: full"},
    {qlora(kUneven), "data: 3, sharding: fsdp, global_batch: 6"},
    {qlora(kEven), "data: 8, sharding: fsdp, units: model, global_batch: 8"},
    {qlora(kUneven), "data: 2, sharding: fsdp-grad-op, recompute: selective, global_batch: 4"},
    {qlora(kUneven), "data: 4, sharding: hsdp, shard_group: 2, global_batch: 8"},
    {qlora(kUneven), "data: 2, sharding: fsdp, units: 2, no_sync: true, global_batch: 8", "adamw", "pytorch-fsdp"},
    {qlora(kEven, ", targets: [mlp]"), "tensor: 2, data: 2, sharding: zero3, global_batch: 4"},
    {qlora(kEven), "tensor: 4, data: 2, global_batch: 4"},
    {qlora(kEven), "tensor: 4, data: 2, sequence_parallel: false, sharding: fsdp, global_batch: 4"},
    {qlora(kEven), "context: 2, tensor: 2, data: 2, global_batch: 4"},
    {qlora(kUneven), "context: 3, data: 2, sharding: zero3, context_kind: ulysses, global_batch: 4"},
    {qlora(kUneven), "pipeline: 4, data: 1, schedule: gpipe, global_batch: 4"},
    {qlora(kUneven), "pipeline: 2, virtual_stages: 2, data: 2, sharding: zero1, global_batch: 8"},
    {qlora(kUneven), "pipeline: 4, data: 2, schedule: zb-h1, sharding: fsdp, global_batch: 8"},
    {qlora(kEven), "pipeline: 2, data: 2, sharding: zero2, schedule: zb-h2, global_batch: 8"},
    {qlora(kUneven), "pipeline: 2, data: 2, sharding: zero3, schedule: zb-v, global_batch: 8"},
    {qlora(kEven), "pipeline: 2, tensor: 2, data: 2, schedule: v-half, global_batch: 8"},
    {qlora(kUneven), "pipeline: 2, data: 2, schedule: dualpipev, sharding: zero1, global_batch: 8"},
};
INSTANTIATE_TEST_SUITE_P(Cases, Qlora, testing::ValuesIn(kQloraCases));

// In bf16 the converted weights are rounded to bf16, and every sharding has the bits of the unsharded run.
TEST(Qlora16, HasTheSameBitsOverAnyShards) {
  std::optional<Result> first;
  for (const char* sharding : {"zero2", "zero3", "fsdp"}) {
    const Spec spec = spec_of({qlora(kUneven), fmt::format("data: 2, sharding: {}, global_batch: 4", sharding), "adamw",
                               "orrery", "bf16", "fp32"});
    MPI_Comm some = ranks_for(spec);
    if (some == MPI_COMM_NULL) continue;
    const Result result = run(some, spec);
    MPI_Comm_free(&some);
    if (!first) first = result;
    EXPECT_EQ(result.losses, first->losses) << sharding;
    EXPECT_EQ(result.weights, first->weights) << sharding;
  }
}

}  // namespace
}  // namespace orrery
