// Tensor ranks in a grid (2d, 2.5d, 3d) against one rank: gradients, losses and weights of small models, alone and with
// data ranks, sharding, pipelines and recomputation.
#include <cstring>

#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

struct Ended : Pending {
  bool done() override { return true; }
};

// A faulty transport that leaves out the sums over one kind of group: every rank takes its own part for the whole.
class MissingSums : public Transport {
 public:
  MissingSums(std::unique_ptr<Transport> real, Dimension group) : real_(std::move(real)), group_(group) {}
  std::unique_ptr<Pending> start(LaneKind lane, const CollectiveCall& call) override {
    const bool sums = call.kind == CollectiveKind::reduce || call.kind == CollectiveKind::reduce_scatter ||
                      (call.kind == CollectiveKind::all_reduce && call.group == Dimension::kv);
    if (!sums || call.group != group_) return real_->start(lane, call);
    std::memcpy(call.out, call.in, static_cast<std::size_t>(call.counts[0]) * sizeof(float));
    return std::make_unique<Ended>();
  }
  std::unique_ptr<Pending> start(LaneKind lane, const MessageCall& call) override { return real_->start(lane, call); }

 private:
  std::unique_ptr<Transport> real_;
  Dimension group_;
};

class Grids : public testing::TestWithParam<Case> {};

TEST_P(Grids, AgreeWithOneRank) {
  const auto d = distance_of(spec_of(GetParam()));
  if (!d) return;
  expect_agreement(*d);
}

// A model with dropout masks of one sequence: rows, columns and heads must be found in the whole tensor.
const std::string kUntied =
    "{name: tiny-untied, layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 250, gated: false, positions: "
    "learned, norm: layernorm, bias: true, dropout: 0.1}";

// Models with fewer key/value heads than the side of a grid: ranks of a row hold copies of a head.
const std::string kOneHead =
    "{name: tiny-one-head, layers: 2, hidden: 64, heads: 4, kv_heads: 1, feed_forward: 128, vocab: 250, gated: false, "
    "positions: learned, norm: layernorm, bias: true, dropout: 0.1}";
const std::string kPalm =
    "{name: tiny-palm, layers: 2, hidden: 64, heads: 8, kv_heads: 1, feed_forward: 128, vocab: 256, tied_embeddings: "
    "true, parallel_block: true, qk_norm: true}";

const std::string kSquare = "tensor: 4, tensor_kind: 2d, ";
const std::string kLayers = "tensor: 8, tensor_kind: 2.5d, tensor_depth: 2, ";
const std::string kCube = "tensor: 8, tensor_kind: 3d, ";

const Case kGrids[] = {
    {kLlama, kSquare + "data: 1, micro_batch: 2, global_batch: 4"},
    {kLlama, kSquare + "data: 1, micro_batch: 2, global_batch: 4", "sgd"},
    {kUntied, kSquare + "data: 1, micro_batch: 4, global_batch: 4"},
    {kUntied, kSquare + "data: 2, micro_batch: 2, global_batch: 4, attention: unfused, recompute: selective"},
    {kGpt, kSquare + "data: 2, micro_batch: 2, global_batch: 8, sharding: zero1"},
    {kGpt, kSquare + "pipeline: 2, data: 1, micro_batch: 2, global_batch: 4, recompute: full"},
    {kQwen, kSquare + "data: 2, micro_batch: 2, global_batch: 4, sharding: zero1, recompute: [norm, activation]"},
    {kLlama, kSquare + "data: 2, micro_batch: 2, global_batch: 8, sharding: zero2"},
    {kLlama, kSquare + "data: 2, micro_batch: 2, global_batch: 4, sharding: fsdp"},
    {kLlama, kSquare + "pipeline: 2, data: 1, micro_batch: 2, global_batch: 8, schedule: zb-h1"},
    {kWindow, kSquare + "data: 1, micro_batch: 2, global_batch: 4"},
    {kOneHead, kSquare + "data: 1, micro_batch: 2, global_batch: 4"},
    {kOneHead, kSquare + "data: 2, micro_batch: 2, global_batch: 8, sharding: zero1, attention: unfused"},
    {kOneHead, kSquare + "pipeline: 2, data: 1, micro_batch: 2, global_batch: 4, recompute: full, schedule: zb-h1"},
    {kPalm, kSquare + "data: 2, micro_batch: 2, global_batch: 4, sharding: fsdp"},
    {kPalm, kLayers + "data: 1, micro_batch: 4, global_batch: 8"},
    {kPalm, kLayers + "data: 1, micro_batch: 4, global_batch: 8, sharding: zero2, recompute: full"},
    {kOneHead, kLayers + "data: 1, micro_batch: 4, global_batch: 8, sharding: zero3"},
    {kLlama, kLayers + "data: 1, micro_batch: 4, global_batch: 8"},
    {kGpt, kLayers + "data: 1, micro_batch: 4, global_batch: 4"},
    {kUntied, kLayers + "data: 1, micro_batch: 4, global_batch: 8, sharding: zero1, recompute: selective"},
    {kLlama, kLayers + "data: 1, micro_batch: 4, global_batch: 8, sharding: zero3"},
    {kLlama, kCube + "data: 1, micro_batch: 4, global_batch: 8"},
    {kUntied, kCube + "data: 1, micro_batch: 4, global_batch: 4, attention: unfused"},
    {kGpt, kCube + "data: 1, micro_batch: 8, global_batch: 8, recompute: full"},
    {kQwen, kCube + "data: 1, micro_batch: 4, global_batch: 4, recompute: selective, sharding: zero1"},
};
INSTANTIATE_TEST_SUITE_P(All, Grids, testing::ValuesIn(kGrids));

TEST(GridFaults, AMissingSumIsSeen) {
  const auto missing = [](const std::string& grid, Dimension group) {
    const Changes changes = {.transport = [=](std::unique_ptr<Transport> real) {
      return std::make_unique<MissingSums>(std::move(real), group);
    }};
    const auto d = distance_of(spec_of({kLlama, grid + "data: 1, micro_batch: 4, global_batch: 4"}), changes);
    if (!d) return;
    EXPECT_TRUE(d->gradient > 10 * kLimit) << grid << name_of(group) << ": " << d->gradient;
  };
  missing(kSquare, Dimension::tensor_column);
  missing(kSquare, Dimension::tensor_row);
  missing(kLayers, Dimension::tensor_column);
  missing(kCube, Dimension::tensor_depth);
  missing(kCube, Dimension::tensor_column);
}

// The gradients of heads that several ranks of a row hold are wrong if they are not summed over these ranks.
TEST(GridFaults, AMissingSumOverCopiesOfAHeadIsSeen) {
  const Changes changes = {.transport = [](std::unique_ptr<Transport> real) {
    return std::make_unique<MissingSums>(std::move(real), Dimension::kv);
  }};
  const auto d = distance_of(spec_of({kPalm, kLayers + "data: 1, micro_batch: 4, global_batch: 4"}), changes);
  if (!d) return;
  EXPECT_TRUE(d->gradient > 10 * kLimit) << d->gradient;
}

}  // namespace
}  // namespace orrery
