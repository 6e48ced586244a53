// Formats of few bits. QLoRA: frozen weights in NF4, against runs whose frozen weights are what the NF4 weights are
// converted to. ZeRO++: against plain ZeRO-3 whose transfers convert the same pieces to few bits and back, by plain
// loops.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/reference/quantize.h"
#include "models/spec/narrow_transfers.h"
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

// The numbers of a transfer as floats, and back.
std::vector<float> floats_of(const void* from, std::int64_t n, Element element) {
  std::vector<float> x(static_cast<std::size_t>(n));
  if (element == Element::f32) std::memcpy(x.data(), from, x.size() * sizeof(float));
  if (element == Element::bf16) kernels::cast(n, static_cast<const kernels::Bf16*>(from), x.data());
  if (element == Element::fp16) kernels::cast(n, static_cast<const kernels::Fp16*>(from), x.data());
  return x;
}
void store(const std::vector<float>& x, void* to, Element element) {
  const auto n = static_cast<std::int64_t>(x.size());
  if (element == Element::f32) std::memcpy(to, x.data(), x.size() * sizeof(float));
  if (element == Element::bf16) kernels::cast(n, x.data(), static_cast<kernels::Bf16*>(to));
  if (element == Element::fp16) kernels::cast(n, x.data(), static_cast<kernels::Fp16*>(to));
}

std::vector<float> part(const std::vector<float>& x, std::int64_t first, std::int64_t n) {
  return {x.begin() + first, x.begin() + first + n};
}
void add_to(std::vector<float>& sum, const std::vector<float>& x) {
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] += x[i];
}

// How a run of ZeRO++ converts the weights and gradients of one data group, whose members lie `in_node` on each node.
struct Narrowing {
  ZeroQuantize asked;
  std::size_t weights = 1, gradients = 1;  // numbers of a block
  std::int64_t in_node = 1;

  std::vector<float> weight(const std::vector<float>& x) const {
    return asked.weight_bits > 0 ? kernels::reference::quantized(x, 127, weights) : x;
  }
  std::vector<float> gradient(const std::vector<float>& x) const {
    return kernels::reference::quantized(x, asked.gradient_bits == 8 ? 127 : 7, gradients);
  }
};

// Plain ZeRO-3 gathers a unit's weights: every member's piece is converted and back.
class NarrowGather final : public Pending {
 public:
  NarrowGather(std::unique_ptr<Pending> inner, CollectiveCall call, const Narrowing& how)
      : inner_(std::move(inner)), call_(std::move(call)), how_(how) {}
  bool done() override {
    if (inner_ == nullptr) return true;
    if (!inner_->done()) return false;
    inner_.reset();
    auto* at = static_cast<std::byte*>(call_.out);
    for (const std::int64_t n : call_.counts) {
      store(how_.weight(floats_of(at, n, call_.element)), at, call_.element);
      at += n * (call_.element == Element::f32 ? 4 : 2);
    }
    return true;
  }

 private:
  std::unique_ptr<Pending> inner_;
  CollectiveCall call_;
  const Narrowing& how_;
};

// Plain ZeRO-3 reduces a unit's gradients: this rank gets all gradients of all members, and sums its own piece of them
// as the all-to-alls would.
class NarrowReduction final : public Pending {
 public:
  NarrowReduction(MPI_Comm group, CollectiveCall call, const Narrowing& how) : call_(std::move(call)), how_(how) {
    MPI_Comm_rank(group, &index_);
    for (const std::int64_t n : call_.counts) elements_ += n;
    own_ = floats_of(call_.in, elements_, call_.element);
    all_.resize(own_.size() * call_.counts.size());
    MPI_Iallgather(own_.data(), static_cast<int>(elements_), MPI_FLOAT, all_.data(), static_cast<int>(elements_),
                   MPI_FLOAT, group, &request_);
  }
  bool done() override {
    if (ended_) return true;
    int done = 0;
    MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
    if (done == 0) return false;
    const std::int64_t each = call_.counts.front(), own = call_.counts[static_cast<std::size_t>(index_)];
    const auto members = static_cast<std::int64_t>(call_.counts.size());
    std::vector<float> sum(static_cast<std::size_t>(own));
    for (std::int64_t node = 0; node < members / how_.in_node; ++node) {
      std::vector<float> of_node(static_cast<std::size_t>(own));
      for (std::int64_t m = node * how_.in_node; m < (node + 1) * how_.in_node; ++m)
        add_to(of_node, how_.gradient(part(all_, m * elements_ + index_ * each, own)));
      add_to(sum, how_.gradient(of_node));
    }
    if (call_.add) add_to(sum, floats_of(call_.out, own, call_.element));
    store(sum, call_.out, call_.element);
    return ended_ = true;
  }

