// Schedules that update weights while micro-batches are in flight, against one process that computes every gradient
// with the same stale weights. The versions of the weights are computed here independently of the planner.
#include <algorithm>
#include <cstring>

#include "models/layers/blocks.h"
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

// Number of updates in the weights of `stage` with which the gradients of update n are computed.
using Met = std::int64_t (*)(std::int64_t n, std::int64_t stage, std::int64_t p);

// Narayanan et al. 2019: stage i's are p - 1 - i updates old; with vertical sync all are as old as the first stage's.
std::int64_t stashed(std::int64_t n, std::int64_t stage, std::int64_t p) {
  return std::max<std::int64_t>(0, n - (p - 1 - stage));
}
std::int64_t synced(std::int64_t n, std::int64_t, std::int64_t p) { return std::max<std::int64_t>(0, n - (p - 1)); }
// Narayanan et al. 2021: one update old everywhere.
std::int64_t buffered(std::int64_t n, std::int64_t, std::int64_t) { return std::max<std::int64_t>(0, n - 1); }

constexpr std::int64_t kRounds = 2;  // how often the plan runs

struct AsynchronousCase {
  Case job;
  Met met;
};

// The stage that holds a weight, of layers cut evenly.
std::int64_t stage_of(const std::string& name, const Model& model, std::int64_t p) {
  if (name.starts_with("layer ")) return std::stoll(name.substr(6)) * p / model.layers;
  return name.starts_with("embedding.") ? 0 : p - 1;
}

// Emulates the schedule on one rank with one update per step: before every step the weights are set back to those that
// each stage's micro-batches would have used, before every update to the newest.
class Emulation {
 public:
  Emulation(const Spec& spec, Met met, const Plan& job)
      : met_(met),
        stages_(spec.strategy.pipeline),
        updates_(job.micro_batches / job.update_every),
        one_(one_update(spec, job)),
        plan_(make_plan(one_)),
        rank_(one_, plan_, 0) {}

  Result run() {
    const auto transport = mpi_transport(MPI_COMM_SELF, rank_.plan);
    const Text text = read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", one_.model.vocab, one_.sequence);
    ExecuteOptions options;
    options.steps = kRounds * updates_;
    options.training = training_of(one_);
    options.on_gradients = [&](std::int64_t step, const Buffers& b) { before_update(step, b); };
    options.on_step = [&](std::int64_t step) { before_step(step); };
    options.on_end = [&](const Buffers& b) { add(result_.weights, owned_values(rank_, b, Quantity::weights)); };
    result_.losses = execute(rank_, *transport, text, options).losses;
    return result_;
  }

 private:
  static Spec one_update(const Spec& spec, const Plan& job) {
    Spec one = on_one_rank(spec);
    one.strategy.global_batch = spec.strategy.micro_batch * spec.strategy.data * job.update_every;
    return one;
  }

  float* weights() const { return reinterpret_cast<float*>(buffers_->state(rank_.states[0], kParameters)); }

  void before_update(std::int64_t step, const Buffers& b) {
    buffers_ = &b;
    if (step == 0) {
      add(result_.gradients, owned_values(rank_, b, Quantity::gradients));
      add(result_.initial, owned_values(rank_, b, Quantity::weights));
      note();
    }
    std::copy(versions_.back().begin(), versions_.back().end(), weights());
  }

  void note() {
    const auto n = plan_.blocks[plan_.frames[rank_.states[0]].block].buffers[kParameters].bytes / 4;
    versions_.emplace_back(weights(), weights() + n);
  }

  void before_step(std::int64_t step) {
    if (step == 0) return;
    note();
    if (step % updates_ == 0) versions_ = {versions_.back()};  // the pipeline is empty, and fills again
    for (const PlacedParameter& p : rank_.parameters.at(rank_.states[0])) {
      const auto& met = versions_[met_(step % updates_, stage_of(p.name, one_.model, stages_), stages_)];
      std::copy_n(met.begin() + p.first, p.local.out * p.local.in, weights() + p.first);
    }
  }

  Met met_;
  std::int64_t stages_, updates_;
  Spec one_;
  Plan plan_;
  Rank rank_;
  Result result_;
  const Buffers* buffers_ = nullptr;
  std::vector<std::vector<float>> versions_;
};

