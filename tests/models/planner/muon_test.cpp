#include "models/planner/matrix_optimizers.h"

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

struct StepWork {
  double flops = 0;
  std::int64_t gathered = 0, exchanged = 0, parts = 0, moved = 0;
};

StepWork work_of(const std::string& strategy) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, strategy + ", optimizer: muon"));
  StepWork w;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const Op& op = plan.op_of(t);
    if (const auto* o = std::get_if<Orthogonalize>(&op.work)) w.flops += cost_of(*o, 2).flops;
    if (const auto* c = std::get_if<Collective>(&op.work)) {
      w.gathered += op.name == "gather updates" ? c->bytes / c->width : 0;
      w.exchanged += c->kind == CollectiveKind::all_to_all ? c->bytes / c->width : 0;
      w.parts += op.name == "gather momentum" ? c->bytes / c->width : 0;
    }
    if (const auto* m = std::get_if<MoveDirections>(&op.work)) w.moved += m->elements;
  }
  return w;
}

// Five Newton-Schulz iterations of an m x n matrix, m <= n: 5 (4 m^2 n + 2 m^3) FLOPs.
double newton_schulz(double m, double n) { return 5 * (4 * m * m * n + 2 * m * m * m); }

constexpr std::int64_t kMuonMatrices = 64 * 192 + 64 * 64 + 64 * 512 + 256 * 64;  // of a layer
constexpr std::int64_t kLayer = kMuonMatrices + 2 * 64;                           // with its two norms

TEST(Muon, OrthogonalisesWholeMatricesOnce) {
  const double layer = newton_schulz(64, 192) + newton_schulz(64, 64) + newton_schulz(64, 512) + newton_schulz(64, 256);
  EXPECT_DOUBLE_EQ(work_of("data: 1").flops, 8 * layer);
  EXPECT_DOUBLE_EQ(work_of("data: 4, global_batch: 4").flops, 2 * layer);
  EXPECT_DOUBLE_EQ(work_of("data: 4, global_batch: 4, sharding: zero1").flops, 2 * layer);
  EXPECT_DOUBLE_EQ(work_of("data: 3, global_batch: 3").flops, 3 * layer);
}

// Every element of layers' matrices goes through the momentum once, on models of any size: 126 layers of matrices with
// 3.2e9 elements on one rank.
TEST(Muon, CountsElementsOfLargeModels) {
  const Spec spec = parse_spec(
      "model: llama-3.1-405b\nsequence: 1024\ngpus: 8\ncluster: {node: dgx-h100}\nstrategy: {data: 8, global_batch: 8, "
      "optimizer: "
      "muon}",
      "spec");
  const Plan plan = make_plan(spec);
  double momentum = 0, vectors = 0;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const auto* u = std::get_if<Update>(&plan.op_of(t).work);
    if (u == nullptr) continue;
    (u->momentum ? momentum : vectors) += static_cast<double>(u->momentum ? u->elements : u->vectors);
  }
  const double heads = 2.0 * 128256 * 16384;  // the two tables of the vocabulary
  EXPECT_NEAR(momentum + vectors, static_cast<double>(parameter_count(spec.model, spec.sequence)), 1);
  EXPECT_NEAR(vectors / heads, 1, 0.01);
}

// After the directions, matrices have no moment that is read once more; vectors have AdamW's two.
TEST(Muon, UpdatesMatricesWithoutMoments) {
  const Update adamw = {.elements = 100, .moments = 2}, muon = {.elements = 100, .moments = 1, .vectors = 10};
  EXPECT_EQ(cost_of(adamw, 2).bytes - cost_of(muon, 2).bytes, 2 * 4 * 2 * 90);
}

TEST(Muon, OrthogonalisesInSixteenBitsUnderEightBitTraining) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "precision: fp8, optimizer: muon"));
  int products = 0;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const Op& op = plan.op_of(t);
    if (!std::holds_alternative<Orthogonalize>(op.work)) continue;
    EXPECT_EQ(op.precision, Precision::bf16);
    ++products;
  }
  EXPECT_GT(products, 0);
}

TEST(Muon, PassesResultsOn) {
  EXPECT_EQ(work_of("data: 4, global_batch: 4").gathered, 8 * kLayer);
  EXPECT_EQ(work_of("data: 1").gathered, 0);
  for (const char* sharding : {"zero1", "zero2", "zero3", "fsdp"}) {
    const StepWork w = work_of(fmt::format("data: 4, global_batch: 4, sharding: {}", sharding));
    EXPECT_EQ(w.exchanged, 2 * 8 * kLayer / 4) << sharding;
    EXPECT_EQ(w.moved, 2 * 8 * kLayer / 4) << sharding;
  }
  EXPECT_EQ(work_of("data: 4, global_batch: 4, sharding: zero1, bucket_MiB: 0.01").exchanged, 2 * 8 * kLayer / 4);
  EXPECT_EQ(work_of("data: 4, global_batch: 4, sharding: hsdp, shard_group: 2").exchanged, 2 * 8 * kLayer / 2);
}

// Tensor-parallel ranks gather each other's parts of a layer's matrices, whose norms they all have, and each
// orthogonalizes the complete matrices.
TEST(Muon, TensorRanksGatherMatrices) {
  EXPECT_DOUBLE_EQ(work_of("tensor: 2").flops, work_of("data: 1").flops);
  EXPECT_EQ(work_of("tensor: 2").parts, 8 * (kMuonMatrices + 2 * 2 * 64));
  EXPECT_EQ(work_of("tensor: 2, data: 4, global_batch: 4, sharding: zero1").parts, 2 * (kMuonMatrices + 2 * 2 * 64));
}

// One moment of matrices, two of embeddings and norms.
TEST(Muon, KeepsOneMomentOfMatrices) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "optimizer: muon"));
  const std::int64_t all = 8 * (kMuonMatrices + 128) + 2 * 256 * 64 + 64;
  for (const Frame& f : plan.frames) {
    const Block& b = plan.blocks[f.block];
    if (b.role != BlockRole::state) continue;
    EXPECT_EQ(b.buffers[kMoment1].bytes, 4 * all);
    EXPECT_EQ(b.buffers[kMoment2].bytes, 4 * (all - 8 * kMuonMatrices));
    EXPECT_EQ(b.buffers[kBuckets].bytes, 2 * kLayer);
  }
}

// One rank may own both norms of a shared layer; other weights are cut evenly. Two areas hold a layer each: one that
// is sent in pieces, one that is orthogonalized.
TEST(Muon, SharesStates) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "data: 4, global_batch: 4, sharding: fsdp, optimizer: muon"));
  const std::int64_t own = (8 * kLayer + 2 * 256 * 64 + 64) / 4;
  for (const Frame& f : plan.frames) {
    const Block& b = plan.blocks[f.block];
    if (b.role != BlockRole::state) continue;
    EXPECT_EQ(b.buffers[kMoment1].bytes, 4 * own);
    EXPECT_EQ(b.buffers[kMoment2].bytes, 4 * (8 * 2 * 64 + (2 * 256 * 64 + 64) / 4));
    EXPECT_EQ(b.buffers[kBuckets].bytes, 2 * 2 * kLayer);
  }
}

}  // namespace
}  // namespace orrery
