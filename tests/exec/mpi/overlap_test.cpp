// Compute over transfers: products in pieces while tensor ranks exchange rows, and two micro-batches woven while
// experts exchange tokens, against one rank; and what pieces move, against what the whole would.
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

class Overlap : public testing::TestWithParam<Case> {};

TEST_P(Overlap, AgreesWithOneRank) { expect_like_one_rank(spec_of(GetParam())); }

// A rank's rows in four pieces where these come out even (36 of a micro-batch of two sequences, 9 of one).
const Case kOverlapped[] = {
    {kLlama, "tensor: 2, data: 1, global_batch: 2, overlap: {tensor: true}"},
    {kLlama, "tensor: 2, data: 2, micro_batch: 2, global_batch: 4, overlap: {tensor: true}"},
    {kLlama, "tensor: 4, data: 1, micro_batch: 4, global_batch: 4, overlap: {tensor: true}", "sgd"},
    {kLlama, "tensor: 4, data: 2, sharding: zero1, micro_batch: 4, global_batch: 8, overlap: {tensor: true}", "adamw",
     "megatron-core"},
    {kGpt, "tensor: 4, data: 1, global_batch: 2, overlap: {tensor: true}"},
    {kGpt,
     "tensor: 2, pipeline: 2, data: 2, micro_batch: 2, global_batch: 8, recompute: full, overlap: {tensor: true}"},
    {kGpt,
     "tensor: 4, pipeline: 2, data: 1, micro_batch: 4, schedule: zb-h1, global_batch: 16, overlap: {tensor: true}",
     "adamw", "megatron-core"},
    {kQwen, "tensor: 4, data: 1, micro_batch: 4, global_batch: 4, recompute: selective, overlap: {tensor: true}"},
    {kQwen, "tensor: 4, data: 2, sharding: fsdp, micro_batch: 2, global_batch: 4, overlap: {tensor: true}"},
    {kLlama, "tensor: 2, context: 2, data: 2, micro_batch: 2, global_batch: 4, overlap: {tensor: true}"},
    {with_experts("tiny-mixtral", "experts: 8, top_k: 2, feed_forward: 48"),
     "tensor: 2, data: 2, expert: 2, micro_batch: 2, global_batch: 4, overlap: {tensor: true}"},
};

const std::string kSixHeads = "{name: six, layers: 2, hidden: 48, heads: 6, kv_heads: 3, feed_forward: 96, vocab: 252}";

// Overlap in which a rank multiplies its own rows before those of the other ranks have arrived.
const Case kOwnRowsFirst[] = {
    {kLlama, "tensor: 2, data: 1, global_batch: 2", "adamw", "nanotron"},
    {kLlama, "tensor: 4, data: 2, global_batch: 4", "sgd", "nanotron"},
    {kGpt, "tensor: 4, pipeline: 2, data: 1, global_batch: 8", "adamw", "nanotron"},
    {kQwen, "tensor: 4, data: 2, sharding: zero1, global_batch: 4, recompute: full", "adamw", "nanotron"},
    {kSixHeads, "tensor: 3, data: 2, global_batch: 4", "adamw", "{profile: orrery, own_rows_first: true}"},
};

// PyTorch's symmetric memory, and products apart.
const Case kSymmetricMemory[] = {
    {kLlama, "tensor: 2, data: 1, micro_batch: 2, global_batch: 4, overlap: {tensor: true}", "adamw",
     "{profile: orrery, tensor_overlap: symmetric_memory, sequence_copies: true, separate_projections: true}"},
    {kQwen, "tensor: 4, data: 1, micro_batch: 4, global_batch: 4, overlap: {tensor: true}", "sgd",
     "{profile: orrery, tensor_overlap: symmetric_memory}"},
};

// Two micro-batches: each computes while the tokens of the other travel.
const std::string kExperts = with_experts("tiny-mixtral", "experts: 8, top_k: 2, feed_forward: 48");
const std::string kFourLayers =
    "{name: tiny-experts, layers: 4, hidden: 64, heads: 4, kv_heads: 2, feed_forward: 96, vocab: 250, moe: {experts: "
    "4, "
    "top_k: 2, feed_forward: 48, first_layer: 1}}";
