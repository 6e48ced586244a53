// When gradients are reduced, units of several layers, adapters and frozen parts, packed samples, and Lion: on several
// ranks against one, and on one rank against models that use none of them.
#include <optional>

#include "models/spec/documents.h"
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

const std::string kLora =
    "{name: tiny-lora, layers: 4, hidden: 64, heads: 8, kv_heads: 4, feed_forward: 96, vocab: 250, lora: {rank: 4}}";
const std::string kSomeAdapters =
    "{name: some-adapters, layers: 4, hidden: 64, heads: 8, kv_heads: 2, feed_forward: 96, vocab: 256, qk_norm: true, "
    "qkv_bias: true, tied_embeddings: true, lora: {rank: 4, targets: [mlp]}}";
const std::string kQkv =
    "{name: qkv-adapters, layers: 3, hidden: 64, heads: 8, kv_heads: 2, feed_forward: 96, vocab: 250, gated: false, "
    "bias: true, norm: layernorm, parallel_block: true, lora: {rank: 8, targets: [qkv, out]}}";
std::string frozen(const std::string& parts) {
  return "{name: frozen, layers: 4, hidden: 64, heads: 8, kv_heads: 4, feed_forward: 96, vocab: 250, frozen: [" +
         parts + "]}";
}

// A GPT without dropout, which would differ.
const std::string kPlainGpt =
    "{name: plain-gpt, layers: 3, hidden: 64, heads: 4, feed_forward: 128, vocab: 256, gated: false, positions: "
    "learned, norm: layernorm, bias: true}";

class Trained : public testing::TestWithParam<Case> {};

TEST_P(Trained, AsOnOneRank) { expect_like_one_rank(spec_of(GetParam())); }

const Case kReductions[] = {
    {kLlama, "data: 2, no_sync: false, global_batch: 8"},
    {kLlama, "data: 4, no_sync: false, bucket_MiB: 0.02, global_batch: 12"},
    {kGpt, "data: 3, no_sync: false, overlap: {gradient_reduce: false}, global_batch: 9"},
    {kGpt, "data: 2, no_sync: false, bucket_MiB: 0.02, global_batch: 8", "adamw", "pytorch-fsdp"},
    {kLlama, "data: 2, no_sync: false, bucket_MiB: 0, global_batch: 8", "adamw", "megatron-core"},
    {kQwen, "data: 4, sharding: zero1, no_sync: false, bucket_MiB: 0.05, global_batch: 12"},
    {kLlama, "data: 2, sharding: zero1, no_sync: false, pipeline: 2, global_batch: 8"},
    {kLlama, "data: 2, no_sync: false, pipeline: 2, schedule: zb-h1, bucket_MiB: 0.02, global_batch: 8"},
    {kGpt, "data: 2, sharding: zero1, no_sync: false, tensor: 2, pipeline: 2, virtual_stages: 2, global_batch: 8"},
    {kLlama, "data: 2, context: 2, no_sync: false, global_batch: 6"},
    {kLlama, "data: 2, sharding: zero2, no_sync: true, global_batch: 8"},
    {kLlama, "data: 2, sharding: zero3, no_sync: true, global_batch: 8"},
    {kGpt, "data: 3, sharding: fsdp, no_sync: true, global_batch: 9"},
    {kQwen, "data: 2, sharding: fsdp-grad-op, no_sync: true, tensor: 2, global_batch: 8"},
    {kLlama, "data: 4, sharding: hsdp, shard_group: 2, no_sync: true, global_batch: 12"},
    {kGpt, "data: 2, sharding: fsdp, no_sync: true, pipeline: 2, schedule: zb-v, global_batch: 8"},
    {kLlama, "data: 2, sharding: zero3, no_sync: true, recompute: full, global_batch: 8", "sgd", "torchtitan"},
};
INSTANTIATE_TEST_SUITE_P(Reductions, Trained, testing::ValuesIn(kReductions));

const Case kUnits[] = {
    {kLlama, "data: 2, sharding: zero3, units: model, global_batch: 8"},
    {kGpt, "data: 3, sharding: fsdp, units: model, global_batch: 6"},
    {kLlama, "data: 2, sharding: fsdp, units: 2, global_batch: 8"},
    {kLlama, "data: 2, sharding: fsdp, units: 3, prefetch_units: 2, units_in_flight: 1, global_batch: 4"},
    {kQwen, "data: 4, sharding: zero3, units: [[0, 2]], global_batch: 8"},
    {kLlama, "data: 2, sharding: fsdp, units: [[0, 3], [1, 2]], no_sync: true, global_batch: 8"},
    {kLlama, "data: 2, sharding: fsdp-grad-op, units: [[0, 3], [1, 2]], global_batch: 8"},
    {kGpt, "data: 4, sharding: hsdp, shard_group: 2, units: model, recompute: full, global_batch: 8"},
    {kLlama, "data: 2, tensor: 2, pipeline: 2, sharding: zero3, units: model, global_batch: 8"},
    {kLlama, "data: 2, pipeline: 2, sharding: fsdp, units: 2, schedule: zb-h1, global_batch: 8"},
    {kLlama, "data: 2, pipeline: 2, virtual_stages: 2, sharding: fsdp, units: model, global_batch: 8"},
    {kGpt, "data: 2, sharding: fsdp, units: 2, overlap: {parameter_gather: false}, global_batch: 4", "adamw",
     "torchtitan"},
};
INSTANTIATE_TEST_SUITE_P(Units, Trained, testing::ValuesIn(kUnits));

