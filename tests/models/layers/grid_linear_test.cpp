// Weights, activations, FLOPs and traffic of the ranks of a tensor-parallel grid, against the closed forms of Optimus
// (2104.05343), Tesseract (2105.14500) and 3D tensor parallelism (2105.14450).
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "models/layout/placement.h"
#include "tests/models/kept.h"

namespace orrery {
namespace {

using test::kept;
using test::spec_of;

struct Grid {
  std::string keys;
  std::int64_t q = 2, depth = 1;  // ranks of a side; number of parts of the samples beyond q
  bool cube = false;

  std::int64_t ranks() const { return q * q * depth; }
  std::int64_t copies() const { return cube ? 1 : depth; }  // copies of every weight
};

std::vector<Grid> grids() {
  return {{"tensor: 4, tensor_kind: 2d", 2, 1, false},
          {"tensor: 16, tensor_kind: 2d", 4, 1, false},
          {"tensor: 8, tensor_kind: 2.5d, tensor_depth: 2", 2, 2, false},
          {"tensor: 8, tensor_kind: 3d", 2, 2, true},
          {"tensor: 64, tensor_kind: 3d", 4, 4, true}};
}

const char* const kGridModel =
    "name: gpt, layers: 3, hidden: 64, heads: 8, feed_forward: 256, vocab: 256, gated: false, norm: layernorm, "
    "positions: none, bias: true, dropout: 0.1";
constexpr std::int64_t kGridHidden = 64, kGridWide = 256, kGridVocab = 256, kGridLayers = 3, kGridSequence = 32,
                       kGridBatch = 16;

Spec spec_on_grid(const std::string& keys, const std::string& more = "") {
  return spec_of(kGridModel, fmt::format("{}, micro_batch: {}, precision: fp16, clip: 0{}", keys, kGridBatch, more),
                 kGridSequence);
}

Plan plan_on_grid(const Grid& g, const std::string& more = "") { return make_plan(spec_on_grid(g.keys, more)); }

std::int64_t matrix_elements(const Plan& plan) {
  std::int64_t sum = 0;
  for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0).front()))
    sum += p.local.in > 1 ? p.local.out * p.local.in : 0;
  return sum;
}

// Elements of matrices: 12 h^2 per layer, and two tables.
constexpr std::int64_t kGridMatrices = kGridLayers * 12 * kGridHidden * kGridHidden + 2 * kGridVocab * kGridHidden;

TEST(Grid, HoldsAPthOfEveryMatrixAndAQthOfEveryVector) {
  for (const Grid& g : grids()) {
    const Plan plan = plan_on_grid(g);
    EXPECT_EQ(matrix_elements(plan), kGridMatrices * g.copies() / g.ranks()) << g.keys;
    std::int64_t vectors = 0;
    for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0).front())) {
      vectors += p.local.in == 1 ? p.local.out : 0;
      EXPECT_EQ(p.local.partial, p.local.in == 1) << p.name;
    }
    // Elements of vectors: two norms (4h), biases 3h + h + 4h + h; the final norm.
    EXPECT_EQ(vectors, (kGridLayers * 13 * kGridHidden + 2 * kGridHidden) / g.q) << g.keys;
  }
}

// With p ranks in a tensor-parallel grid, a rank keeps (34 s b h + 5 a s^2 b) / p activations: only the statistics of
// norms are held more than once.
TEST(Grid, KeepsAPthOfALayersActivations) {
  const std::int64_t sbh = kGridSequence * kGridBatch * kGridHidden,
                     scores = 5 * 8 * kGridSequence * kGridSequence * kGridBatch;
  for (const Grid& g : grids()) {
    EXPECT_EQ(kept(spec_on_grid(g.keys, ", attention: unfused")).bytes, (34 * sbh + scores) / g.ranks()) << g.keys;
    EXPECT_EQ(kept(spec_on_grid(g.keys, ", attention: flash")).bytes, 34 * sbh / g.ranks()) << g.keys;
    EXPECT_EQ(kept(spec_on_grid(g.keys, ", recompute: full")).bytes, 2 * sbh / g.ranks()) << g.keys;
    EXPECT_EQ(kept(spec_on_grid(g.keys, ", attention: unfused")).statistics,
              2 * 8 * kGridSequence * kGridBatch / (g.q * g.depth));
  }
}