 private:
  CollectiveCall call_;
  const Narrowing& how_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::vector<float> own_, all_;
  std::int64_t elements_ = 0;
  int index_ = 0;
  bool ended_ = false;
};

class NarrowTransport final : public Transport {
 public:
  NarrowTransport(std::unique_ptr<Transport> inner, const Rank& rank, MPI_Comm world, const ZeroQuantize& asked)
      : inner_(std::move(inner)) {
    const auto& members = rank.group(Dimension::data);
    const std::int32_t node = rank.spec.cluster.gpus_per_node;
    Spec spec = rank.spec;
    spec.strategy.zero_quantize = asked;
    how_ = {asked, static_cast<std::size_t>(gathered_format(spec).block),
            static_cast<std::size_t>(reduced_format(spec).block),
            std::count_if(members.begin(), members.end(),
                          [&](std::int32_t r) { return r / node == members.front() / node; })};
    MPI_Comm_split(world, members.front(), static_cast<int>(rank.number), &group_);
  }
  ~NarrowTransport() override { MPI_Comm_free(&group_); }

  std::unique_ptr<Pending> start(LaneKind lane, const CollectiveCall& call) override {
    const bool data = call.group == Dimension::data;
    if (data && call.kind == CollectiveKind::all_gather)
      return std::make_unique<NarrowGather>(inner_->start(lane, call), call, how_);
    if (data && call.kind == CollectiveKind::reduce_scatter && how_.asked.gradient_bits > 0)
      return std::make_unique<NarrowReduction>(group_, call, how_);
    return inner_->start(lane, call);
  }
  std::unique_ptr<Pending> start(LaneKind lane, const MessageCall& call) override { return inner_->start(lane, call); }

 private:
  std::unique_ptr<Transport> inner_;
  Narrowing how_;
  MPI_Comm group_ = MPI_COMM_NULL;
};

struct NarrowCase {
  int node;  // ranks of a node
  std::string narrow, strategy;
  std::string model = kLlama;
  std::string software = "orrery";
  std::string precision = "fp32", gradient_precision = "fp32";
};
void PrintTo(const NarrowCase& c, std::ostream* out) {
  *out << c.narrow << ", nodes of " << c.node << ", " << c.strategy << ", " << c.precision;
}

Spec narrowed(const NarrowCase& c) {
  const std::string strategy = "sharding: zero3, zero_quantize: {" + c.narrow + "}, " + c.strategy;
  Spec spec = spec_of({c.model, strategy, "adamw", c.software, c.precision, c.gradient_precision});
  spec.cluster.gpus_per_node = c.node;
  return spec;
}

Spec plain(Spec spec) {
  spec.strategy.zero_quantize = {};
  return spec;
}

// The results of a run of ZeRO++ and of its reference, on rank 0.
struct Both {
  Result narrow, reference;
};
std::optional<Both> run_both(const Spec& spec, bool converts = true) {
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return std::nullopt;
  Both both;
  both.narrow = run(some, spec);
  int number = 0;
  MPI_Comm_rank(some, &number);
  const Spec reference = plain(spec);
  const Plan plan = make_plan(reference);
  const Rank rank(reference, plan, number);
  Changes changes;
  if (converts)
    changes.transport = [&](std::unique_ptr<Transport> inner) {
      return std::make_unique<NarrowTransport>(std::move(inner), rank, some, spec.strategy.zero_quantize);
    };
  both.reference = run(some, reference, changes);
  MPI_Comm_free(&some);
  if (number > 0) return std::nullopt;
  return both;
}

