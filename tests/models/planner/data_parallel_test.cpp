// The elements that every rank sends over its data-parallel groups in a step, against section 2 of the ZeRO and FSDP
// papers, and the reductions inside a model. Volumes are the number of elements of the whole gather or reduction; a
// rank sends (N - 1) / N of it, in an all-reduce twice that.
#include <numeric>

#include <gtest/gtest.h>

#include "models/layout/placement.h"
#include "models/spec/sharding.h"
#include "tests/models/passes.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::elements_moved;
using test::passes;
using Moves = CollectiveKind;

std::int64_t group_size(const Plan& plan, Dimension d) {
  return static_cast<std::int64_t>(plan.dimensions[static_cast<std::size_t>(d)].groups.front().size());
}

struct Volume {
  std::int64_t all_reduce = 0, reduce_scatter = 0, all_gather = 0;  // multiples of the rank's weights
};

Volume expected(const Spec& spec) {
  const std::int64_t m = spec.strategy.micro_batches();
  const std::string_view name = name_of(spec.strategy.sharding);
  if (name == "none") return {1, 0, 0};  // only after the last micro-batch
  if (name == "zero1") return {0, 1, 1};
  if (name == "zero2") return spec.software.communication.keep_gradients_whole ? Volume{0, 1, 1} : Volume{0, m, 1};
  if (name == "fsdp-grad-op") return {0, m, m};
  return {0, m, 2 * m};
}

// Weights of a slot whose units stay gathered from forward to backward.
std::int64_t kept(const Spec& spec, const Plan& plan, std::uint32_t slot) {
  if (!row_of(spec.strategy.sharding).reshards_after_forward || group_size(plan, Dimension::data) == 1) return 0;
  std::map<std::uint32_t, std::int64_t> by_unit;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    const bool last = block.role == BlockRole::final_norm || block.role == BlockRole::output;
    const bool first = block.role == BlockRole::embedding;
    const bool tied = spec.model.tied_embeddings && spec.strategy.pipeline == 1;
    const bool ends = spec.software.communication.kept_units == KeptUnits::ends || tied;
    const bool kept = spec.software.communication.kept_units != KeptUnits::none && (last || (first && ends));
    if (f.slot != slot || f.micro_batch != 0) continue;
    if (kept && !(tied && block.role == BlockRole::output)) by_unit[f.unit] = block.parameter_elements;
  }
  std::int64_t sum = 0;
  for (const auto& [unit, elements] : by_unit) sum += elements;
  return sum;
}

TEST(DataParallel, Volumes) {
  for (std::uint64_t seed = 1000; seed < 1600; ++seed) {
    const Spec spec = test::random_spec(seed, test::kAllShardings, test::Drawn::plain);
    const Plan plan = make_plan(spec);
    const Volume v = group_size(plan, Dimension::data) > 1 ? expected(spec) : Volume{};
    for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
      const auto chunks = test::local_parameters(spec, plan.classes[slot].stage);
      const std::int64_t psi = std::accumulate(chunks.begin(), chunks.end(), std::int64_t{0});
      const std::string where = fmt::format("seed {} {} slot {}", seed, name_of(spec.strategy.sharding), slot);
      EXPECT_EQ(elements_moved(plan, slot, Dimension::data, Moves::all_reduce), v.all_reduce * psi) << where;
      EXPECT_EQ(elements_moved(plan, slot, Dimension::data, Moves::reduce_scatter), v.reduce_scatter * psi) << where;
      EXPECT_EQ(elements_moved(plan, slot, Dimension::data, Moves::all_gather),
                v.all_gather * psi - spec.strategy.micro_batches() * kept(spec, plan, slot))
          << where;
      const std::int64_t shards = group_size(plan, Dimension::data), replicas = group_size(plan, Dimension::replicate);
      const std::int64_t copies = elements_moved(plan, slot, Dimension::replicate, Moves::all_reduce);
      if (spec.strategy.sharding == find_sharding("hsdp") && replicas > 1) {
        EXPECT_GE(copies * shards, psi) << where;  // a shard of every unit is rounded up
        EXPECT_LT(copies * shards, psi + shards * 20) << where;
      } else {
        EXPECT_EQ(copies, 0) << where;
      }
    }
    if (HasFailure()) return;
  }
}

