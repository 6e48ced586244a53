// Every strategy against one rank: gradients, losses and weights of a small model on a text.
#include <optional>

#include "models/schedule/schedules.h"
#include "tests/exec/strategy_run.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using namespace test;

const std::string kEightLayers =
    "{name: eight-layers, layers: 8, hidden: 32, heads: 4, kv_heads: 2, feed_forward: 64, vocab: 250}";

// Mistakes that an executor could make. The tests must detect each: it exceeds the limits by far.
enum class PlantedFault : std::uint8_t {
  none,
  missing_reduce,
  counted_twice,
  dropped_micro_batch,
  stale_weight,
  missing_expert_reduce,
  missing_expert_replicas,
  doubled_tokens,
  stale_tokens,
  missing_exchange,  // the exchange in a context group is left out
  wrong_block        // keys are taken for those of another block
};

struct EndedAtOnce : Pending {
  bool done() override { return true; }
};

// Doubles the result of a reduction, once it has ended.
class Doubled : public Pending {
 public:
  Doubled(std::unique_ptr<Pending> whole, float* values, std::int64_t n)
      : whole_(std::move(whole)), values_(values), n_(n) {}
  bool done() override {
    if (!whole_->done()) return false;
    for (std::int64_t i = 0; i < n_; ++i) values_[i] *= 2;
    n_ = 0;
    return true;
  }

 private:
  std::unique_ptr<Pending> whole_;
  float* values_;
  std::int64_t n_;
};

// Spoils the first transfer of a step that the fault is about.
class FaultyTransport : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> real, PlantedFault fault) : real_(std::move(real)), fault_(fault) {}
  std::unique_ptr<Pending> start(LaneKind lane, const CollectiveCall& call) override {
    const bool reduces = lane == LaneKind::data_reduce, gathers = lane == LaneKind::data_gather;
    if (fault_ == PlantedFault::missing_reduce && reduces) return std::make_unique<EndedAtOnce>();
    if (fault_ == PlantedFault::missing_expert_reduce && call.group == Dimension::expert_data)
      return std::make_unique<EndedAtOnce>();
    if (fault_ == PlantedFault::missing_expert_replicas && call.group == Dimension::expert_replicate)
      return std::make_unique<EndedAtOnce>();
    if (fault_ == PlantedFault::stale_weight && gathers && ++gathers_ > 1) return std::make_unique<EndedAtOnce>();
    const bool tokens = call.group == Dimension::expert && !call.received.empty() && call.received[0] > kFewRows;
    if (fault_ == PlantedFault::stale_tokens && tokens && ++gathers_ > 1) return std::make_unique<EndedAtOnce>();
    if (fault_ == PlantedFault::missing_exchange && lane == LaneKind::context && ++exchanges_ % 3 == 0)
      return std::make_unique<EndedAtOnce>();
    auto pending = real_->start(lane, call);
    if (fault_ == PlantedFault::doubled_tokens && tokens && ++gathers_ == 1)
      return std::make_unique<Doubled>(std::move(pending), static_cast<float*>(call.out), call.received[0]);
    if (fault_ != PlantedFault::counted_twice || !reduces) return pending;
    return std::make_unique<Doubled>(std::move(pending), static_cast<float*>(call.out), call.counts[0]);
  }
  std::unique_ptr<Pending> start(LaneKind lane, const MessageCall& call) override { return real_->start(lane, call); }

 private:
  std::unique_ptr<Transport> real_;
  static constexpr std::int64_t kFewRows = 256;  // the weights of choices have fewer rows
  PlantedFault fault_;
  int gathers_ = 0, exchanges_ = 0;
};

// The weight gradients of the last micro-batch are not added.
void drop_micro_batch(Plan& plan) {
  const auto gradients = static_cast<std::uint32_t>(plan.ops.size());
  for (Task& t : plan.tasks) {
    if (t.op >= gradients || plan.frames[t.frame].micro_batch != plan.micro_batches - 1) continue;
    Op op = plan.ops[t.op];
    if (!op.weight_gradient) continue;
    op.work = Fill{0};
    op.operands = {{Scope::state, Access::write, 0, -1}};
    t.op = static_cast<std::uint32_t>(plan.ops.size());
    plan.ops.push_back(op);
  }
}

void mistake_blocks(Plan& plan) {
  for (Op& op : plan.ops) {
    if (auto* a = std::get_if<FlashAttention>(&op.work); a != nullptr && a->hops > 0) a->hops = 0;
  }
}

void expect_far(const Distance& d) {
  EXPECT_TRUE(d.gradient > 10 * kLimit || d.weight > 10 * kLimit || d.change > 10 * kChangeLimit)
      << "gradient " << d.gradient << ", weight " << d.weight << ", change " << d.change;
}

