// Every strategy against one rank: gradients, losses and weights of a small model on a text (design.md, "Validation
// that cannot fool itself").
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exec/execute.h"
#include "exec/initial.h"
#include "exec/mpi_session.h"
#include "exec/mpi_transport.h"
#include "models/make_plan.h"

namespace orrery {
namespace {

constexpr double kLimit = 1e-5;        // of gradients, losses and weights
constexpr double kChangeLimit = 1e-4;  // of the change of weights under Adam
constexpr std::int64_t kSteps = 5;

// Weights or gradients of the whole model, by name.
using Tensors = std::map<std::string, std::vector<float>>;

struct Result {
  Tensors gradients, initial, weights;
  std::vector<double> losses;  // mean per token, by step
};

const std::string kLlama =
    "{name: tiny-llama, layers: 4, hidden: 64, heads: 8, kv_heads: 4, feed_forward: 96, vocab: 250}";
const std::string kGpt =
    "{name: tiny-gpt, layers: 4, hidden: 64, heads: 4, feed_forward: 128, vocab: 256, gated: false, positions: "
    "learned, "
    "norm: layernorm, bias: true, tied_embeddings: true, dropout: 0.1}";

const std::string kQwen =
    "{name: tiny-qwen, layers: 3, hidden: 64, heads: 8, kv_heads: 2, feed_forward: 96, vocab: 256, qk_norm: true, "
    "qkv_bias: true, tied_embeddings: true}";

struct Case {
  std::string model, strategy;
  std::string optimizer = "adamw";
};

Spec spec_of(const Case& c, const std::string& strategy) {
  return parse_spec(fmt::format("model: {}\nsequence: 32\ncluster: {{node: dgx-h100, nodes: 1}}\nsoftware: orrery\n"
                                "strategy: {{precision: fp32, gradient_precision: fp32, optimizer: {}, {}}}\n",
                                c.model, c.optimizer, strategy),
                    "case");
}

Training training_of(const Spec& spec) {
  Training t;
  t.rule.kind = spec.strategy.optimizer.kind == OptimizerKind::sgd ? kernels::UpdateRule::Kind::sgd
                                                                   : kernels::UpdateRule::Kind::adamw;
  t.rule.learning_rate = t.rule.kind == kernels::UpdateRule::Kind::sgd ? 0.1 : 1e-3;
  // Adam moves an element whose gradient is rounding noise by a whole step, in either direction, unless epsilon is above
  // that noise (gradients here are 1e-5 to 1e-2, their rounding 1e-9 or less).
  t.rule.epsilon = 1e-6;
  t.clip = spec.strategy.clip;
  t.seed = 7;
  return t;
}

void add(Tensors& tensors, const std::map<std::string, OwnedValues>& owned) {
  for (const auto& [name, v] : owned) {
    auto& all = tensors[name];
    all.resize(static_cast<std::size_t>(v.shape[0] * v.shape[1]), NAN);
    for (std::size_t i = 0; i < v.places.size(); ++i) all[v.places[i]] = v.values[i];
  }
}

// Puts together on rank 0 what the ranks own; elements that several own must agree there too, since the last one stays.
Tensors collect(MPI_Comm world, const Tensors& mine) {
  int rank = 0, size = 1;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  if (rank > 0) {
    for (const auto& [name, values] : mine) {
      MPI_Send(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, 1, world);
      MPI_Send(values.data(), static_cast<int>(values.size()), MPI_FLOAT, 0, 2, world);
    }
    MPI_Send("", 0, MPI_CHAR, 0, 1, world);
    return {};
  }
  Tensors all = mine;
  for (int from = 1; from < size; ++from) {
    while (true) {
      MPI_Status status;
      int length = 0;
      MPI_Probe(from, 1, world, &status);
      MPI_Get_count(&status, MPI_CHAR, &length);
      std::string name(static_cast<std::size_t>(length), ' ');
      MPI_Recv(name.data(), length, MPI_CHAR, from, 1, world, MPI_STATUS_IGNORE);
      if (length == 0) break;
      MPI_Probe(from, 2, world, &status);
      MPI_Get_count(&status, MPI_FLOAT, &length);
      std::vector<float> values(static_cast<std::size_t>(length));
      MPI_Recv(values.data(), length, MPI_FLOAT, from, 2, world, MPI_STATUS_IGNORE);
      auto& to = all[name];
      to.resize(values.size(), NAN);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isnan(values[i])) to[i] = values[i];
      }
    }
  }
  return all;
}

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

Result run(MPI_Comm world, const Spec& spec, Fault fault = Fault::none) {
  int number = 0;
  MPI_Comm_rank(world, &number);
  const Plan plan = make_plan(spec);
  Rank rank(spec, plan, number);
  if (fault == Fault::dropped_micro_batch) drop_micro_batch(rank.plan);
  const auto transport = std::make_unique<FaultyTransport>(mpi_transport(world, rank.plan), fault);
  const Text text = read_text(ORRERY_SOURCE_DIR "/exec/data/text.txt", spec.model.vocab, spec.sequence);
  Tensors gradients, initial, weights;
  ExecuteOptions options;
  options.steps = kSteps;
  options.training = training_of(spec);
  options.on_gradients = [&](std::int64_t step, const Buffers& b) {
    if (step > 0) return;
    add(gradients, owned_values(rank, b, Quantity::gradients));
    add(initial, owned_values(rank, b, Quantity::weights));
  };
  options.on_end = [&](const Buffers& b) { add(weights, owned_values(rank, b, Quantity::weights)); };
  const Execution e = execute(rank, *transport, text, options);
  Result result = {collect(world, gradients), collect(world, initial), collect(world, weights), {}};
  const double share = rank.seat(Dimension::tensor).index == 0 ? 1.0 / static_cast<double>(spec.strategy.data) : 0.0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    double loss = e.losses.empty() ? 0 : share * e.losses[step], sum = 0;
    MPI_Allreduce(&loss, &sum, 1, MPI_DOUBLE, MPI_SUM, world);
    result.losses.push_back(sum);
  }
  return result;
}