// Reductions send the gradients' width, gathers the parameters' width.
TEST(DataParallel, Widths) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Spec spec = test::random_spec(seed);
    for (const Op& op : make_plan(spec).ops) {
      const auto* c = std::get_if<Collective>(&op.work);
      if (c == nullptr || (c->group != Dimension::data && c->group != Dimension::replicate)) continue;
      const Precision p = c->kind == Moves::all_gather ? spec.strategy.precision : spec.strategy.gradient_precision;
      EXPECT_EQ(c->width, storage_bytes(p)) << op.name;
    }
  }
}

// Weights for which every tensor rank has only a part of the gradient: under sequence parallelism all weights that
// every rank holds whole, without it only the norms of heads.
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

// With fewer key/value heads than tensor ranks, the weights and biases of each head lie on several ranks, which add up
// these gradients once a step: nothing else goes over the group of these ranks.
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
          for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
            EXPECT_EQ(elements_moved(plan, slot, Dimension::kv, Moves::all_reduce),
                      copies > 1 ? 2 * 8 * (64 + bias) / shards : 0)
                << heads << " " << tensor << " " << sharding;
          }
        }
      }
    }
  }
}

// DeepSpeed's stage 1 sums whole gradients on every rank; its stage 2 reduces them to the rank that owns them.
TEST(DataParallel, StageTwoScattersWhereStageOneSumsAll) {
  for (const char* sharding : {"zero1", "zero2"}) {
    const Spec spec = test::spec_of(test::kSmall, fmt::format("data: 4, sharding: {}", sharding), 32,
                                    "profile: orrery, shards_all_reduce: true, keep_gradients_whole: true");
    const Plan plan = make_plan(spec);
    const bool scatters = spec.strategy.sharding == find_sharding("zero2");
    EXPECT_EQ(elements_moved(plan, 0, Dimension::data, Moves::reduce_scatter) > 0, scatters) << sharding;
    EXPECT_EQ(elements_moved(plan, 0, Dimension::data, Moves::all_reduce) > 0, !scatters) << sharding;
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
      for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
        const bool end = pipeline > 1 && (slot == 0 || slot + 1 == plan.classes.size());
        EXPECT_EQ(elements_moved(plan, slot, Dimension::embedding, Moves::all_reduce),
                  end ? 256 * 64 / 2 / (shards ? 2 : 1) : 0)
            << sharding << " " << pipeline << " " << slot;
      }
    }
  }
}

// With two copies of the model, the stages at both ends of a pipeline begin one copy and end the other: each stage's
// copies share a tied table in place (DeepSeek-V3 Technical Report, arXiv:2412.19437, section 3.2.3), and the two
// stages reduce it like all other weights.
TEST(DataParallel, CopiesShareTheTiedEmbeddingWhereItLies) {
  const std::string tied = std::string(test::kSmall) + ", tied_embeddings: true";
  for (const char* schedule : {"chimera", "dualpipe", "chimera-4"}) {
    for (const char* sharding : {"none", "zero1"}) {
      const std::string strategy =
          fmt::format("pipeline: 4, schedule: {}, sharding: {}, global_batch: 8", schedule, sharding);
      const Plan plan = make_plan(test::spec_of(tied, strategy));
      for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
        EXPECT_EQ(elements_moved(plan, slot, Dimension::embedding, Moves::all_reduce), 0) << schedule;
        std::int64_t tables = 0;
        for (const std::uint32_t state : states_of(plan, slot)) {
          for (const PlacedParameter& p : parameters_of(plan, state)) tables += p.name == kEmbeddingTable ? 1 : 0;
        }
        const bool end = slot == 0 || slot + 1 == plan.classes.size();
        EXPECT_EQ(tables, end || schedule == std::string("chimera-4") ? 1 : 0) << schedule << " " << slot;
      }
    }
  }
}

// Under ZeRO-1 each rank owns a piece of every bucket, so both stages must cut the tied matrix alike: it has a bucket
// of its own.
TEST(DataParallel, TiedEmbeddingHasItsOwnBucket) {
  const Plan plan = make_plan(test::spec_of(std::string(test::kSmall) + ", tied_embeddings: true, positions: learned",
                                            "pipeline: 2, data: 2, sharding: zero1, bucket_MiB: 1000000"));
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    int found = 0;
    for (TaskId t = plan.classes[slot].begin; t < plan.classes[slot].end; ++t) {
      const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
      found += c != nullptr && c->kind == Moves::reduce_scatter && c->bytes / c->width == 256 * 64;
    }
    EXPECT_EQ(found, 1) << slot;
  }
}