Changes changes_of(PlantedFault fault) {
  Changes changes;
  if (fault == PlantedFault::dropped_micro_batch) changes.plan = drop_micro_batch;
  if (fault == PlantedFault::wrong_block) changes.plan = mistake_blocks;
  changes.transport = [fault](std::unique_ptr<Transport> real) {
    return std::make_unique<FaultyTransport>(std::move(real), fault);
  };
  return changes;
}

void check_spec(const Spec& spec, PlantedFault fault = PlantedFault::none) {
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  const Result result = run(some, spec, changes_of(fault));
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return;
  if (fault == PlantedFault::none) {
    const auto [differ, all] = differing_choices(result, reference_of(spec));
    ASSERT_EQ(differ, 0) << "choices of experts differ from the reference's, of " << all;
    EXPECT_EQ(all > 0, spec.model.moe.has_value());
  }
  const Distance d = distance(spec, result, reference_of(spec));
  fault == PlantedFault::none ? expect_agreement(d) : expect_far(d);
}

void check_case(const Case& c, PlantedFault fault = PlantedFault::none) { check_spec(spec_of(c), fault); }

class Strategies : public testing::TestWithParam<Case> {};

TEST_P(Strategies, AgreeWithOneRank) { check_case(GetParam()); }

// A GPT without dropout: the gradient of its position embeddings is that of the token embeddings.
const std::string kGptWithoutDropout =
    "{name: tiny-gpt, layers: 4, hidden: 64, heads: 4, feed_forward: 128, vocab: 256, gated: false, positions: "
    "learned, norm: layernorm, bias: true}";