TEST(Grid, MultipliesAPthOfTheWhole) {
  for (const Grid& g : grids()) {
    const Plan plan = plan_on_grid(g);
    double flops = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const auto* gemm = std::get_if<Gemm>(&plan.op_of(t).work);
      if (gemm != nullptr && gemm->heads == 0) flops += cost_of(*gemm, 2).flops;
    }
    const double products =
        static_cast<double>(kGridLayers * 12 * kGridHidden * kGridHidden + kGridVocab * kGridHidden);
    EXPECT_EQ(flops, 6 * products * kGridSequence * kGridBatch / static_cast<double>(g.ranks())) << g.keys;
  }
}

// Sizes of a rank's blocks of a product's input, weight and output, summed over the layers; and of the tables and the
// logits.
struct GridBlocks {
  explicit GridBlocks(const Grid& g) {
    const std::int64_t rows = kGridSequence * kGridBatch / (g.q * g.depth);
    x = kGridLayers * rows * (3 * kGridHidden + kGridWide) / g.q;
    y = kGridLayers * rows * (5 * kGridHidden + kGridWide) / g.q;
    w = kGridLayers * 12 * kGridHidden * kGridHidden * g.copies() / g.ranks();
    table = kGridVocab * kGridHidden * g.copies() / g.ranks();
    logits = rows * kGridVocab / g.q;
    hidden = rows * kGridHidden / g.q;
  }
  std::int64_t x, y, w, table, logits, hidden;
};

// For every product two matrices move, each in q panels: in forward both are broadcast; for a gradient one is broadcast
// and the parts of the other are reduced. For the output layer the table and the logits move, not the input; a lookup
// moves the table.
TEST(Grid, SummaBroadcastsAndReducesPanels) {
  using K = CollectiveKind;
  for (const Grid& g : grids()) {
    if (g.cube) continue;
    const Plan plan = plan_on_grid(g);
    const GridBlocks b(g);
    const auto moved = [&](Dimension group, K kind) { return test::elements_moved(plan, 0, group, kind); };
    EXPECT_EQ(moved(Dimension::tensor_row, K::broadcast), g.q * (2 * b.x + 2 * b.logits)) << g.keys;
    EXPECT_EQ(moved(Dimension::tensor_row, K::reduce), g.q * (b.x + b.logits)) << g.keys;
    EXPECT_EQ(moved(Dimension::tensor_column, K::broadcast), g.q * (2 * b.w + 3 * b.table)) << g.keys;
    EXPECT_EQ(moved(Dimension::tensor_column, K::reduce), g.q * (b.w + 2 * b.table)) << g.keys;
    for (const K kind : {K::all_gather, K::reduce_scatter})
      EXPECT_EQ(moved(Dimension::tensor_row, kind) + moved(Dimension::tensor_column, kind), 0) << g.keys;
  }
}

// All three matrices of a product move along an axis each: read, gathered; as the result, scattered. Inputs and outputs
// change axes from one product to the next.
TEST(Grid, ACubeGathersAndScattersAlongThreeAxes) {
  using K = CollectiveKind;
  for (const Grid& g : grids()) {
    if (!g.cube) continue;
    const Plan plan = plan_on_grid(g);
    const GridBlocks b(g);
    const auto moved = [&](K kind) {
      std::int64_t sum = 0;
      for (const Dimension d : {Dimension::tensor_row, Dimension::tensor_column})
        sum += test::elements_moved(plan, 0, d, kind);
      return sum;
    };
    EXPECT_EQ(test::elements_moved(plan, 0, Dimension::tensor_depth, K::all_gather), g.q * (2 * b.w + 3 * b.table));
    EXPECT_EQ(test::elements_moved(plan, 0, Dimension::tensor_depth, K::reduce_scatter), g.q * (b.w + 2 * b.table));
    EXPECT_EQ(moved(K::all_gather), g.q * (2 * b.x + 2 * b.y + 2 * b.hidden + 2 * b.logits + b.hidden)) << g.keys;
    EXPECT_EQ(moved(K::reduce_scatter), g.q * (b.x + b.y + b.hidden + b.logits + b.hidden)) << g.keys;
  }
}

// SUMMA receives the next panel while one is multiplied: of each matrix two panels are held at a time.
TEST(Grid, HoldsTwoPanelsOfAMatrixAtATime) {
  const Plan plan = plan_on_grid(grids()[1]);
  std::map<std::pair<std::uint32_t, std::string>, int> alive;  // by frame and matrix
  int most = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    const Frame& frame = plan.frames[plan.tasks[t].frame];
    const auto panel = [&](const Operand& o) {
      const std::string& name = plan.blocks[frame.block].buffers[o.slot].name;
      return o.scope == Scope::own && name.ends_with(" panel") ? name : "";
    };
    for (const Operand& o : op.allocates)
      if (const auto name = panel(o); !name.empty()) most = std::max(most, ++alive[{plan.tasks[t].frame, name}]);
    for (const Operand& o : op.frees)
      if (const auto name = panel(o); !name.empty()) --alive[{plan.tasks[t].frame, name}];
  }
  EXPECT_EQ(most, 2);
  for (const auto& [key, count] : alive) EXPECT_EQ(count, 0) << key.second;
}