const Case kWoven[] = {
    {kExperts, "data: 2, expert: 2, global_batch: 8, overlap: {micro_batches: true}"},
    {kExperts, "data: 2, expert: 2, global_batch: 8, overlap: {micro_batches: true}", "sgd"},
    {kExperts,
     "tensor: 2, data: 2, expert: 4, expert_tensor: 1, sharding: zero1, global_batch: 8, overlap: "
     "{micro_batches: true}"},
    {kExperts, "data: 4, expert: 4, global_batch: 12, recompute: full, overlap: {micro_batches: true}", "adamw",
     "megatron-core"},
    {kFourLayers,
     "pipeline: 2, virtual_stages: 2, data: 2, expert: 2, schedule: interleaved, global_batch: 8, overlap: "
     "{micro_batches: true}"},
    {kFourLayers,
     "pipeline: 2, virtual_stages: 2, data: 4, expert: 2, sharding: zero1, schedule: interleaved, global_batch: 16, "
     "overlap: {micro_batches: true}"},
    {kGpt, "data: 2, global_batch: 8, overlap: {micro_batches: true}"},
    {kLlama,
     "pipeline: 4, virtual_stages: 2, stage_layers: [1, 1, 1, 1, 0, 0, 0, 0], data: 1, schedule: interleaved, "
     "global_batch: 8, overlap: {micro_batches: true}"},
};

INSTANTIATE_TEST_SUITE_P(Pieces, Overlap, testing::ValuesIn(kOverlapped));
INSTANTIATE_TEST_SUITE_P(OwnRowsFirst, Overlap, testing::ValuesIn(kOwnRowsFirst));
INSTANTIATE_TEST_SUITE_P(SymmetricMemory, Overlap, testing::ValuesIn(kSymmetricMemory));
INSTANTIATE_TEST_SUITE_P(Woven, Overlap, testing::ValuesIn(kWoven));

// Counts what a rank's tensor lane is asked to move: bytes that leave it, with every gather and scatter over a ring.
class Counting : public Transport {
 public:
  Counting(std::unique_ptr<Transport> real, Bytes& bytes) : real_(std::move(real)), bytes_(bytes) {}
  std::unique_ptr<Pending> start(LaneKind lane, const CollectiveCall& call) override {
    std::int64_t sent = 0;
    for (const std::int64_t n : call.counts) sent += n;
    const auto members = static_cast<std::int64_t>(call.counts.size());
    if (lane == LaneKind::tensor && call.kind != CollectiveKind::all_reduce)
      bytes_ += (call.kind == CollectiveKind::shift ? sent : sent * (members - 1) / members) * 4;
    return real_->start(lane, call);
  }
  std::unique_ptr<Pending> start(LaneKind lane, const MessageCall& call) override { return real_->start(lane, call); }

 private:
  std::unique_ptr<Transport> real_;
  Bytes& bytes_;
};

struct Moved {
  Bytes planned = 0, executed = 0;
};

// The bytes moved on rank 0 in one step; zeros on the other ranks.
Moved moved(const Spec& spec) {
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return {};
  Moved m;
  Changes changes;
  changes.steps = 1;
  changes.transport = [&](std::unique_ptr<Transport> real) {
    return std::make_unique<Counting>(std::move(real), m.executed);
  };
  changes.plan = [&](Plan& plan) {
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const Op& op = plan.op_of(t);
      const auto* c = std::get_if<Collective>(&op.work);
      if (c != nullptr && op.lane == LaneKind::tensor && c->kind != CollectiveKind::all_reduce)
        m.planned += bytes_per_rank(c->kind, spec.strategy.tensor, c->bytes);
    }
  };
  run(some, spec, changes);
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  return rank == 0 ? m : Moved{};
}

TEST(Overlap, MovesWhatThePlanSaysAndWhatTheWholeWould) {
  const Case pieces = {kLlama, "tensor: 4, data: 1, micro_batch: 4, global_batch: 4, overlap: {tensor: true}"};
  Spec spec = spec_of(pieces);
  const Moved in_pieces = moved(spec);
  spec.strategy.overlap.tensor = false;
  const Moved whole = moved(spec);
  EXPECT_EQ(in_pieces.executed, in_pieces.planned);
  EXPECT_EQ(whole.executed, whole.planned);
  EXPECT_EQ(in_pieces.executed, whole.executed);
}

// A ring that puts each part in the place of the wrong rank is detected.
TEST(Faults, PartsOfTheWrongMemberShow) {
  const Spec spec = spec_of(kOverlapped[2]);
  const auto d = distance_of(spec, {.plan = [](Plan& plan) {
                               for (Op& op : plan.ops) {
                                 auto* g = std::get_if<Gemm>(&op.work);
                                 if (g != nullptr && g->rows == Gemm::Rows::member && g->piece > 0)
                                   g->piece = 1 + g->piece % (g->pieces - 1);
                               }
                             }});
  EXPECT_TRUE(!d || d->gradient > 10 * kLimit);
}

}  // namespace
}  // namespace orrery