const Case kCases[] = {
    {kLlama, "data: 2, global_batch: 4"},
    {kLlama, "data: 2, global_batch: 4", "sgd"},
    {kLlama, "data: 2, sharding: zero1, global_batch: 4"},
    {kLlama, "data: 2, sharding: zero2, global_batch: 4"},
    {kLlama, "data: 2, sharding: zero3, global_batch: 4"},
    {kLlama, "data: 3, sharding: fsdp, global_batch: 6"},
    {kLlama, "data: 2, sharding: fsdp-grad-op, global_batch: 4"},
    {kLlama, "data: 4, sharding: hsdp, shard_group: 2, global_batch: 8"},
    {kLlama, "tensor: 2, data: 1, sequence_parallel: false, global_batch: 2"},
    {kLlama, "tensor: 2, data: 1, global_batch: 2"},
    {kLlama, "pipeline: 4, data: 1, schedule: gpipe, global_batch: 4"},
    {kLlama, "pipeline: 4, data: 1, global_batch: 4"},
    {kLlama, "pipeline: 2, virtual_stages: 2, data: 1, global_batch: 4"},
    {kLlama, "pipeline: 4, data: 1, schedule: zb-h1, global_batch: 8"},
    {kGpt, "pipeline: 2, data: 2, schedule: zb-h2, recompute: selective, attention: unfused, global_batch: 8"},
    {kLlama, "tensor: 2, pipeline: 2, data: 2, sharding: zero1, schedule: zb-1p, global_batch: 8"},
    {kGpt, "pipeline: 4, data: 1, schedule: zb-2p, global_batch: 8"},
    {kLlama, "pipeline: 2, data: 2, sharding: zero1, schedule: zb-v, global_batch: 8"},
    {kGpt,
     "pipeline: 2, data: 2, sharding: zero1, schedule: v-half, recompute: selective, attention: unfused, "
     "global_batch: 8"},
    {kLlama,
     "pipeline: 4, tensor: 2, data: 1, schedule: v-min, stage_layers: [0, 1, 1, 0, 1, 0, 1, 0], global_batch: 8"},
    {kLlama, "pipeline: 2, tensor: 2, data: 2, sharding: zero1, schedule: dualpipev, global_batch: 8"},
    {kLlama, "pipeline: 4, data: 1, schedule: chimera, global_batch: 8"},
    {kLlama, "pipeline: 2, tensor: 2, data: 2, sharding: zero1, schedule: chimera, global_batch: 8"},
    {kLlama, "pipeline: 4, data: 2, sharding: zero1, schedule: dualpipe, global_batch: 16"},
    {kGpt, "pipeline: 4, data: 1, schedule: chimera, global_batch: 8"},
    {kLlama, "pipeline: 4, data: 1, schedule: chimera-4, global_batch: 8"},
    {kLlama, "pipeline: 4, tensor: 2, data: 1, sharding: zero1, schedule: chimera-4, global_batch: 4"},
    {kGpt, "pipeline: 4, data: 2, sharding: zero1, schedule: chimera-4, global_batch: 16"},
    {kGpt, "pipeline: 4, data: 2, schedule: chimera-4, global_batch: 8"},
    {kEightLayers, "pipeline: 8, data: 1, schedule: chimera-8, global_batch: 8"},
    {kGpt, "pipeline: 4, data: 2, schedule: dualpipe, global_batch: 16"},
    {kLlama, "pipeline: 4, data: 1, schedule: vocab-1f1b, global_batch: 8"},
    {kGpt, "pipeline: 4, data: 2, schedule: vocab-1f1b, sharding: zero1, global_batch: 16"},
    {kGpt, "pipeline: 4, data: 1, schedule: vocab-1f1b-alg1, recompute: full, global_batch: 8"},
    {kLlama, "pipeline: 2, data: 2, schedule: vocab-1f1b-alg1, sharding: zero1, stage_layers: [3, 1], global_batch: 8"},
    {kLlama, "pipeline: 2, tensor: 2, data: 1, schedule: vocab-1f1b, global_batch: 4"},
    {kGpt, "pipeline: 2, tensor: 2, data: 2, sharding: zero1, schedule: vocab-1f1b-alg1, global_batch: 8"},
    {kGpt, "pipeline: 2, tensor: 2, data: 1, sequence_parallel: false, schedule: vocab-1f1b, global_batch: 4"},
    {kQwen, "pipeline: 2, tensor: 4, data: 1, sequence_parallel: false, schedule: vocab-1f1b-alg1, global_batch: 4"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero2, schedule: vocab-1f1b, global_batch: 8"},
    {kLlama, "pipeline: 2, data: 2, sharding: zero3, schedule: vocab-1f1b, global_batch: 8"},
    {kGpt, "pipeline: 2, data: 2, sharding: fsdp, schedule: vocab-1f1b-alg1, global_batch: 8"},
    {kGpt, "pipeline: 2, tensor: 2, data: 2, sharding: fsdp-grad-op, schedule: vocab-1f1b, global_batch: 8"},
    {kGpt, "pipeline: 2, data: 4, sharding: hsdp, shard_group: 2, schedule: vocab-1f1b, global_batch: 16"},
    {kLlama, "pipeline: 2, data: 2, sharding: zero2, schedule: zb-h2, global_batch: 8"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero3, schedule: v-half, global_batch: 8"},
    {kLlama, "pipeline: 2, tensor: 2, data: 2, sharding: fsdp, schedule: zb-v, global_batch: 8"},
    {kLlama, "pipeline: 2, data: 2, sharding: fsdp-grad-op, schedule: dualpipev, global_batch: 8"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero2, schedule: vocab-v-half, global_batch: 8"},
    {kGptWithoutDropout, "pipeline: 2, data: 1, schedule: vocab-v-min, global_batch: 4"},
    {kGptWithoutDropout, "pipeline: 2, tensor: 2, data: 1, schedule: vocab-1f1b, global_batch: 4"},
    {kLlama, "pipeline: 2, tensor: 2, data: 2, sharding: zero1, schedule: vocab-v-min-alg1, global_batch: 8"},
    {kGpt, "pipeline: 2, tensor: 2, data: 2, sharding: zero1, schedule: dualpipe, global_batch: 8"},
    {kGpt, "pipeline: 4, data: 2, sharding: zero1, schedule: chimera, global_batch: 8"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero2, schedule: dualpipe, global_batch: 8"},
    {kLlama, "pipeline: 4, data: 2, sharding: fsdp, schedule: dualpipe, global_batch: 16"},
    {kGpt, "pipeline: 2, virtual_stages: 2, data: 2, schedule: {file: " ORRERY_SOURCE_DIR
           "/tests/data/order_v.txt}, global_batch: 4"},
    {kGpt, "pipeline: 2, virtual_stages: 2, data: 2, sharding: zero3, schedule: {file: " ORRERY_SOURCE_DIR
           "/tests/data/order_v.txt}, global_batch: 4"},
    {kGpt, "pipeline: 2, virtual_stages: 2, data: 2, bucket_MiB: 0.001, schedule: {file: " ORRERY_SOURCE_DIR
           "/tests/data/order_v_weights_last.txt}, global_batch: 4"},
    {kLlama, "pipeline: 2, data: 2, bucket_MiB: 0.001, schedule: {file: " ORRERY_SOURCE_DIR
             "/tests/data/order_weights_reversed.txt}, global_batch: 4"},
    {kLlama, "pipeline: 2, data: 4, sharding: hsdp, shard_group: 2, schedule: {file: " ORRERY_SOURCE_DIR
             "/tests/data/order_reversed.txt}, global_batch: 8"},
    {kLlama, "data: 1, recompute: full, global_batch: 2"},
    {kLlama, "tensor: 2, pipeline: 2, data: 2, sharding: zero1, global_batch: 4"},
    {kGpt, "data: 2, global_batch: 4"},
    {kGpt, "data: 2, sharding: zero3, global_batch: 4"},
    {kGpt, "tensor: 2, data: 1, global_batch: 4, micro_batch: 2"},
    {kGpt, "tensor: 2, data: 1, global_batch: 4, attention: unfused, recompute: selective"},
    {kGpt, "pipeline: 2, data: 2, global_batch: 4"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero1, global_batch: 4"},
    {kGpt, "pipeline: 2, data: 2, sharding: zero2, global_batch: 4"},
    {kLlama, "data: 2, global_batch: 8, micro_batch: 2, recompute: selective, attention: unfused"},
    {kLlama, "pipeline: 2, data: 1, schedule: naive, global_batch: 1"},
    {kLlama, "pipeline: 4, data: 1, schedule: dapple, global_batch: 8"},
    {kLlama, "pipeline: 4, data: 1, schedule: bpipe, global_batch: 8"},
    {kGpt,
     "pipeline: 4, data: 2, sharding: zero1, schedule: bpipe, recompute: selective, attention: unfused, global_batch: "
     "12"},
    {kLlama,
     "pipeline: 2, virtual_stages: 2, data: 1, schedule: interleaved, interleave_group: 3, extra_warm_up: 1, "
     "global_batch: 6"},
    {kGpt, "pipeline: 2, virtual_stages: 2, data: 1, schedule: interleaved, global_batch: 3", "adamw", "torchtitan"},
    {kLlama, "data: 2, recompute: [norm, activation], global_batch: 4, overlap: {gradient_reduce: false}"},
    {kLlama, "tensor: 2, data: 2, sharding: fsdp, recompute: full, global_batch: 4"},
    {kLlama, "tensor: 2, data: 4, sharding: zero1, global_batch: 8, overlap: {parameter_gather: false}"},
    {kLlama, "data: 4, sharding: zero1, bucket_MiB: 0.05, global_batch: 8, overlap: {parameter_gather: update}"},
    {kGpt, "tensor: 2, data: 3, sharding: zero1, bucket_MiB: 0, global_batch: 6, overlap: {parameter_gather: update}"},
    {kQwen,
     "data: 2, sharding: zero2, pipeline: 2, virtual_stages: 2, global_batch: 8, overlap: {parameter_gather: "
     "update}"},
    {kLlama,
     "pipeline: 2, data: 2, sharding: zero1, schedule: zb-v, bucket_MiB: 0.02, clip: 0, global_batch: 8, "
     "overlap: {parameter_gather: update}"},
    {kLlama, "tensor: 2, pipeline: 2, data: 2, global_batch: 8, sequence_parallel: false"},
    {kLlama, "tensor: 2, pipeline: 2, virtual_stages: 2, data: 2, sharding: zero1, recompute: full, global_batch: 8"},
    {kLlama, "pipeline: 2, data: 4, sharding: hsdp, shard_group: 2, schedule: gpipe, global_batch: 8"},
    {kLlama,
     "pipeline: 2, data: 4, sharding: hsdp, shard_group: 2, schedule: zb-v, global_batch: 16, overlap: "
     "{gradient_reduce: false}"},
    {kLlama, "tensor: 4, data: 2, sharding: zero3, global_batch: 4"},
    {kGpt, "tensor: 2, pipeline: 2, data: 2, sharding: zero1, recompute: full, global_batch: 8"},
    {kGpt, "tensor: 4, data: 2, sharding: fsdp, global_batch: 4, micro_batch: 2"},
    {kQwen, "tensor: 4, data: 2, global_batch: 2"},
    {kQwen, "tensor: 4, data: 1, sequence_parallel: false, attention: unfused, global_batch: 2"},
    {kQwen, "tensor: 4, data: 2, sharding: zero1, global_batch: 4, recompute: full"},
    {kQwen, "tensor: 4, data: 2, sharding: fsdp, global_batch: 2"},
    {kGpt, "tensor: 2, pipeline: 4, data: 1, stage_layers: [1, 2, 1, 0], global_batch: 4"},
};

// Strategies whose ranks do different work: a master, servers, stragglers.
const Case kApart[] = {
    {kLlama, "data: 2, sharding: data-parallel, global_batch: 4"},
    {kLlama, "data: 4, sharding: data-parallel, global_batch: 8, micro_batch: 2", "sgd"},
    {kGpt, "data: 3, sharding: data-parallel, global_batch: 6"},
    {kQwen, "data: 2, sharding: data-parallel, recompute: full, bucket_MiB: 0.05, global_batch: 4"},
    {kGpt, "data: 2, sharding: data-parallel, global_batch: 4", "adamw", "pytorch-fsdp"},
    {kLlama, "data: 2, sharding: parameter-server, global_batch: 4"},
    {kLlama, "data: 2, sharding: parameter-server, parameter_server: {servers: 3}, global_batch: 4", "sgd"},
    {kGpt,
     "data: 4, sharding: parameter-server, parameter_server: {servers: 4, colocated: false}, bucket_MiB: 0.02, "
     "global_batch: 8"},
    {kQwen,
     "data: 3, sharding: parameter-server, parameter_server: {servers: 2}, global_batch: 6, micro_batch: 2, "
     "overlap: {gradient_reduce: false, parameter_gather: false}"},
    {kGpt, "data: 2, sharding: parameter-server, parameter_server: {servers: 2}, global_batch: 4", "adamw",
     "megatron-core"},
    {kLlama, "data: 1, sharding: parameter-server, parameter_server: {servers: 1}, global_batch: 4"},
    {kLlama,
     "data: 2, sharding: parameter-server, parameter_server: {servers: 2, replicas: 2}, clip: 0, bucket_MiB: 0.02, "
     "global_batch: 4"},
    {kQwen,
     "data: 2, sharding: parameter-server, parameter_server: {servers: 2, replicas: 2}, clip: 0, global_batch: 4, "
     "overlap: {gradient_reduce: false, parameter_gather: false}"},
    {kGpt, "data: 2, sharding: parameter-server, parameter_server: {servers: 3, replicas: 2}, clip: 0, global_batch: 4",
     "sgd"},
};

// Every schedule in the table is tested; those without flushes are in asynchronous_test.cpp.
TEST(Schedules, AllOfTheTableAgreeWithOneRankOnFour) {
  for (const ScheduleRow& row : schedule_rows()) {
    if (row.updates != Updates::flush || model_copies(row.name) > 4) continue;  // eight copies need eight stages
    SCOPED_TRACE(row.name);
    const char* const chunks = row.chunks == 1 ? "" : ", virtual_stages: 2, stage_layers: [0, 1, 1, 0, 1, 0, 1, 0]";
    check_case({kLlama, fmt::format("pipeline: 4, data: 1, schedule: {}{}, global_batch: 8", row.name, chunks)});
  }
}

TEST(Stragglers, ChangeNoNumber) {
  Spec spec = spec_of({kLlama, "tensor: 2, pipeline: 2, data: 2, sharding: zero1, global_batch: 4"});
  spec.cluster.stragglers = {{5, 3.0}};
  check_spec(spec);
}

TEST(Faults, PlantedFaultsOfServersShow) {
  check_case({kLlama, "data: 2, sharding: data-parallel, global_batch: 4"}, PlantedFault::missing_reduce);
  check_case({kLlama, "data: 2, sharding: data-parallel, global_batch: 4"}, PlantedFault::stale_weight);
  const char* servers = "data: 2, sharding: parameter-server, parameter_server: {servers: 2}, global_batch: 4";
  check_case({kLlama, servers}, PlantedFault::missing_reduce);
  check_case({kLlama, servers}, PlantedFault::stale_weight);
}

// The sequence, of 36 tokens, cut over context groups.
const Case kContext[] = {
    {kLlama, "context: 2, data: 1, global_batch: 2"},
    {kLlama, "context: 2, context_order: contiguous, data: 1, global_batch: 2"},
    {kLlama, "context: 2, context_kind: allgather, data: 1, global_batch: 2"},
    {kLlama,
     "context: 3, context_kind: allgather, context_order: contiguous, data: 1, global_batch: 4, micro_batch: 2"},
    {kLlama, "context: 4, context_kind: ulysses, data: 1, global_batch: 4, micro_batch: 2"},
    {kLlama, "context: 6, data: 1, global_batch: 2, micro_batch: 2"},
    {kLlama, "context: 4, context_kind: {ring: 2, ulysses: 2}, data: 2, global_batch: 4, micro_batch: 2"},
    {kLlama, "context: 2, tensor: 2, pipeline: 2, data: 1, global_batch: 4"},
    {kLlama, "context: 2, tensor: 2, data: 2, sharding: zero1, global_batch: 4"},
    {kLlama, "context: 2, data: 2, sharding: fsdp, global_batch: 4, recompute: full"},
    {kLlama, "context: 4, context_order: contiguous, data: 2, sharding: hsdp, shard_group: 2, global_batch: 4"},
    {kLlama, "context: 2, context_kind: ulysses, pipeline: 2, data: 2, sharding: zero2, global_batch: 8"},
    {kGpt, "context: 2, data: 2, global_batch: 4, recompute: selective"},
    {kGpt, "context: 2, context_order: contiguous, pipeline: 2, data: 2, sharding: zero1, global_batch: 4"},
    {kGpt, "context: 4, context_kind: ulysses, tensor: 1, data: 2, global_batch: 4"},
    {kQwen, "context: 2, tensor: 2, data: 2, sharding: zero1, global_batch: 4"},
    {kQwen, "context: 4, context_kind: ulysses, data: 2, sharding: fsdp, global_batch: 2"},
    {kQwen,
     "context: 4, tensor: 2, sequence_parallel: false, context_kind: {ring: 2, ulysses: 2}, data: 1, global_batch: 2, "
     "recompute: selective"},
    {kGpt, "context: 2, context_kind: ulysses, data: 2, global_batch: 4, attention: unfused, recompute: selective"},
    {kQwen, "context: 2, context_kind: ulysses, tensor: 2, data: 1, global_batch: 2, attention: unfused"},
    {kWindow, "context: 3, tensor: 2, data: 1, global_batch: 2"},
    {kWindow, "context: 2, context_kind: allgather, data: 2, global_batch: 2"},
    {kGpt, "context: 2, data: 2, global_batch: 4, sharding: zero2", "adamw", "pytorch-fsdp"},
    {kLlama, "context: 2, data: 2, global_batch: 4", "sgd", "torchtitan"},
};

// Cases for other software stacks: buckets, averaging, clip passes, dense gradients of tables, units that stay
// gathered.
std::vector<Case> of_other_stacks() {
  std::vector<Case> cases;
  for (const std::string software : {"megatron-core", "pytorch-fsdp", "deepspeed-megatron-2021", "torchtitan"}) {
    for (const char* strategy : {"data: 2, global_batch: 4", "data: 3, sharding: zero2, global_batch: 6",
                                 "data: 4, sharding: hsdp, shard_group: 2, global_batch: 4",
                                 "tensor: 2, pipeline: 2, data: 2, sharding: zero1, global_batch: 8"})
      cases.push_back({kGpt, strategy, "adamw", software});
  }
  return cases;
}

// A random spec, as far as CPU ranks execute it and these eight suffice.
std::optional<Spec> random_case(std::uint64_t seed) {
  Spec spec = random_spec(seed);
  if (spec.strategy.gpus() > 8) return {};
  spec.strategy.precision = spec.strategy.gradient_precision = Precision::fp32;
  spec.model.attention_softcap = spec.model.logit_softcap = 0;
  return spec;
}

TEST(RandomStrategies, AgreeWithOneRank) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::optional<Spec> spec = random_case(seed);
    if (!spec) continue;
    SCOPED_TRACE(seed);
    check_spec(*spec);
  }
}

TEST(Faults, PlantedFaultsShow) {
  check_case({kLlama, "data: 2, global_batch: 4"}, PlantedFault::missing_reduce);
  check_case({kLlama, "data: 2, global_batch: 4"}, PlantedFault::counted_twice);
  check_case({kLlama, "data: 2, global_batch: 4"}, PlantedFault::dropped_micro_batch);
  check_case({kLlama, "data: 2, sharding: zero1, global_batch: 4"}, PlantedFault::stale_weight);
  for (const char* kind : {"context: 2", "context: 2, context_order: contiguous", "context: 2, context_kind: allgather",
                           "context: 4, context_kind: ulysses"})
    check_case({kLlama, fmt::format("{}, data: 1, global_batch: 2", kind)}, PlantedFault::missing_exchange);
  check_case({kLlama, "context: 2, data: 1, global_batch: 2"}, PlantedFault::wrong_block);
  check_case({kLlama, "context: 2, context_order: contiguous, data: 1, global_batch: 2"}, PlantedFault::wrong_block);
}

// Experts: dropless, dropped, padded; top-1 and top-k; softmax and sigmoid; shared ones; dense first layers.
const std::string kMixtral = with_experts("tiny-mixtral", "experts: 8, top_k: 2, feed_forward: 48");
const std::string kSwitch =
    with_experts("tiny-switch", "experts: 4, top_k: 1, feed_forward: 48, capacity_factor: 1.25, aux_loss: 0.05");
const std::string kPadded = with_experts(
    "tiny-padded", "experts: 8, top_k: 3, feed_forward: 32, capacity_factor: 1, pad_to_capacity: true, first_layer: 1");
const std::string kDeepSeek = with_experts(
    "tiny-deepseek",
    "experts: 8, top_k: 3, feed_forward: 32, shared_feed_forward: 48, first_layer: 1, score: sigmoid, "
    "correction_bias: true, aux_loss: 0.02",
    ", mla: {q_lora_rank: 24, kv_lora_rank: 20, qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: 10}");

const std::string kQwenMoe =
    with_experts("tiny-qwen-moe", "experts: 8, top_k: 2, feed_forward: 32, shared_feed_forward: 64, shared_gate: true");

const std::string kBiased = with_experts("tiny-biased", "experts: 8, top_k: 2, feed_forward: 48", ", bias: true");
const std::string kBiasedShared = with_experts(
    "tiny-biased-shared",
    "experts: 4, top_k: 2, feed_forward: 48, shared_feed_forward: 32, capacity_factor: 1, pad_to_capacity: "
    "true, first_layer: 1",
    ", bias: true, gated: false");

const Case kExpertCases[] = {
    {kBiased, "data: 2, expert: 2, global_batch: 4"},
    {kBiased, "tensor: 2, data: 2, expert: 4, expert_tensor: 1, sharding: zero1, global_batch: 4"},
    {kBiased, "data: 4, expert: 2, sharding: fsdp, global_batch: 4, recompute: full"},
    {kBiasedShared, "data: 2, expert: 2, global_batch: 4"},
    {kBiasedShared, "tensor: 2, pipeline: 2, data: 2, expert: 4, expert_tensor: 1, global_batch: 4"},
    {kBiased, "tensor: 2, data: 2, expert: 2, expert_tensor: 2, sharding: zero1, global_batch: 4"},
    {kBiased, "tensor: 2, data: 1, expert: 1, expert_tensor: 2, global_batch: 2"},
    {kBiasedShared, "tensor: 2, data: 4, expert: 2, expert_tensor: 2, sharding: fsdp, global_batch: 4"},
    {kQwenMoe, "data: 4, expert: 2, global_batch: 4"},
    {kQwenMoe, "tensor: 2, data: 2, expert: 2, sharding: zero1, global_batch: 4, overlap: {expert: true}"},
    {kQwenMoe, "data: 2, expert: 2, sharding: fsdp, global_batch: 4, recompute: [moe]"},
    {kMixtral, "data: 2, expert: 2, global_batch: 4"},
    {kMixtral, "data: 2, expert: 2, global_batch: 4", "sgd"},
    {kMixtral, "data: 4, expert: 4, global_batch: 4, micro_batch: 1"},
    {kMixtral, "data: 4, expert: 2, global_batch: 8"},
    {kMixtral, "data: 2, expert: 1, global_batch: 4"},
    {kMixtral, "tensor: 2, data: 2, expert: 2, global_batch: 4"},
    {kMixtral, "tensor: 2, data: 2, expert: 2, expert_tensor: 2, global_batch: 4"},
    {kMixtral, "tensor: 2, data: 1, expert: 1, expert_tensor: 2, global_batch: 2"},
    {kMixtral, "tensor: 2, data: 4, expert: 4, global_batch: 8, recompute: full"},
    {kMixtral, "data: 4, expert: 2, sharding: zero1, global_batch: 8"},
    {kMixtral, "data: 4, expert: 4, sharding: zero1, global_batch: 4"},
    {kMixtral, "data: 4, expert: 2, sharding: zero2, global_batch: 8"},
    {kMixtral, "data: 4, expert: 2, sharding: zero3, global_batch: 8"},
    {kMixtral, "data: 4, expert: 2, sharding: fsdp, global_batch: 8"},
    {kMixtral, "data: 4, expert: 4, sharding: fsdp, global_batch: 4, recompute: [moe]"},
    {kMixtral, "tensor: 2, data: 2, expert: 2, sharding: fsdp, global_batch: 4"},
    {kMixtral, "pipeline: 2, data: 2, expert: 2, global_batch: 4, recompute: [moe_activation, norm]"},
    {kMixtral, "data: 4, expert: 2, sharding: hsdp, shard_group: 2, global_batch: 8"},
    {kMixtral, "data: 8, expert: 2, sharding: hsdp, shard_group: 4, global_batch: 8", "sgd"},
    {kMixtral,
     "tensor: 2, data: 4, rank_order: dp-tp-cp-pp, expert: 2, sharding: hsdp, shard_group: 2, global_batch: 4"},
    {kMixtral, "context: 2, data: 2, expert: 4, global_batch: 4"},
    {kMixtral, "context: 2, context_kind: allgather, tensor: 2, data: 2, expert: 2, sharding: fsdp, global_batch: 4"},
    {kSwitch, "context: 2, context_order: contiguous, data: 2, expert: 2, global_batch: 4"},
    {kBiasedShared, "tensor: 2, data: 4, expert: 4, sharding: hsdp, shard_group: 2, global_batch: 4, recompute: full"},
    {kDeepSeek, "pipeline: 2, data: 4, expert: 2, sharding: hsdp, shard_group: 2, global_batch: 8", "adamw",
     "torchtitan"},
    {kSwitch, "data: 4, expert: 2, global_batch: 8, micro_batch: 2"},
    {kSwitch, "tensor: 2, data: 2, expert: 4, global_batch: 4"},
    {kPadded, "data: 2, expert: 2, global_batch: 4"},
    {kPadded, "tensor: 2, data: 2, expert: 2, expert_tensor: 2, global_batch: 4, sharding: zero1"},
    {kDeepSeek, "data: 4, expert: 4, global_batch: 4"},
    {kDeepSeek, "tensor: 2, data: 2, expert: 2, global_batch: 4, sharding: zero1, overlap: {expert: true}"},
    {kDeepSeek, "tensor: 2, pipeline: 2, data: 2, expert: 4, global_batch: 4, recompute: full"},
    {kDeepSeek, "data: 4, expert: 2, global_batch: 4", "adamw", "megatron-core"},
};

// Hybrids: gated delta net beside gated attention, with experts; Mamba-2 beside attention and MLPs alone.
const std::string kNext =
    "{name: tiny-next, layers: 4, hidden: 32, heads: 4, kv_heads: 2, feed_forward: 48, vocab: 64, qk_norm: true, "
    "attention_gate: true, layer_kinds: [recurrence, recurrence, recurrence, attention], recurrence: {heads: 8, "
    "groups: "
    "4, key_dim: 5, value_dim: 6}, moe: {experts: 4, top_k: 2, feed_forward: 24, shared_feed_forward: 16, shared_gate: "
    "true}}";
const std::string kMamba =
    "{name: tiny-mamba, layers: 6, hidden: 32, heads: 4, kv_heads: 2, feed_forward: 48, vocab: 64, gated: false, "
    "positions: none, layer_kinds: [recurrence_alone, feed_forward, recurrence_alone, attention_alone, feed_forward], "
    "recurrence: {rule: state_space, heads: 8, groups: 4, key_dim: 5, value_dim: 3, convolution_bias: true}}";

const Case kHybrids[] = {
    {kNext, "data: 2, global_batch: 4"},
    {kNext, "tensor: 2, data: 1, expert: 2, global_batch: 4"},
    {kNext, "tensor: 4, data: 1, expert: 4, sharding: zero1, global_batch: 2, recompute: selective"},
    {kNext, "pipeline: 2, data: 2, expert: 2, sharding: fsdp, global_batch: 8, recompute: full"},
    {kMamba, "data: 2, sharding: zero3, global_batch: 4, micro_batch: 2"},
    {kMamba, "tensor: 2, sequence_parallel: false, data: 2, global_batch: 4"},
    {kMamba, "tensor: 4, data: 1, sharding: zero1, global_batch: 2, recompute: full"},
    {kMamba, "pipeline: 2, schedule: zb-h1, data: 1, global_batch: 4"},
    {kMamba, "tensor: 2, pipeline: 2, virtual_stages: 2, schedule: interleaved, data: 1, global_batch: 4"},
};

TEST(Faults, PlantedFaultsOfExpertsShow) {
  check_case({kMixtral, "data: 4, expert: 2, global_batch: 8"}, PlantedFault::missing_expert_reduce);
  check_case({kMixtral, "data: 4, expert: 2, sharding: hsdp, shard_group: 2, global_batch: 8"},
             PlantedFault::missing_expert_replicas);
  check_case({kMixtral, "data: 2, expert: 2, global_batch: 4"}, PlantedFault::doubled_tokens);
  check_case({kMixtral, "data: 2, expert: 2, global_batch: 4"}, PlantedFault::stale_tokens);
}

INSTANTIATE_TEST_SUITE_P(Hybrids, Strategies, testing::ValuesIn(kHybrids));
INSTANTIATE_TEST_SUITE_P(Experts, Strategies, testing::ValuesIn(kExpertCases));
INSTANTIATE_TEST_SUITE_P(Apart, Strategies, testing::ValuesIn(kApart));
INSTANTIATE_TEST_SUITE_P(All, Strategies, testing::ValuesIn(kCases));
INSTANTIATE_TEST_SUITE_P(Context, Strategies, testing::ValuesIn(kContext));
INSTANTIATE_TEST_SUITE_P(Stacks, Strategies, testing::ValuesIn(of_other_stacks()));

}  // namespace
}  // namespace orrery