TEST(Grid, RefusesWhatItCannotCut) {
  const std::pair<const char*, const char*> cases[] = {
      {"tensor: 4, tensor_kind: 2d, micro_batch: 3", "micro_batch: 3 is not a multiple of 2"},
      {"tensor: 8, tensor_kind: 2.5d, tensor_depth: 2, micro_batch: 2", "micro_batch: 2 is not a multiple of 4"},
      {"tensor: 8, tensor_kind: 3d, micro_batch: 2", "micro_batch: 2 is not a multiple of 4"},
      {"tensor: 2, tensor_kind: 2.5d, tensor_depth: 2", "tensor: 2 makes no 2.5d grid"},
      {"tensor: 9, tensor_kind: 2d, micro_batch: 3", "the side 3 of its grid does not divide heads: 8"},
      {"tensor: 4, tensor_kind: 2d, micro_batch: 2, sequence_parallel: true",
       "a grid cuts activations itself; leave sequence_parallel out"},
      {"tensor: 4, tensor_kind: 2d, micro_batch: 2, context: 2", "(2d, 2.5d, 3d) with context above 1"},
      {"tensor: 4, tensor_kind: 2d, micro_batch: 2, precision: fp8", "(2d, 2.5d, 3d) with eight-bit products"},
      {"tensor: 4, tensor_kind: 2d, micro_batch: 2, sharding: hsdp", "(2d, 2.5d, 3d) with hsdp"},
      {"tensor: 4, tensor_kind: 2d, micro_batch: 2, offload: {optimizer: cpu}", "(2d, 2.5d, 3d) with offload"}};
  for (const auto& [keys, what] : cases) {
    try {
      make_plan(spec_of(kGridModel, keys, kGridSequence));
      ADD_FAILURE() << keys;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << keys << ": " << e.what();
    }
  }
}

// A grid of q columns holds max(q, g) key/value heads for g heads. What several ranks hold, each with a part of its
// gradient, is summed once a step: 2 d rows of h / q weights a layer, and the 2 d biases.
TEST(Grid, HoldsCopiesOfFewerKeyValueHeadsThanColumns) {
  constexpr std::int64_t kHeads = 8, kDim = kGridHidden / kHeads;
  for (const Grid& g : grids()) {
    if (g.cube) continue;
    for (const std::int64_t kv : {1, 2}) {
      Spec spec = spec_on_grid(g.keys, ", gradient_precision: fp32");
      spec.model.kv_heads = kv;
      const Plan plan = make_plan(spec);
      const std::int64_t held = std::max(kv, g.q), saved = kGridLayers * 2 * (kHeads - held) * kDim * kGridHidden;
      EXPECT_EQ(matrix_elements(plan), (kGridMatrices - saved) * g.copies() / g.ranks()) << g.keys;
      const std::int64_t shared = kv < g.q ? kGridLayers * 2 * kDim * (kGridHidden / g.q + 1) : 0;
      EXPECT_EQ(test::elements_moved(plan, 0, Dimension::kv, CollectiveKind::all_reduce), shared) << g.keys << kv;
    }
  }
}

// PaLM 540B, whose 48 heads share their keys and values, on 4 x 4 x 2 ranks: each row of ranks holds 4 copies of the
// head.
TEST(Grid, PlansPalm) {
  const Plan plan = make_plan(spec_of(
      "name: palm, layers: 118, hidden: 18432, heads: 48, kv_heads: 1, head_dim: 256, feed_forward: 73728, vocab: "
      "256000, tied_embeddings: true, norm: layernorm, bias: false, parallel_block: true",
      "tensor: 32, tensor_kind: 2.5d, tensor_depth: 2, data: 1, micro_batch: 8, recompute: full", 2048));
  constexpr std::int64_t kQ = 4, kH = 18432, kHeads = 48 * 256, kKeys = 2 * 256, kInner = 73728;
  EXPECT_EQ(matrix_elements(plan), (118 * kH * (2 * kHeads + kQ * kKeys + 3 * kInner) + 256000 * kH) / (kQ * kQ));
  EXPECT_EQ(test::elements_moved(plan, 0, Dimension::kv, CollectiveKind::all_reduce), 118 * kKeys * kH / kQ);
}

}  // namespace
}  // namespace orrery
