// Matrices and their cuts.
#include "sim/picture/matrices.h"

#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "models/spec/vision.h"
#include "sim/picture/weights.h"
#include "tests/models/plans.h"
#include "tests/models/vision_specs.h"

namespace orrery {
namespace {

std::map<std::string, MatrixCut> matrices_of(const Spec& spec, const std::string& title) {
  std::map<std::string, MatrixCut> found;
  for (const MatrixPanel& panel : matrix_panels(spec, make_plan(spec))) {
    if (panel.title != title) continue;
    for (const MatrixCut& cut : panel.matrices) found[cut.name] = cut;
  }
  return found;
}

std::string labels_of(const MatrixCut& cut, const HeldPart& part) {
  std::string text;
  for (const std::size_t h : part.holders) text += (text.empty() ? "" : " ") + cut.holders.at(h).label;
  return text;
}

bool overlap(const HeldPart& a, const HeldPart& b) {
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.column < b.column + b.columns &&
         b.column < a.column + a.columns;
}

// Parts do not overlap and together are the matrix; every holder holds something.
void expect_tiled(const MatrixCut& cut) {
  SCOPED_TRACE(cut.name);
  std::int64_t area = 0;
  std::vector<int> held(cut.holders.size());
  for (std::size_t i = 0; i < cut.parts.size(); ++i) {
    const HeldPart& p = cut.parts[i];
    area += p.rows * p.columns;
    for (const std::size_t h : p.holders) ++held.at(h);
    for (std::size_t k = 0; k < i; ++k) EXPECT_FALSE(overlap(p, cut.parts[k])) << i << " and " << k;
  }
  EXPECT_EQ(area, cut.rows * cut.columns);
  EXPECT_EQ(cut.rows * cut.columns, cut.out * cut.in * std::max<std::int64_t>(1, cut.experts));
  for (const int count : held) EXPECT_GT(count, 0);
}

TEST(Matrices, PartsTileTheMatrixForAnySpec) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Spec spec = test::random_spec(seed);
    for (const MatrixPanel& panel : matrix_panels(spec, make_plan(spec))) {
      for (const MatrixCut& cut : panel.matrices) expect_tiled(cut);
    }
  }
}

// All matrices and vectors of all layers are as many numbers as the model has parameters.
TEST(Matrices, TogetherTheyAreTheModel) {
  for (const char* model : {"llama-3.2-1b", "gpt2", "deepseek-v2-lite", "mixtral-8x7b", "qwen3-0.6b", "gemma-3-1b"}) {
    SCOPED_TRACE(model);
    const Spec spec = test::spec_of(model, "data: 2, global_batch: 2", 1024);
    const Plan plan = make_plan(spec);
    const std::vector<WeightKind> kinds = weight_kinds(spec, plan);
    const std::vector<MatrixPanel> panels = matrix_panels(spec, plan);
    ASSERT_EQ(kinds.size(), panels.size());
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < panels.size(); ++i) {
      std::int64_t own = panels[i].vector_elements;
      for (const MatrixCut& cut : panels[i].matrices) own += cut.rows * cut.columns;
      sum += own * kinds[i].count;
    }
    EXPECT_EQ(sum, parameter_count(spec.model, spec.sequence));
  }
}

// Megatron-LM: q, k, v, gate and up by rows, output and down by columns; heads of k that several ranks need lie on
// each.
TEST(Matrices, TensorRanksCutRowsAndColumns) {
  const Spec spec = test::spec_of(
      "name: small, layers: 8, hidden: 64, heads: 8, kv_heads: 2, head_dim: 8, "
      "feed_forward: 256, vocab: 256",
      "tensor: 4, global_batch: 1");
  std::map<std::string, MatrixCut> attention = matrices_of(spec, "Attention"), mlp = matrices_of(spec, "MLP");
  const MatrixCut& q = attention.at("q");
  ASSERT_EQ(q.parts.size(), 4U);
  EXPECT_EQ(q.parts[1].row, 16);
  EXPECT_EQ(q.parts[1].rows, 16);
  EXPECT_EQ(q.parts[1].columns, 64);
  EXPECT_EQ(labels_of(q, q.parts[1]), "t1");
  const MatrixCut& k = attention.at("k");
  ASSERT_EQ(k.parts.size(), 2U);
  EXPECT_EQ(labels_of(k, k.parts[0]), "t0 t1");
  EXPECT_EQ(labels_of(k, k.parts[1]), "t2 t3");
  const MatrixCut& output = attention.at("output");
  EXPECT_EQ(output.parts[1].column, 16);
  EXPECT_EQ(output.parts[1].rows, 64);
  EXPECT_EQ(mlp.at("gate").parts[3].row, 192);
  EXPECT_EQ(mlp.at("up").parts[3].row, 192);
  EXPECT_EQ(mlp.at("down").parts[3].column, 192);
  EXPECT_EQ(matrices_of(spec, "Embedding and head").at("embedding.word").parts[3].row, 192);
}