// The pieces of the token-embedding table that each data rank of a stage owns, as (first, elements) from the table's
// start: cut by whatever collectives reduce the table. The stage's flat buffer has the table at `base`.
std::vector<std::pair<std::int64_t, std::int64_t>> pieces_of_table(const Plan& plan, std::uint32_t slot, BlockRole role,
                                                                   std::int64_t table, std::int64_t rank,
                                                                   std::int64_t ranks) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
  std::int64_t base = -1;
  std::uint32_t unit = kNone;
  for (const Frame& f : plan.frames) {
    if (f.slot == slot && plan.blocks[f.block].role == role) {
      base = f.base;
      unit = f.unit;
    }
  }
  for (TaskId t = plan.classes[slot].begin; t < plan.classes[slot].end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c == nullptr || c->kind != Moves::reduce_scatter) continue;
    const bool flat = plan.op_of(t).phase == Phase::step;
    if (!flat && plan.tasks[t].frame != unit) continue;
    const std::int64_t part = (c->bytes / c->width + ranks - 1) / ranks;
    const std::int64_t first = c->first - (flat ? base : 0) + rank * part;
    const std::int64_t last = c->first - (flat ? base : 0) + c->bytes / c->width;
    const std::int64_t begin = std::max<std::int64_t>(0, first), end = std::min({table, first + part, last});
    if (begin < end) pieces.emplace_back(begin, end - begin);
  }
  std::sort(pieces.begin(), pieces.end());
  return pieces;
}

// A rank of the first stage sums its shard of the tied table with that of the last stage: both must own the same part,
// also where the first has a position table beside it.
TEST(DataParallel, TiedShardsAreTheSameOnBothStages) {
  for (const char* positions : {"rope", "learned"}) {
    for (const char* sharding : {"zero1", "zero2", "zero3", "fsdp", "fsdp-grad-op"}) {
      for (const int data : {2, 3}) {
        for (const double bucket : {0.0, 0.01}) {
          const Plan plan = make_plan(test::spec_of(
              std::string(test::kSmall) + ", tied_embeddings: true, positions: " + positions,
              fmt::format("pipeline: 2, data: {}, sharding: {}, bucket_MiB: {}", data, sharding, bucket)));
          const std::int64_t table = 256 * 64;
          std::int64_t owned = 0;
          for (int rank = 0; rank < data; ++rank) {
            const auto first = pieces_of_table(plan, 0, BlockRole::embedding, table, rank, data);
            EXPECT_EQ(first, pieces_of_table(plan, 1, BlockRole::output, table, rank, data)) << sharding << positions;
            for (const auto& [begin, elements] : first) owned += elements;
          }
          EXPECT_EQ(owned, table);
        }
      }
    }
  }
}

// The gradient norm is summed over every rank that holds another part of the model, when clipping is on.
TEST(DataParallel, ClipsOverTheModel) {
  for (const int clip : {0, 1}) {
    for (const char* sharding : {"none", "zero1", "fsdp"}) {
      const Plan plan = make_plan(test::spec_of(
          test::kSmall, fmt::format("tensor: 2, pipeline: 2, data: 2, sharding: {}, clip: {}", sharding, clip)));
      EXPECT_EQ(elements_moved(plan, 0, Dimension::model, Moves::all_reduce), clip);
      EXPECT_EQ(group_size(plan, Dimension::model), std::string(sharding) == "none" ? 4 : 8);
    }
  }
}

// fp16 unscales the gradients that the update reads and asks all ranks of the model whether one found an infinity;
// clipping multiplies the gradients once more, unless the update does both itself.
TEST(DataParallel, ScalesGradients) {
  for (const char* sharding : {"none", "zero1", "zero2", "fsdp"}) {
    for (const bool fp16 : {false, true}) {
      for (const bool clip : {false, true}) {
        for (const bool fused : {false, true}) {
          const Spec spec = test::spec_of(test::kSmall,
                                          fmt::format("tensor: 2, data: 2, sharding: {}, precision: {}, clip: {}",
                                                      sharding, fp16 ? "fp16" : "bf16", clip ? 1 : 0),
                                          32, fmt::format("profile: orrery, fused_clip: {}", fused));
          const Plan plan = make_plan(spec);
          const std::int64_t own = test::local_parameters(spec, 0)[0] / (std::string(sharding) == "none" ? 1 : 2);
          const bool unscales = fp16 && !(fused && clip), clips = clip && !fused;
          EXPECT_EQ(passes(plan, "unscale gradients").elements, unscales ? own : 0);
          EXPECT_EQ(passes(plan, "reduce found infinity").elements, unscales ? 1 : 0);
          EXPECT_EQ(passes(plan, "gradient norm").elements, clip ? own : 0);
          EXPECT_EQ(passes(plan, "reduce gradient norm").elements, clip ? 1 : 0);
          EXPECT_EQ(passes(plan, "clip gradients").elements, clips ? own : 0);
        }
      }
    }
  }
}

