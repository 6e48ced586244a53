// Every strategy against one rank: gradients, losses and weights of a small model on a text (design.md, "Validation
// that cannot fool itself").
#include <optional>

#include "tests/exec/strategy_run.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using namespace test;

// What may go wrong in an executor. Each must show: it exceeds the limits by far.
enum class Fault : std::uint8_t { none, missing_reduce, counted_twice, dropped_micro_batch, stale_weight };

struct Ended : Pending {
  bool done() override { return true; }
};

// Doubles what a reduction left, once it has ended.
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
  FaultyTransport(std::unique_ptr<Transport> real, Fault fault) : real_(std::move(real)), fault_(fault) {}
  std::unique_ptr<Pending> start(LaneKind lane, const CollectiveCall& call) override {
    const bool reduces = lane == LaneKind::data_reduce, gathers = lane == LaneKind::data_gather;
    if (fault_ == Fault::missing_reduce && reduces) return std::make_unique<Ended>();
    if (fault_ == Fault::stale_weight && gathers && ++gathers_ > 1) return std::make_unique<Ended>();
    auto pending = real_->start(lane, call);
    if (fault_ != Fault::counted_twice || !reduces) return pending;
    return std::make_unique<Doubled>(std::move(pending), static_cast<float*>(call.out), call.counts[0]);
  }
  std::unique_ptr<Pending> start(LaneKind lane, const MessageCall& call) override { return real_->start(lane, call); }

 private:
  std::unique_ptr<Transport> real_;
  Fault fault_;
  int gathers_ = 0;
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

void expect_close(const Distance& d) {
  EXPECT_LE(d.gradient, kLimit) << "gradient of " << d.of_gradient;
  EXPECT_LE(d.weight, kLimit) << "weight " << d.of_weight;
  EXPECT_LE(d.change, kChangeLimit) << "change of " << d.of_change;
  EXPECT_LE(d.loss, kLimit);
}

void expect_far(const Distance& d) {
  EXPECT_TRUE(d.gradient > 10 * kLimit || d.weight > 10 * kLimit || d.change > 10 * kChangeLimit)
      << "gradient " << d.gradient << ", weight " << d.weight << ", change " << d.change;
}

Changes changes_of(Fault fault) {
  Changes changes;
  if (fault == Fault::dropped_micro_batch) changes.plan = drop_micro_batch;
  changes.transport = [fault](std::unique_ptr<Transport> real) {
    return std::make_unique<FaultyTransport>(std::move(real), fault);
  };
  return changes;
}

void check_spec(const Spec& spec, Fault fault = Fault::none) {
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  const Result result = run(some, spec, changes_of(fault));
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return;
  const Distance d = distance(spec, result, reference_of(spec));
  fault == Fault::none ? expect_close(d) : expect_far(d);
}

void check_case(const Case& c, Fault fault = Fault::none) { check_spec(spec_of(c), fault); }

class Strategies : public testing::TestWithParam<Case> {};

TEST_P(Strategies, AgreeWithOneRank) { check_case(GetParam()); }

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
    {kLlama, "data: 2, recompute: [norm, activation], global_batch: 4, overlap: {gradient_reduce: false}"},
    {kLlama, "tensor: 2, data: 2, sharding: fsdp, recompute: full, global_batch: 4"},
    {kLlama, "tensor: 2, data: 4, sharding: zero1, global_batch: 8, overlap: {parameter_gather: false}"},
    {kLlama, "tensor: 2, pipeline: 2, data: 2, global_batch: 8, sequence_parallel: false"},
    {kLlama, "tensor: 2, pipeline: 2, virtual_stages: 2, data: 2, sharding: zero1, recompute: full, global_batch: 8"},
    {kLlama, "pipeline: 2, data: 4, sharding: hsdp, shard_group: 2, schedule: gpipe, global_batch: 8"},
    {kLlama, "tensor: 4, data: 2, sharding: zero3, global_batch: 4"},
    {kGpt, "tensor: 2, pipeline: 2, data: 2, sharding: zero1, recompute: full, global_batch: 8"},
    {kGpt, "tensor: 4, data: 2, sharding: fsdp, global_batch: 4, micro_batch: 2"},
    {kQwen, "tensor: 4, data: 2, global_batch: 2"},
    {kQwen, "tensor: 4, data: 1, sequence_parallel: false, attention: unfused, global_batch: 2"},
    {kQwen, "tensor: 4, data: 2, sharding: zero1, global_batch: 4, recompute: full"},
    {kQwen, "tensor: 4, data: 2, sharding: fsdp, global_batch: 2"},
    {kGpt, "tensor: 2, pipeline: 4, data: 1, stage_layers: [1, 2, 1, 0], global_batch: 4"},
};