const Case kAdapters[] = {
    {kLora, "data: 2, global_batch: 4"},
    {kLora, "data: 2, no_sync: false, global_batch: 8"},
    {kLora, "data: 2, sharding: zero1, global_batch: 4"},
    {kLora, "data: 2, sharding: zero2, global_batch: 8"},
    {kLora, "data: 2, sharding: zero3, global_batch: 8"},
    {kLora, "data: 3, sharding: fsdp, global_batch: 6"},
    {kLora, "data: 2, sharding: fsdp-grad-op, recompute: full, global_batch: 8"},
    {kLora, "data: 4, sharding: hsdp, shard_group: 2, global_batch: 8"},
    {kLora, "data: 2, sharding: fsdp, units: model, global_batch: 8"},
    {kLora, "data: 2, sharding: fsdp, units: 2, no_sync: true, global_batch: 8"},
    {kLora, "tensor: 2, data: 2, global_batch: 4"},
    {kLora, "tensor: 4, data: 1, sequence_parallel: false, global_batch: 2"},
    {kSomeAdapters, "tensor: 4, data: 2, sharding: zero1, global_batch: 4"},
    {kSomeAdapters, "tensor: 2, data: 2, sharding: zero3, pipeline: 2, global_batch: 8"},
    {kSomeAdapters, "data: 2, sharding: fsdp, recompute: selective, global_batch: 4"},
    {kQkv, "tensor: 4, data: 2, global_batch: 4"},
    {kQkv, "data: 2, sharding: fsdp, tensor: 2, global_batch: 4"},
    {kLora, "pipeline: 4, data: 1, schedule: gpipe, global_batch: 4"},
    {kLora, "pipeline: 2, virtual_stages: 2, data: 2, sharding: zero1, global_batch: 8"},
    {kLora, "pipeline: 4, data: 1, schedule: zb-h1, global_batch: 8"},
    {kLora, "pipeline: 2, data: 2, sharding: zero2, schedule: zb-h2, global_batch: 8"},
    {kLora, "pipeline: 2, data: 2, sharding: zero3, schedule: zb-v, global_batch: 8"},
    {kLora, "pipeline: 2, tensor: 2, data: 2, schedule: v-half, global_batch: 8"},
    {kLora, "pipeline: 2, data: 2, schedule: dualpipev, sharding: zero1, global_batch: 8"},
    {kLora, "context: 2, tensor: 2, data: 2, global_batch: 4"},
    {frozen("embedding"), "data: 2, sharding: zero3, pipeline: 2, global_batch: 8"},
    {frozen("attention, norm"), "tensor: 2, data: 2, sharding: zero1, global_batch: 4"},
    {frozen("embedding, attention, mlp"), "data: 2, sharding: fsdp, recompute: full, global_batch: 4"},
    {frozen("embedding, attention, mlp, norm"), "data: 2, sharding: zero3, tensor: 2, global_batch: 4"},
    {frozen("head, mlp"), "data: 2, sharding: zero2, tensor: 2, pipeline: 2, schedule: zb-h1, global_batch: 8"},
};
INSTANTIATE_TEST_SUITE_P(Adapters, Trained, testing::ValuesIn(kAdapters));

// The gradient of B is that of the whole weight times A^T, since y = x W^T + (x A^T) B^T; the loss before the first
// update is that of the model without adapters, since B is zero, and so is A's gradient.
TEST(Adapters, HaveTheGradientsOfTheWholeModel) {
  MPI_Comm one = ranks_for(spec_of({kLora, "data: 1, global_batch: 2"}));
  if (one == MPI_COMM_NULL) return;
  Spec spec = spec_of({kLora, "data: 1, global_batch: 2, clip: 0"});
  const Result adapted = run(one, spec);
  spec.model.lora.reset();
  const Result whole = run(one, spec);
  MPI_Comm_free(&one);
  EXPECT_NEAR(adapted.losses[0], whole.losses[0], kLimit * whole.losses[0]);
  EXPECT_NE(adapted.losses.back(), adapted.losses[0]);
  int checked = 0;
  for (const auto& [name, b] : adapted.gradients) {
    const std::size_t at = name.find(".lora_b");
    if (at == std::string::npos) continue;
    const std::vector<float>& a = adapted.initial.at(name.substr(0, at) + ".lora_a.weight");
    const std::vector<float>& w = whole.gradients.at(name.substr(0, at) + ".weight");
    const std::size_t rank = 4, in = a.size() / rank, out = w.size() / in;
    std::vector<float> expected(out * rank);
    for (std::size_t o = 0; o < out; ++o) {
      for (std::size_t r = 0; r < rank; ++r) {
        double sum = 0;
        for (std::size_t i = 0; i < in; ++i) sum += double{w[o * in + i]} * a[r * in + i];
        expected[o * rank + r] = static_cast<float>(sum);
      }
    }
    EXPECT_LE(norm(difference(b, expected, b.size())), kLimit * norm(expected)) << name;
    EXPECT_EQ(norm(adapted.gradients.at(name.substr(0, at) + ".lora_a.weight")), 0) << name;
    ++checked;
  }
  EXPECT_EQ(checked, 4 * 4);
}