// Losses of steps, from those of updates.
std::vector<double> by_step(const std::vector<double>& losses, std::int64_t updates) {
  std::vector<double> result;
  for (std::size_t i = 0; i < losses.size(); i += static_cast<std::size_t>(updates))
    result.push_back(std::accumulate(losses.begin() + i, losses.begin() + i + updates, 0.0) /
                     static_cast<double>(updates));
  return result;
}

// The distance from the emulation, on rank 0; the first ranks run the job. Nothing on the other ranks.
std::optional<Distance> distance_from_emulation(const AsynchronousCase& c,
                                                const std::function<void(Plan&)>& change = {}) {
  const Spec spec = spec_of(c.job);
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return {};
  const Plan plan = make_plan(spec);
  Result result = run(some, spec, {.plan = change, .transport = {}, .steps = kRounds});
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return {};
  Result one = Emulation(spec, c.met, plan).run();
  one.losses = by_step(one.losses, plan.step_micro_batches() / plan.update_every);
  EXPECT_EQ(result.losses.size(), one.losses.size());
  return distance(spec, result, one);
}

const AsynchronousCase kAsynchronous[] = {
    {{kLlama, "pipeline: 4, data: 1, schedule: pipedream, global_batch: 4, clip: 0"}, stashed},
    {{kLlama, "pipeline: 4, data: 1, schedule: pipedream, vertical_sync: true, global_batch: 3, clip: 0", "sgd"},
     synced},
    {{kLlama, "pipeline: 4, data: 1, schedule: pipedream-2bw, global_batch: 4, clip: 0"}, buffered},
    {{kLlama, "pipeline: 2, data: 2, schedule: pipedream-2bw, recompute: full, global_batch: 6, clip: 0", "sgd"},
     buffered},
    {{kLlama, "pipeline: 2, data: 2, schedule: pipedream, global_batch: 8, clip: 0, bucket_MiB: 0.001"}, stashed},
    {{kLlama, "pipeline: 2, tensor: 2, data: 1, schedule: pipedream, global_batch: 2, clip: 0"}, stashed},
};

TEST(Asynchronous, AgreesWithOneProcessOfTheSameStaleWeights) {
  for (const AsynchronousCase& c : kAsynchronous) {
    SCOPED_TRACE(c.job.strategy);
    const auto d = distance_from_emulation(c);
    if (!d) continue;
    EXPECT_LE(d->gradient, kLimit) << "gradient of " << d->of_gradient;
    EXPECT_LE(d->weight, kLimit) << "weight " << d->of_weight;
    EXPECT_LE(d->change, kChangeLimit) << "change of " << d->of_change;
    EXPECT_LE(d->loss, kLimit);
  }
}

// Plants a fault: the first stage's micro-batches use the weights of the next ones, or the newest weights are not
// copied before they change.
void mistake_version(Plan& plan) {
  for (std::size_t f = 0; f + 1 < plan.frames.size(); ++f) {
    const auto next = std::find_if(plan.frames.begin() + f, plan.frames.end(), [&](const Frame& g) {
      return g.micro_batch == plan.frames[f].micro_batch + 1 && g.weights != kNone &&
             plan.blocks[g.block].role == BlockRole::layer;
    });
    if (plan.blocks[plan.frames[f].block].role == BlockRole::layer && next != plan.frames.end())
      plan.frames[f].weights = next->weights;
  }
}

void forget_copies(Plan& plan) {
  for (Op& op : plan.ops) {
    if (op.name != "copy weights") continue;
    op.work = Wait{};
  }
}

TEST(Asynchronous, PlantedFaultsShow) {
  for (const auto& fault : {mistake_version, forget_copies}) {
    for (const AsynchronousCase& c : {kAsynchronous[0], kAsynchronous[2]}) {
      const auto d = distance_from_emulation(c, fault);
      if (!d) continue;
      EXPECT_TRUE(d->weight > 10 * kLimit || d->change > 10 * kChangeLimit) << d->weight << " " << d->change;
    }
  }
}

}  // namespace
}  // namespace orrery