constexpr const char* kAll = "weights: int8, gradients: int4, secondary_shards: node";
const std::string kNarrowGpt =
    "{name: narrow-gpt, layers: 3, hidden: 64, heads: 4, feed_forward: 128, vocab: 256, gated: false, positions: "
    "learned, norm: layernorm, bias: true, dropout: 0.1}";
const std::string kOddSizes =
    "{name: odd, layers: 3, hidden: 36, heads: 6, kv_heads: 3, feed_forward: 50, vocab: 131, qkv_bias: true}";

class Narrowed : public testing::TestWithParam<NarrowCase> {};

TEST_P(Narrowed, AsZero3WhoseTransfersConvert) {
  const Spec spec = narrowed(GetParam());
  if (const auto both = run_both(spec)) {
    expect_agreement(distance(spec, both->narrow, both->reference));
    EXPECT_LT(both->narrow.losses.back(), both->narrow.losses.front());
  }
}

const NarrowCase kOptions[] = {
    {2, "weights: int8", "data: 4, global_batch: 8"},
    {8, "weights: int8", "data: 3, global_batch: 6", kOddSizes},
    {1, "gradients: int4", "data: 2, global_batch: 4"},
    {2, "gradients: int4", "data: 2, global_batch: 4, clip: 0"},
    {2, "gradients: int4", "data: 4, global_batch: 4", kOddSizes},
    {2, "gradients: int8", "data: 8, global_batch: 16", kNarrowGpt},
    {4, "gradients: int4, secondary_shards: node", "data: 8, global_batch: 16"},
    {2, "weights: int8, secondary_shards: node", "data: 6, global_batch: 12", kOddSizes},
    {3, kAll, "data: 6, global_batch: 6", kNarrowGpt},
    {1, kAll, "data: 5, global_batch: 5"},
    {8, kAll, "data: 8, global_batch: 8"},
    {4, kAll, "data: 8, global_batch: 16", kOddSizes},
    {2, kAll, "data: 4, global_batch: 8", kLlama, "deepspeed-2019"},
    {2, kAll, "data: 4, global_batch: 8, recompute: full", kLlama, "pytorch-fsdp"},
};
INSTANTIATE_TEST_SUITE_P(Options, Narrowed, testing::ValuesIn(kOptions));

const NarrowCase kLayouts[] = {
    {4, kAll, "tensor: 2, data: 4, global_batch: 8"},
    {2, kAll, "tensor: 2, data: 4, global_batch: 8, sequence_parallel: false"},
    {4, kAll, "context: 2, data: 4, global_batch: 8"},
    {2, kAll, "context: 4, data: 2, context_kind: ulysses, global_batch: 4"},
    {2, kAll, "pipeline: 2, data: 4, schedule: naive, global_batch: 8"},
    {2, kAll, "pipeline: 2, data: 4, schedule: gpipe, global_batch: 8"},
    {2, kAll, "pipeline: 2, data: 4, schedule: 1f1b, global_batch: 16"},
    {2, kAll, "pipeline: 2, data: 4, schedule: interleaved, virtual_stages: 2, global_batch: 16"},
    {1, kAll, "pipeline: 4, data: 2, schedule: zb-h1, global_batch: 8"},
    {2, kAll, "pipeline: 2, data: 4, schedule: zb-h2, global_batch: 16"},
    {2, kAll, "pipeline: 2, data: 4, schedule: zb-v, global_batch: 16"},
    {2, kAll, "pipeline: 2, data: 4, schedule: v-half, global_batch: 16"},
    {4, kAll, "pipeline: 2, tensor: 2, data: 2, schedule: v-min, global_batch: 8"},
    {2, kAll, "pipeline: 2, tensor: 2, data: 2, global_batch: 8, rank_order: tp-cp-ep-pp-dp"},
    {2, kAll, "data: 4, global_batch: 8, recompute: selective, prefetch_units: 2, units_in_flight: 1"},
    {2, kAll, "data: 4, global_batch: 8, overlap: {parameter_gather: false, gradient_reduce: false}"},
};
INSTANTIATE_TEST_SUITE_P(Layouts, Narrowed, testing::ValuesIn(kLayouts));