// Frozen weights have no gradients; those of the other weights are as without.
TEST(Frozen, LeavesTheOtherGradientsAsTheyAre) {
  for (const char* parts : {"embedding", "attention", "mlp, norm", "embedding, attention, mlp, norm", "head"}) {
    SCOPED_TRACE(parts);
    MPI_Comm one = ranks_for(spec_of({kLlama, "data: 1, global_batch: 2"}));
    if (one == MPI_COMM_NULL) continue;
    Spec spec = spec_of({frozen(parts), "data: 1, global_batch: 2, clip: 0"});
    const Result some = run(one, spec);
    spec.model.frozen.clear();
    const Result all = run(one, spec);
    MPI_Comm_free(&one);
    EXPECT_NEAR(some.losses[0], all.losses[0], kLimit * all.losses[0]);
    EXPECT_GT(some.gradients.size(), 0U);
    EXPECT_LT(some.gradients.size(), all.gradients.size());
    for (const auto& [name, g] : some.gradients)
      EXPECT_LE(norm(difference(g, all.gradients.at(name), g.size())), kLimit * norm(all.gradients.at(name))) << name;
  }
}

Spec packed(const Case& c, Documents documents) {
  Spec spec = spec_of(c);
  spec.documents = std::move(documents);
  return spec;
}

// Samples that are packed from documents of a third of their length are three samples each.
TEST(Packed, IsAsSeparateDocuments) {
  for (const std::string& model : {kLlama, kPlainGpt, kWindow}) {
    MPI_Comm one = ranks_for(spec_of({model, "data: 1, global_batch: 2"}));
    if (one == MPI_COMM_NULL) continue;
    const Spec together = packed({model, "data: 1, global_batch: 4, micro_batch: 2"}, {.histogram = {{12, 1.0}}});
    Spec apart = spec_of({model, "data: 1, global_batch: 12, micro_batch: 6"});
    apart.sequence = 12;
    apart.model.max_positions = 36;
    Spec same = together;
    same.model.max_positions = 36;
    const Result a = run(one, same), b = run(one, apart);
    MPI_Comm_free(&one);
    EXPECT_EQ(worst(a.gradients, b.gradients).first <= kLimit, true) << worst(a.gradients, b.gradients).second;
    for (std::size_t s = 0; s < a.losses.size(); ++s) EXPECT_NEAR(a.losses[s], b.losses[s], kLimit * b.losses[s]);
  }
}

TEST(Packed, IsAsOnOneRank) {
  const Documents drawn = {.mean = 9, .max = 30};
  for (const Case& c : {Case{kLlama, "data: 2, sharding: zero1, global_batch: 8, micro_batch: 2"},
                        Case{kLlama, "tensor: 2, pipeline: 2, data: 2, global_batch: 8"},
                        Case{kWindow, "data: 4, sharding: fsdp, recompute: full, global_batch: 8"},
                        Case{kLora, "tensor: 2, data: 2, sequence_parallel: false, global_batch: 4"}})
    expect_like_one_rank(packed(c, drawn));
}

// The sign of a direction that is rounding noise may differ, so weights are compared where their gradient is not.
TEST(Lion, MakesTheSameStepOnAnyRanks) {
  for (const char* strategy :
       {"data: 2, global_batch: 4", "data: 3, sharding: zero1, global_batch: 6",
        "data: 2, sharding: fsdp, global_batch: 4", "tensor: 2, pipeline: 2, data: 1, global_batch: 4"}) {
    const Spec spec = spec_of({kLlama, strategy, "lion"});
    MPI_Comm some = ranks_for(spec);
    if (some == MPI_COMM_NULL) continue;
    const Result r = run(some, spec, {.steps = 1});
    int rank = 0;
    MPI_Comm_rank(some, &rank);
    MPI_Comm_free(&some);
    if (rank > 0) continue;
    const Result one = run(MPI_COMM_SELF, on_one_rank(spec), {.steps = 1});
    std::int64_t moved = 0;
    for (const auto& [name, g] : one.gradients) {
      const double noise = kLimit * norm(g);
      for (std::size_t i = 0; i < g.size(); ++i) {
        if (std::abs(g[i]) <= noise) continue;
        const float step = r.weights.at(name)[i] - r.initial.at(name)[i];
        EXPECT_EQ(step, one.weights.at(name)[i] - one.initial.at(name)[i]) << name << ' ' << i;
        EXPECT_LT(step * g[i], 0) << name;
        ++moved;
      }
    }
    EXPECT_GT(moved, 10'000);
  }
}

}  // namespace
}  // namespace orrery
