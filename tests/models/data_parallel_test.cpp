// What every rank sends over its data-parallel groups in a step, against section 2 of the ZeRO and FSDP papers, and the
// reductions inside a model. Volumes are counted in elements, the whole of a gather or reduction; a rank sends
// (N - 1) / N of it, an all-reduce twice that.
#include <numeric>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::elements_moved;
using K = CollectiveKind;

std::int64_t group_size(const Plan& plan, Dimension d) {
  return static_cast<std::int64_t>(plan.dimensions[static_cast<std::size_t>(d)].groups.front().size());
}

struct Volume {
  std::int64_t all_reduce = 0, reduce_scatter = 0, all_gather = 0;  // multiples of the rank's weights
};

Volume expected(const Spec& spec) {
  const std::int64_t m = spec.strategy.micro_batches();
  switch (spec.strategy.sharding) {
    case Sharding::none:
      return {1, 0, 0};  // only after the last micro-batch
    case Sharding::zero1:
      return {0, 1, 1};
    case Sharding::zero2:
      return spec.software.keep_gradients_whole ? Volume{0, 1, 1} : Volume{0, m, 1};
    case Sharding::fsdp_grad_op:
      return {0, m, m};
    default:
      return {0, m, 2 * m};
  }
}

TEST(DataParallel, Volumes) {
  for (std::uint64_t seed = 1000; seed < 1600; ++seed) {
    const Spec spec = test::random_spec(seed);
    const Plan plan = make_plan(spec);
    const Volume v = group_size(plan, Dimension::data) > 1 ? expected(spec) : Volume{};
    for (std::uint32_t slot = 0; slot < plan.slots.size(); ++slot) {
      const auto chunks = test::local_parameters(spec, slot);
      const std::int64_t psi = std::accumulate(chunks.begin(), chunks.end(), std::int64_t{0});
      const std::string where = fmt::format("seed {} {} slot {}", seed, name_of(spec.strategy.sharding), slot);
      EXPECT_EQ(elements_moved(plan, slot, Dimension::data, K::all_reduce), v.all_reduce * psi) << where;
      EXPECT_EQ(elements_moved(plan, slot, Dimension::data, K::reduce_scatter), v.reduce_scatter * psi) << where;
      EXPECT_EQ(elements_moved(plan, slot, Dimension::data, K::all_gather), v.all_gather * psi) << where;
      const std::int64_t shards = group_size(plan, Dimension::data), replicas = group_size(plan, Dimension::replicate);
      const std::int64_t copies = elements_moved(plan, slot, Dimension::replicate, K::all_reduce);
      if (spec.strategy.sharding == Sharding::hsdp && replicas > 1) {
        EXPECT_GE(copies * shards, psi) << where;  // a shard of every unit is rounded up
        EXPECT_LT(copies * shards, psi + shards * 20) << where;
      } else {
        EXPECT_EQ(copies, 0) << where;
      }
    }
    if (HasFailure()) return;
  }
}

// Reductions travel in the gradients' width, gathers in that of the parameters.
TEST(DataParallel, Widths) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Spec spec = test::random_spec(seed);
    for (const Op& op : make_plan(spec).ops) {
      const auto* c = std::get_if<Collective>(&op.work);
      if (c == nullptr || (c->group != Dimension::data && c->group != Dimension::replicate)) continue;
      const Precision p = c->kind == K::all_gather ? spec.strategy.precision : spec.strategy.gradient_precision;
      EXPECT_EQ(c->width, storage_bytes(p)) << op.name;
    }
  }
}

// Weights whose gradient every tensor rank has only a part of: under sequence parallelism all that are whole on every
// rank, without it the norms of heads alone.
TEST(DataParallel, ReducesPartialGradients) {
  const std::string model = "name: m, layers: 3, hidden: 64, heads: 8, kv_heads: 4, feed_forward: 128, vocab: 256, ";
  const auto reduced = [&](const std::string& more, const std::string& strategy) {
    const Plan plan = make_plan(test::spec_of(model + more, "tensor: 4, data: 2, " + strategy));
    std::int64_t sum = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
      if (c != nullptr && c->group == Dimension::tensor && plan.op_of(t).phase == Phase::step)
        sum += c->bytes / c->width;
    }
    return sum;
  };
  EXPECT_EQ(reduced("qk_norm: false", "sequence_parallel: false"), 0);
  EXPECT_EQ(reduced("qk_norm: false", "sequence_parallel: true"), 7 * 64);
  EXPECT_EQ(reduced("qk_norm: true", "sequence_parallel: true"), 7 * 64 + 3 * 2 * 8);
  EXPECT_EQ(reduced("qk_norm: true", "sequence_parallel: false"), 3 * 2 * 8);
  EXPECT_EQ(reduced("bias: true", "sequence_parallel: true"), 7 * 64 + 3 * 2 * 64);
}