// Models whose layers differ, where a rank's part of a tensor, a piece of a shard or a mask may go wrong.
const std::string kWindow =
    "{name: tiny-window, layers: 3, hidden: 64, heads: 8, kv_heads: 4, feed_forward: 96, vocab: 250, sliding_window: "
    "{window: 8, every: 2}}";
const std::string kPlain =
    "{name: tiny-plain, layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 256, gated: false, positions: none, "
    "norm: layernorm, bias: false}";
const std::string kParallel =
    "{name: tiny-parallel, layers: 3, hidden: 64, heads: 8, kv_heads: 1, feed_forward: 128, vocab: 256, gated: false, "
    "parallel_block: true, norm: layernorm, bias: true, tied_embeddings: true}";
const std::string kGemma =
    "{name: tiny-gemma, layers: 3, hidden: 64, heads: 8, kv_heads: 2, feed_forward: 96, vocab: 256, post_norms: true, "
    "scaled_embedding: true, qk_norm: true, tied_embeddings: true, sliding_window: {window: 8, every: 3}}";
const std::string kOdd =
    "{name: tiny-odd, layers: 3, hidden: 45, heads: 3, kv_heads: 3, head_dim: 14, feed_forward: 51, vocab: 251}";
const std::string kHeadNorms =
    "{name: tiny-head-norms, layers: 2, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, feed_forward: 64, vocab: 256, "
    "qk_norm: true, norm: layernorm, bias: true}";

const Case kModels[] = {
    {kWindow, "tensor: 2, data: 2, global_batch: 4"},
    {kWindow, "tensor: 2, data: 1, attention: unfused, global_batch: 2"},
    {kWindow, "pipeline: 3, data: 2, sharding: zero1, recompute: full, global_batch: 4"},
    {kPlain, "tensor: 2, data: 2, sharding: fsdp, global_batch: 4"},
    {kPlain, "tensor: 4, pipeline: 2, data: 1, global_batch: 4"},
    {kParallel, "tensor: 4, data: 2, global_batch: 4"},
    {kParallel, "tensor: 2, pipeline: 3, data: 1, global_batch: 4, recompute: [norm, activation]"},
    {kGemma, "tensor: 4, data: 2, sharding: zero1, global_batch: 4"},
    {kGemma, "tensor: 2, pipeline: 3, data: 1, global_batch: 4"},
    {kGemma, "data: 3, sharding: fsdp, global_batch: 6"},
    {kOdd, "tensor: 3, data: 2, micro_batch: 3, global_batch: 12"},
    {kOdd, "tensor: 3, data: 2, sharding: zero1, micro_batch: 3, global_batch: 12"},
    {kOdd, "data: 7, sharding: zero1, global_batch: 7"},
    {kOdd, "data: 7, sharding: zero2, global_batch: 14"},
    {kOdd, "data: 7, sharding: fsdp, global_batch: 7"},
    {kOdd, "data: 7, sharding: zero3, global_batch: 7", "sgd"},
    {kOdd, "tensor: 3, data: 2, sharding: fsdp, micro_batch: 3, global_batch: 6"},
    {kOdd, "data: 6, sharding: hsdp, shard_group: 3, global_batch: 6"},
    {kHeadNorms, "data: 2, global_batch: 2"},
    {kGpt, "tensor: 2, data: 1, micro_batch: 3, global_batch: 6"},
    {kGpt, "tensor: 4, data: 2, attention: unfused, global_batch: 4"},
    {kGpt, "tensor: 2, pipeline: 2, virtual_stages: 2, data: 2, global_batch: 4"},
    {kGpt, "pipeline: 2, virtual_stages: 2, data: 2, sharding: zero1, recompute: full, global_batch: 8"},
    {kGpt, "data: 2, global_batch: 4, clip: 0"},
    {kLlama, "data: 3, micro_batch: 3, sharding: fsdp, global_batch: 18"},
};

// Other stacks: their buckets, averages, clip passes, dense gradients of tables, what they keep gathered.
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
  spec.strategy.overlap.tensor = false;
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
  check_case({kLlama, "data: 2, global_batch: 4"}, Fault::missing_reduce);
  check_case({kLlama, "data: 2, global_batch: 4"}, Fault::counted_twice);
  check_case({kLlama, "data: 2, global_batch: 4"}, Fault::dropped_micro_batch);
  check_case({kLlama, "data: 2, sharding: zero1, global_batch: 4"}, Fault::stale_weight);
}

INSTANTIATE_TEST_SUITE_P(All, Strategies, testing::ValuesIn(kCases));
INSTANTIATE_TEST_SUITE_P(Models, Strategies, testing::ValuesIn(kModels));
INSTANTIATE_TEST_SUITE_P(Stacks, Strategies, testing::ValuesIn(of_other_stacks()));

}  // namespace
}  // namespace orrery