// A 2D grid (Optimus, arXiv 2104.05343) gives rank (i, j) block (i, j); rows of the grid may stand for columns.
TEST(Matrices, GridsCutBothWays) {
  const Spec spec = test::spec_of("layers: 2, hidden: 64, heads: 8, vocab: 256, feed_forward: 128, gated: false",
                                  "tensor: 4, tensor_kind: 2d, micro_batch: 8, global_batch: 8");
  const MatrixCut up = matrices_of(spec, "MLP").at("up");
  ASSERT_EQ(up.parts.size(), 4U);
  for (const HeldPart& p : up.parts) {
    EXPECT_EQ(p.rows, 64);
    EXPECT_EQ(p.columns, 32);
  }
}

TEST(Matrices, ExpertsLieOnExpertRanks) {
  const std::string moe =
      "name: moe, layers: 2, hidden: 64, heads: 8, head_dim: 8, feed_forward: 256, vocab: 256, moe: {experts: 8, "
      "top_k: 2, feed_forward: 64}";
  const Spec spec = test::spec_of(moe, "data: 4, expert: 4, global_batch: 4");
  const std::map<std::string, MatrixCut> experts = matrices_of(spec, "Experts");
  const MatrixCut& up = experts.at("experts.up");
  EXPECT_TRUE(up.across);
  EXPECT_EQ(up.experts, 8);
  ASSERT_EQ(up.parts.size(), 4U);
  EXPECT_EQ(labels_of(up, up.parts[2]), "e2");
  EXPECT_EQ(up.parts[2].column, 4 * 64);  // experts 4 and 5 of 8
  EXPECT_EQ(up.parts[2].columns, 2 * 64);
  const MatrixCut& down = experts.at("experts.down");
  EXPECT_FALSE(down.across);
  EXPECT_EQ(down.parts[3].row, 6 * 64);
  EXPECT_EQ(experts.at("router").parts.size(), 1U);
  const Spec cut = test::spec_of(moe, "tensor: 2, data: 4, expert: 4, expert_tensor: 2, global_batch: 4");
  const MatrixCut half = matrices_of(cut, "Experts").at("experts.down");
  EXPECT_EQ(half.holders.size(), 8U);
  EXPECT_EQ(half.holders[3].label, "e1.1");
  expect_tiled(half);
}

// The encoder's heads are its own, not those of the text model.
TEST(Matrices, VisionEncodersHaveTheirOwnHeads) {
  const Spec spec = test::seeing("tensor: 2, global_batch: 1");
  std::int64_t sum = 0, count = 0;
  for (const MatrixPanel& panel : matrix_panels(spec, make_plan(spec))) {
    if (!panel.title.starts_with("Vision")) continue;
    const std::int64_t layers = panel.title.ends_with("layer") ? spec.model.vision->layers : 1;
    for (const MatrixCut& cut : panel.matrices) {
      expect_tiled(cut);
      sum += layers * cut.rows * cut.columns;
      ++count;
    }
  }
  std::int64_t expected = 0;
  for (const Parameter& p : vision_parameters(spec.model)) expected += p.in > 1 ? elements(p) : 0;
  EXPECT_EQ(sum, expected);
  EXPECT_GT(count, 6);
}

// ZeRO-3 over four ranks: the shares of a layer's matrices are a partition of each, in the order of the ranks.
TEST(Matrices, SharesAreThoseOfDataRanks) {
  const Spec spec = test::spec_of(test::kSmall, "data: 4, sharding: zero3, global_batch: 4");
  std::map<std::int64_t, double> elements_of;  // elements of layer 0 that each data rank keeps
  for (const char* title : {"Attention", "MLP"}) {
    for (const auto& [name, cut] : matrices_of(spec, title)) {
      SCOPED_TRACE(name);
      EXPECT_EQ(cut.sharers, 4);
      EXPECT_TRUE(cut.shares_weights);
      ASSERT_FALSE(cut.shares.empty());
      double end = 0;
      for (const Share& s : cut.shares) {
        EXPECT_NEAR(s.begin, end, 1e-12);
        end = s.end;
        elements_of[s.member] += (s.end - s.begin) * static_cast<double>(cut.rows * cut.columns);
      }
      EXPECT_NEAR(end, 1, 1e-12);
    }
  }
  // A layer has 4 * 64 * 64 + 3 * 256 * 64 numbers in matrices and 128 in norms, of which each rank keeps a quarter.
  ASSERT_EQ(elements_of.size(), 4U);
  for (const auto& [member, count] : elements_of) EXPECT_NEAR(count, (4 * 64 * 64 + 3 * 256 * 64) / 4.0, 128) << member;
  const Spec whole = test::spec_of(test::kSmall, "data: 4, sharding: none, global_batch: 4");
  EXPECT_EQ(matrices_of(whole, "MLP").at("up").sharers, 1);
}

}  // namespace
}  // namespace orrery