// Where there are fewer key/value heads than tensor ranks, each head's weights and biases lie on several of them, which
// add up their gradients once a step: nothing else goes over their group.
TEST(DataParallel, ReducesCopiesOfKeyValueHeads) {
  for (const int heads : {1, 2, 4, 8}) {
    for (const int tensor : {1, 2, 4, 8}) {
      for (const char* sharding : {"none", "zero1", "zero3"}) {
        for (const bool bias : {false, true}) {
          const Spec spec = test::spec_of(
              fmt::format("name: m, layers: 3, hidden: 64, heads: 8, kv_heads: {}, head_dim: 8, feed_forward: 128, "
                          "vocab: 256, qkv_bias: {}",
                          heads, bias),
              fmt::format("tensor: {}, pipeline: 3, data: 2, global_batch: 6, sharding: {}", tensor, sharding));
          const Plan plan = make_plan(spec);
          const int copies = std::max(1, tensor / heads), shards = std::string(sharding) == "zero3" ? 2 : 1;
          EXPECT_EQ(group_size(plan, Dimension::kv), copies);
          for (std::uint32_t slot = 0; slot < plan.slots.size(); ++slot) {
            EXPECT_EQ(elements_moved(plan, slot, Dimension::kv, K::all_reduce),
                      copies > 1 ? 2 * 8 * (64 + bias) / shards : 0)
                << heads << " " << tensor << " " << sharding;
          }
        }
      }
    }
  }
}

// First and last stage add up the gradient of a tied matrix: once a step, whole, or the shard that both ranks own.
TEST(DataParallel, ReducesTiedEmbedding) {
  for (const char* sharding : {"none", "zero1", "zero2", "zero3", "fsdp"}) {
    for (const int pipeline : {1, 2, 3}) {
      const Spec spec = test::spec_of(std::string(test::kSmall) + ", tied_embeddings: true",
                                      fmt::format("tensor: 2, pipeline: {}, data: 2, sharding: {}", pipeline, sharding),
                                      32, "profile: orrery, keep_gradients_whole: false");
      const Plan plan = make_plan(spec);
      const bool shards = row_of(spec.strategy.sharding).shards_gradients;
      for (std::uint32_t slot = 0; slot < plan.slots.size(); ++slot) {
        const bool end = pipeline > 1 && (slot == 0 || slot + 1 == plan.slots.size());
        EXPECT_EQ(elements_moved(plan, slot, Dimension::embedding, K::all_reduce),
                  end ? 256 * 64 / 2 / (shards ? 2 : 1) : 0)
            << sharding << " " << pipeline << " " << slot;
      }
    }
  }
}

// Under ZeRO-1 each rank owns a piece of every bucket, so both stages must cut the tied matrix alike: it has a bucket
// of its own.
TEST(DataParallel, TiedEmbeddingHasItsOwnBucket) {
  const Plan plan = make_plan(test::spec_of(std::string(test::kSmall) + ", tied_embeddings: true, positions: learned",
                                            "pipeline: 2, data: 2, sharding: zero1, bucket_MiB: 0"));
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    int found = 0;
    for (TaskId t = plan.slots[slot].begin; t < plan.slots[slot].end; ++t) {
      const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
      found += c != nullptr && c->kind == K::reduce_scatter && c->bytes / c->width == 256 * 64;
    }
    EXPECT_EQ(found, 1) << slot;
  }
}

// The gradient norm is summed over every rank that holds another part of the model, when clipping is on.
TEST(DataParallel, ClipsOverTheModel) {
  for (const int clip : {0, 1}) {
    for (const char* sharding : {"none", "zero1", "fsdp"}) {
      const Plan plan = make_plan(test::spec_of(
          test::kSmall, fmt::format("tensor: 2, pipeline: 2, data: 2, sharding: {}, clip: {}", sharding, clip)));
      EXPECT_EQ(elements_moved(plan, 0, Dimension::model, K::all_reduce), clip);
      EXPECT_EQ(group_size(plan, Dimension::model), std::string(sharding) == "none" ? 4 : 8);
    }
  }
}

// A gathered unit's gradient is written by its product straight into the unit's buffer: fully_shard frees it after the
// reduction, so there is nothing to add to.
TEST(DataParallel, UnitGradientsAreNotAccumulated) {
  for (const char* sharding : {"zero3", "fsdp", "hsdp", "fsdp-grad-op"}) {
    for (const bool fused : {false, true}) {
      const Plan plan =
          make_plan(test::spec_of(test::kSmall, fmt::format("data: 2, sharding: {}", sharding), 32,
                                  fmt::format("profile: orrery, gradient_accumulation_fusion: {}", fused)));
      for (const Op& op : plan.ops) {
        if (op.phase != Phase::backward) continue;
        EXPECT_FALSE(std::holds_alternative<Accumulate>(op.work)) << op.name;
        const auto* g = std::get_if<Gemm>(&op.work);
        if (g == nullptr || g->role != Gemm::Role::weight_gradient) continue;
        EXPECT_FALSE(g->accumulate) << op.name;
        EXPECT_EQ(g->result_bytes, 2) << op.name;
      }
    }
  }
}

}  // namespace
}  // namespace orrery