// Secondary shards alone move the same bits on other ways.
TEST(SecondaryShards, AreAsPlainZero3) {
  for (const NarrowCase& c :
       {NarrowCase{2, "secondary_shards: node", "data: 4, global_batch: 8"},
        NarrowCase{4, "secondary_shards: node", "data: 8, global_batch: 16", kOddSizes},
        NarrowCase{1, "secondary_shards: node", "data: 3, global_batch: 3", kNarrowGpt},
        NarrowCase{2, "secondary_shards: node",
                   "pipeline: 2, data: 4, schedule: zb-v, global_batch: 16, recompute: full"},
        NarrowCase{4, "secondary_shards: node", "data: 4, global_batch: 8", kLlama, "orrery", "bf16", "fp32"}}) {
    SCOPED_TRACE(testing::PrintToString(c));
    const auto both = run_both(narrowed(c), false);
    if (!both) continue;
    EXPECT_EQ(both->narrow.losses, both->reference.losses);
    EXPECT_EQ(both->narrow.gradients, both->reference.gradients);
    EXPECT_EQ(both->narrow.weights, both->reference.weights);
  }
}

// In 16 bits weights are rounded before they are converted; the reference rounds them alike, so bits agree.
TEST(Narrowed16, IsAsZero3WhoseTransfersConvert) {
  for (const char* gradients : {"fp32", "bf16"}) {
    const NarrowCase c = {2, kAll, "data: 4, global_batch: 8", kLlama, "orrery", "bf16", gradients};
    if (const auto both = run_both(narrowed(c))) {
      EXPECT_EQ(both->narrow.losses, both->reference.losses) << gradients;
      EXPECT_EQ(both->narrow.weights, both->reference.weights) << gradients;
    }
  }
}

// A transport that notes the largest magnitude of the gradients that this rank reduces over data ranks.
class LargestTransport final : public Transport {
 public:
  LargestTransport(std::unique_ptr<Transport> inner, float& largest) : inner_(std::move(inner)), largest_(largest) {}
  std::unique_ptr<Pending> start(LaneKind lane, const CollectiveCall& call) override {
    std::int64_t elements = 0;
    for (const std::int64_t n : call.counts) elements += n;
    if (call.kind == CollectiveKind::reduce_scatter) {
      for (const float g : floats_of(call.in, elements, call.element)) largest_ = std::max(largest_, std::abs(g));
    }
    return inner_->start(lane, call);
  }
  std::unique_ptr<Pending> start(LaneKind lane, const MessageCall& call) override { return inner_->start(lane, call); }

 private:
  std::unique_ptr<Transport> inner_;
  float& largest_;
};