double norm(const std::vector<float>& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b, std::size_t n) {
  std::vector<float> d(n);
  for (std::size_t i = 0; i < n; ++i) d[i] = a[i] - b[i];
  return d;
}

// The largest ||x - reference|| / ||reference|| over the tensors, and its name. Padding rows, past the reference's end,
// take no part.
std::pair<double, std::string> worst(const Tensors& x, const Tensors& reference) {
  std::pair<double, std::string> result = {0, ""};
  for (const auto& [name, r] : reference) {
    const auto it = x.find(name);
    if (it == x.end() || it->second.size() < r.size()) return {INFINITY, name + " is missing"};
    const double error = norm(difference(it->second, r, r.size())) / norm(r);
    if (!(error <= result.first)) result = {error, name};
  }
  return result;
}

Tensors change(const Result& r) {
  Tensors d;
  for (const auto& [name, w] : r.weights) d[name] = difference(w, r.initial.at(name), w.size());
  return d;
}

// One rank in one process, with the same micro-batches in all.
const Result& reference_of(const Case& c, const Spec& spec) {
  static std::map<std::string, Result> known;
  const Strategy& s = spec.strategy;
  const std::string strategy =
      fmt::format("data: 1, micro_batch: {}, global_batch: {}, attention: {}, clip: {}", s.micro_batch, s.global_batch,
                  s.attention == Attention::flash ? "flash" : "unfused", s.clip);
  const auto [it, fresh] = known.try_emplace(c.model + c.optimizer + strategy);
  if (fresh) it->second = run(MPI_COMM_SELF, spec_of(c, strategy));
  return it->second;
}

// Softmax does not see a bias of the keys: its exact gradient is zero, what is left is rounding, which Adam normalises.
// Takes the biases of keys out; their gradient stays if it is small beside the queries'.
Tensors without_key_biases(const Model& m, Tensors tensors, bool gradients) {
  if (m.qk_norm || m.positions == Positions::rope) return tensors;  // a norm or a rotation stands between
  for (auto& [name, values] : tensors) {
    if (!name.ends_with("attention.qkv.bias")) continue;
    const auto queries = values.begin() + m.heads * m.head_dim, keys = queries + m.kv_heads * m.head_dim;
    if (gradients) {
      EXPECT_LE(norm({queries, keys}), kLimit * norm({values.begin(), queries})) << name;
    }
    std::fill(queries, keys, 0.0F);
  }
  return tensors;
}

// How far a run is from one rank, as multiples of the limits, and what is farthest.
struct Distance {
  double gradient = 0, weight = 0, change = 0, loss = 0;
  std::string of_gradient, of_weight, of_change;
};

Distance distance(const Spec& spec, const Result& r, const Result& one) {
  const auto apart = [&](const Tensors& x, const Tensors& reference, bool gradients) {
    return worst(without_key_biases(spec.model, x, gradients), without_key_biases(spec.model, reference, gradients));
  };
  Distance d;
  std::tie(d.gradient, d.of_gradient) = apart(r.gradients, one.gradients, true);
  std::tie(d.weight, d.of_weight) = apart(r.weights, one.weights, false);
  std::tie(d.change, d.of_change) = apart(change(r), change(one), false);
  for (std::int64_t s = 0; s < kSteps; ++s) d.loss = std::max(d.loss, std::abs(r.losses[s] / one.losses[s] - 1));
  return d;
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

void check_case(const Case& c, Fault fault = Fault::none) {
  const Spec spec = spec_of(c, c.strategy);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  ASSERT_LE(spec.strategy.gpus(), size);
  MPI_Comm some = MPI_COMM_NULL;
  const bool takes_part = rank < spec.strategy.gpus();
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, rank, &some);
  if (!takes_part) return;
  const Result result = run(some, spec, fault);
  MPI_Comm_free(&some);
  SCOPED_TRACE(c.model.substr(0, 20) + " " + c.strategy);
  if (rank > 0) return;
  const Distance d = distance(spec, result, reference_of(c, spec));
  fault == Fault::none ? expect_close(d) : expect_far(d);
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.model.substr(0, 18) << ", " << c.strategy; }

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

TEST(Faults, PlantedFaultsShow) {
  check_case({kLlama, "data: 2, global_batch: 4"}, Fault::missing_reduce);
  check_case({kLlama, "data: 2, global_batch: 4"}, Fault::counted_twice);
  check_case({kLlama, "data: 2, global_batch: 4"}, Fault::dropped_micro_batch);
  check_case({kLlama, "data: 2, sharding: zero1, global_batch: 4"}, Fault::stale_weight);
}

INSTANTIATE_TEST_SUITE_P(All, Strategies, testing::ValuesIn(kCases));

}  // namespace
}  // namespace orrery