// A table's dense gradient: zeroed, filled and added, a micro-batch each; a unit's own buffer needs no adding, unless
// the output has written there.
TEST(DataParallel, DenseEmbeddingGradients) {
  const auto count = [](const char* sharding, bool dense, bool tied, const char* name) {
    return passes(make_plan(test::spec_of(std::string(test::kSmall) + (tied ? ", tied_embeddings: true" : ""),
                                          fmt::format("data: 2, sharding: {}, global_batch: 4", sharding), 32,
                                          fmt::format("profile: orrery, dense_embedding_gradient: {}", dense))),
                  name)
        .count;
  };
  for (const bool dense : {false, true}) {
    for (const bool tied : {false, true}) {
      EXPECT_EQ(count("none", dense, tied, "embedding gradient zero"), dense ? 2 : 0);
      EXPECT_EQ(count("none", dense, tied, "embedding accumulate"), dense ? 2 : 0);
      EXPECT_EQ(count("zero3", dense, tied, "embedding gradient zero"), dense || !tied ? 2 : 0);
      EXPECT_EQ(count("zero3", dense, tied, "embedding accumulate"), dense && tied ? 2 : 0);
    }
  }
}

// A gather for backward, and the cast before it, count as backward.
TEST(DataParallel, GathersHaveThePhaseTheyAreFor) {
  for (const char* sharding : {"zero3", "fsdp"}) {
    const Plan plan = make_plan(test::spec_of(test::kSmall, fmt::format("data: 2, sharding: {}", sharding)));
    std::map<std::pair<std::string, Phase>, int> count;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const Op& op = plan.op_of(t);
      if (op.name == "gather unit" || op.name == "cast shard") ++count[{op.name, op.phase}];
    }
    EXPECT_GT((count[{"gather unit", Phase::forward}]), 0) << sharding;
    EXPECT_GT((count[{"gather unit", Phase::backward}]), 0) << sharding;
    EXPECT_EQ((count[{"cast shard", Phase::backward}] > 0), (count[{"cast shard", Phase::forward}] > 0)) << sharding;
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

// Gathers under the update: each bucket is updated by an op of its own, and its gather waits for that update alone, so
// that the next bucket's update runs beside it. The same elements move as in gathers under forward or before it.
TEST(DataParallel, GathersBucketsAsTheyAreUpdated) {
  for (const char* sharding : {"zero1", "zero2"}) {
    const auto plan_with = [&](const char* gather) {
      return make_plan(test::spec_of(
          test::kSmall, fmt::format("data: 4, global_batch: 8, bucket_MiB: 0.2, sharding: {}, precision: fp16, "
                                    "overlap: {{parameter_gather: {}}}",
                                    sharding, gather)));
    };
    const Plan plan = plan_with("update");
    std::vector<TaskId> updates, gathers;
    std::int64_t updated = 0;
    for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
      const Op& op = plan.op_of(t);
      if (const auto* u = std::get_if<Update>(&op.work)) {
        EXPECT_EQ(u->first, updated) << sharding;
        updated += u->elements;
        updates.push_back(t);
      }
      if (op.name != "gather parameters") continue;
      gathers.push_back(t);
      ASSERT_EQ(gathers.size(), updates.size()) << sharding;
      const std::vector<TaskId> waits(plan.dependencies.begin() + plan.tasks[t].first_dependency,
                                      plan.dependencies.begin() + plan.tasks[t + 1].first_dependency);
      EXPECT_EQ(waits, std::vector{updates.back()}) << sharding;
    }
    EXPECT_GT(gathers.size(), 3U) << sharding;
    EXPECT_LT(gathers[0], updates.back()) << sharding;
    for (const char* other : {"true", "false"}) {
      EXPECT_EQ(elements_moved(plan, 0, Dimension::data, Moves::all_gather),
                elements_moved(plan_with(other), 0, Dimension::data, Moves::all_gather))
          << sharding;
    }
  }
}

}  // namespace
}  // namespace orrery