// A gradient of d ranks, none larger than g, is off by d times half a scale of at most g over the largest code when the
// ranks send it, and by as much again when the nodes send their sums.
TEST(NarrowGradients, ErrorsAreBoundedByTheScales) {
  for (const auto& [bits, largest_code] : {std::pair{"int8", 127.0}, std::pair{"int4", 7.0}}) {
    const std::string narrow = fmt::format("gradients: {}", bits);
    const Spec spec = narrowed({2, narrow, "data: 4, global_batch: 8, clip: 0"});
    MPI_Comm some = ranks_for(spec);
    if (some == MPI_COMM_NULL) continue;
    float mine = 0, largest = 0;
    const Result result = run(some, spec, {.steps = 1});
    Changes changes = {.steps = 1};
    changes.transport = [&](std::unique_ptr<Transport> inner) {
      return std::make_unique<LargestTransport>(std::move(inner), mine);
    };
    const Result whole = run(some, plain(spec), changes);
    MPI_Allreduce(&mine, &largest, 1, MPI_FLOAT, MPI_MAX, some);
    MPI_Comm_free(&some);
    const double micro_batches = 2, ranks = 4, bound = micro_batches * ranks * largest / largest_code;
    double worst_error = 0;
    for (const auto& [name, g] : whole.gradients) {
      const std::vector<float>& narrowed_g = result.gradients.at(name);
      for (std::size_t i = 0; i < g.size(); ++i)
        worst_error = std::max(worst_error, std::abs(double{g[i]} - double{narrowed_g[i]}));
    }
    EXPECT_LE(worst_error, bound) << bits;
    if (whole.gradients.empty()) continue;  // the results are put together on rank 0
    EXPECT_GT(worst_error, 1e-3 * bound) << bits;
  }
}

// With wide codes training is that of ZeRO-3, but for a tenth of what it changes.
TEST(Narrowed8, TrainsAsZero3) {
  const Spec spec = narrowed({2, "weights: int8, gradients: int8", "data: 4, global_batch: 8"});
  const auto both = run_both(spec, false);
  if (!both) return;
  const std::vector<double>& exact = both->reference.losses;
  for (std::size_t s = 0; s < exact.size(); ++s)
    EXPECT_NEAR(both->narrow.losses[s], exact[s], 0.1 * (exact.front() - exact.back()));
  EXPECT_NE(both->narrow.losses, exact);
}

// A transport that counts the bytes of collectives, by group.
class CountingTransport final : public Transport {
 public:
  CountingTransport(std::unique_ptr<Transport> inner, const Rank& rank, std::map<Dimension, Bytes>& moved)
      : inner_(std::move(inner)), rank_(rank), moved_(moved) {}
  std::unique_ptr<Pending> start(LaneKind lane, const CollectiveCall& call) override {
    const Bytes width = call.element == Element::bytes ? 1 : call.element == Element::f32 ? 4 : 2;
    std::int64_t elements = 0;
    for (const std::int64_t n : call.counts) elements += n;
    const bool all = call.kind == CollectiveKind::all_to_all;
    moved_[call.group] += elements * width * (all ? rank_.position_in(call.group).size : 1);
    return inner_->start(lane, call);
  }
  std::unique_ptr<Pending> start(LaneKind lane, const MessageCall& call) override { return inner_->start(lane, call); }

 private:
  std::unique_ptr<Transport> inner_;
  const Rank& rank_;
  std::map<Dimension, Bytes>& moved_;
};

TEST(NarrowVolumes, AreThoseOfThePlan) {
  for (const NarrowCase& c : {NarrowCase{2, kAll, "data: 4, global_batch: 8"},
                              NarrowCase{4, "weights: int8", "data: 8, global_batch: 8", kOddSizes},
                              NarrowCase{2, "gradients: int4", "data: 6, global_batch: 12"}}) {
    const Spec spec = narrowed(c);
    MPI_Comm some = ranks_for(spec);
    if (some == MPI_COMM_NULL) continue;
    int number = 0;
    MPI_Comm_rank(some, &number);
    const Plan plan = make_plan(spec);
    const Rank rank(spec, plan, number);
    std::map<Dimension, Bytes> moved, planned;
    Changes changes = {.steps = 1};
    changes.transport = [&](std::unique_ptr<Transport> inner) {
      return std::make_unique<CountingTransport>(std::move(inner), rank, moved);
    };
    run(some, spec, changes);
    MPI_Comm_free(&some);
    for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
      if (const auto* work = std::get_if<Collective>(&rank.plan.op_of(t).work)) planned[work->group] += work->bytes;
    }
    for (const Dimension d : {Dimension::data, Dimension::data_in_node, Dimension::data_over_nodes})
      EXPECT_EQ(moved[d], planned[d]) << name_of(d);
  }
}

}  // namespace
}  // namespace orrery
