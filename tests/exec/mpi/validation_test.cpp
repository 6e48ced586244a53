// Updates that are validated in the next step (software.post_update_validation) against those that wait for the norm of
// all stages.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "models/layers/blocks.h"
#include "tests/exec/strategy_run.h"
#include "tests/random_bits.h"

namespace orrery {
namespace {

using namespace test;

// Norms of these models' gradients fall from 3.6 to 2.0 (AdamW) or 2.6 (SGD) in five steps.
constexpr double kNever = 1e6, kSometimes = 3.05, kAlways = 1.5;

struct ValidatedCase {
  Case job;
  double clip = 0;
};

void PrintTo(const ValidatedCase& c, std::ostream* out) {
  PrintTo(c.job, out);
  *out << ", " << c.job.precision << ", clip " << c.clip;
}

Spec spec_of(const ValidatedCase& c, bool validates) {
  Spec spec = test::spec_of(c.job);
  spec.strategy.clip = c.clip;
  spec.software.kernels.fused_clip = true;  // gradients are seen as they are reduced
  spec.software.communication.post_update_validation = validates;
  return spec;
}

struct Outcome {
  Result result;
  int roll_back = 0;  // number of updates that were rolled back, on rank 0
};

// The outcome of a run. The host waits for the whole norm once in every step and once after the last, and again where
// an update was rolled back. Nothing on ranks that take no part.
std::optional<Outcome> outcome_of(const Spec& spec, Changes changes = {}) {
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return std::nullopt;
  std::atomic<int> waits = 0;
  TaskId validated = kNone;
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  const auto change = changes.plan;
  changes.plan = [&, change](Plan& plan) {
    validated = plan.classes.front().validated;
    if (change) change(plan);
  };
  const Watcher watcher = changes.watcher;
  changes.watcher = [&, watcher](TaskId t, bool entered) {
    if (t == validated && entered) ++waits;
    if (watcher) watcher(t, entered);
  };
  Outcome outcome = {run(some, spec, changes), 0};
  outcome.roll_back = waits - static_cast<int>(changes.steps) - 1;
  MPI_Comm_free(&some);
  if (rank > 0) return std::nullopt;
  return outcome;
}

bool bits_agree(const Tensors& a, const Tensors& b) {
  const auto alike = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.size() == y.second.size() &&
           std::equal(x.second.begin(), x.second.end(), y.second.begin(), [](float p, float q) {
             return std::bit_cast<std::uint32_t>(p) == std::bit_cast<std::uint32_t>(q);
           });
  };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), alike);
}

// Calls f right before a step's gradients enter a norm, on the rank's own lane.
Changes before_norm(const std::function<void(std::int64_t step, const Rank&, const Buffers&)>& f) {
  struct Seen {
    TaskId norm = kNone;
    std::int64_t step = 0;
    const Rank* rank = nullptr;
    const Buffers* buffers = nullptr;
  };
  const auto seen = std::make_shared<Seen>();
  Changes changes;
  changes.on_begin = [seen](std::int64_t step, const Rank& rank, const Buffers& buffers) {
    *seen = {0, step, &rank, &buffers};
    while (!std::holds_alternative<SquaredNorm>(rank.plan.op_of(seen->norm).work)) ++seen->norm;
  };
  changes.watcher = [seen, f](TaskId t, bool entered) {
    if (entered && t == seen->norm) f(seen->step, *seen->rank, *seen->buffers);
  };
  return changes;
}

// Before every update each master weight is off by one place, up or down: no less than rounding leaves of an update
// that is taken back and made again, half a place each time. Ranks that hold the same weights move them alike.
Changes off_by_a_place(std::uint64_t seed) {
  return before_norm([seed](std::int64_t step, const Rank& rank, const Buffers& b) {
    const std::uint64_t first = random_bits(kSteps * seed + static_cast<std::uint64_t>(step));
    for (const std::uint32_t frame : rank.states) {
      const Bytes bytes = rank.plan.blocks[rank.plan.frames[frame].block].buffers[kMaster].bytes;
      const std::span<float> master(reinterpret_cast<float*>(b.state(frame, kMaster)), bytes / sizeof(float));
      for (std::size_t i = 0; i < master.size(); ++i)
        master[i] = std::nextafter(master[i], random_bits(first + i) % 2 == 0 ? INFINITY : -INFINITY);
    }
  });
}

// How far a run may be from the barrier: as fp32 rounds; in bf16 as far as that carries a place of the masters. A
// master that comes to lie on the other side of a boundary of bf16, one in 65,536, changes forward's weight by 2^-8 of
// it, and with it all values and gradients that follow. Norms of tensors depend little on which they are
// (measured: 2.2e-3 to 3.2e-3 of a change, where validated steps come to 1.6e-3 and a fault to 6e-2); a loss is one
// number, off either way: twice the most.
Distance limits(const ValidatedCase& c, const Result& barrier) {
  Distance most = {.gradient = kLimit, .weight = kLimit, .change = kChangeLimit, .loss = kLimit};
  if (c.job.precision == "fp32" || c.clip == kNever) return most;
  for (const std::uint64_t seed : {0, 1, 2}) {
    const auto other = outcome_of(spec_of(c, false), off_by_a_place(seed));
    if (!other) continue;
    const Distance d = distance(spec_of(c, false), other->result, barrier);
    EXPECT_GT(d.change, 0);
    most.weight = std::max(most.weight, d.weight);
    most.change = std::max(most.change, d.change);
    most.loss = std::max(most.loss, 2 * d.loss);
  }
  return most;
}

class Validation : public testing::TestWithParam<ValidatedCase> {};

TEST_P(Validation, AgreesWithTheBarrier) {
  const ValidatedCase& c = GetParam();
  const auto later = outcome_of(spec_of(c, true)), barrier = outcome_of(spec_of(c, false));
  const Distance most = limits(c, barrier ? barrier->result : Result{});
  if (!later) return;
  EXPECT_GE(later->roll_back, c.clip == kNever ? 0 : c.clip == kAlways ? kSteps : 1);
  EXPECT_LE(later->roll_back, c.clip == kNever ? 0 : c.clip == kAlways ? kSteps : kSteps - 1);
  if (c.clip == kNever) {
    EXPECT_TRUE(bits_agree(later->result.weights, barrier->result.weights));
    EXPECT_EQ(later->result.losses, barrier->result.losses);
  }
  const Distance d = distance(spec_of(c, true), later->result, barrier->result);
  EXPECT_LE(d.gradient, most.gradient) << "gradient of " << d.of_gradient;
  EXPECT_LE(d.weight, most.weight) << "weight " << d.of_weight;
  EXPECT_LE(d.change, most.change) << "change of " << d.of_change;
  EXPECT_LE(d.loss, most.loss);
  if (c.job.precision == "fp32")
    expect_agreement(distance(spec_of(c, true), later->result, reference_of(spec_of(c, true))));
}

std::vector<ValidatedCase> validated_cases() {
  std::vector<ValidatedCase> cases;
  for (const double clip : {kNever, kSometimes, kAlways}) {
    for (const char* precision : {"fp32", "bf16"}) {
      for (const char* strategy : {"pipeline: 4, data: 2, schedule: zb-h2, global_batch: 16",
                                   "pipeline: 2, data: 2, tensor: 2, schedule: zb-2p, global_batch: 12"})
        cases.push_back({{kLlama, strategy, "adamw", "orrery", precision, precision}, clip});
    }
  }
  for (const char* strategy :
       {"pipeline: 2, data: 1, schedule: zb-h2, global_batch: 6",
        "pipeline: 4, data: 1, schedule: zb-2p, global_batch: 8", "pipeline: 4, data: 1, global_batch: 8",
        "pipeline: 4, data: 2, schedule: gpipe, global_batch: 8",
        "pipeline: 2, virtual_stages: 2, data: 2, schedule: zb-v, global_batch: 8",
        "pipeline: 2, virtual_stages: 2, data: 2, global_batch: 8"})
    cases.push_back({{kLlama, strategy}, kSometimes});
  cases.push_back(
      {{kGpt, "pipeline: 2, data: 2, schedule: zb-h2, recompute: selective, attention: unfused, global_batch: 8"},
       kSometimes});
  cases.push_back({{kLlama, "pipeline: 2, data: 2, schedule: zb-h2, global_batch: 8", "sgd"}, kSometimes});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Validation, testing::ValuesIn(validated_cases()));

ValidatedCase faulty(const std::string& precision) {
  return {{kLlama, "pipeline: 4, data: 2, schedule: zb-h2, global_batch: 16", "adamw", "orrery", precision, precision},
          kSometimes};
}

// Checks that a fault moves the run ten times as far as the limit.
void expect_far_from_barrier(const std::string& precision, const std::function<void(Plan&)>& fault) {
  const ValidatedCase c = faulty(precision);
  const auto later = outcome_of(spec_of(c, true), {.plan = fault}), barrier = outcome_of(spec_of(c, false));
  const Distance most = limits(c, barrier ? barrier->result : Result{});
  if (!later) return;
  const Distance d = distance(spec_of(c, true), later->result, barrier->result);
  EXPECT_TRUE(d.weight > 10 * most.weight || d.change > 10 * most.change)
      << "weight " << d.weight << ", change " << d.change;
}

class Faults : public testing::TestWithParam<const char*> {};

TEST_P(Faults, AnUpdateThatIsNotSetRightShows) {
  expect_far_from_barrier(GetParam(), [](Plan& plan) { plan.classes.front().validated = kNone; });
}

TEST_P(Faults, ANormWithoutTheStagesBeforeShows) {
  expect_far_from_barrier(GetParam(), [](Plan& plan) {
    for (Op& op : plan.ops) {
      if (op.name == "add partial norm") op.work = Wait{};
    }
  });
}

TEST_P(Faults, AGradientOfOneRankAloneShows) {
  expect_far_from_barrier(GetParam(), [](Plan& plan) {
    for (Op& op : plan.ops) {
      if (op.name == "reduce gradients") op.work = Wait{};
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Precisions, Faults, testing::Values("fp32", "bf16"));

// If one stage's gradient is not finite, no stage updates its weights: the result is that of a step with zero
// gradients, for an optimizer without moments.
TEST(Validation, LeavesOutAnUpdateThatIsNotFinite) {
  const ValidatedCase c = {{kLlama, "pipeline: 4, data: 1, schedule: zb-h2, global_batch: 8", "sgd"}, 1.0};
  for (const int stage : {0, 2, 3}) {
    const auto spoil = [&](std::int64_t step, const Rank& rank, const Buffers& b) {
      if (step == 1 && rank.number == stage)
        reinterpret_cast<float*>(b.state(rank.states[0], kGradients))[5] = INFINITY;
    };
    const auto clear = [&](std::int64_t step, const Rank& rank, const Buffers& b) {
      if (step != 1) return;
      const Block& block = rank.plan.blocks[rank.plan.frames[rank.states[0]].block];
      std::fill_n(b.state(rank.states[0], kGradients), block.buffers[kGradients].bytes, std::byte{});
    };
    const auto later = outcome_of(spec_of(c, true), before_norm(spoil));
    const auto barrier = outcome_of(spec_of(c, false), before_norm(clear));
    if (!later) continue;
    expect_agreement(distance(spec_of(c, true), later->result, barrier->result));
  }
}

// Whether the first stage begins a step while the last one still has its gradients of the step before, until the file
// is there that says so.
bool begins_early(bool validates) {
  const Spec spec =
      spec_of({{kLlama, "pipeline: 4, data: 1, schedule: zb-h2, global_batch: 8"}, kSometimes}, validates);
  std::string folder = testing::TempDir() + "orrery_validation_XXXXXX";
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) folder = mkdtemp(folder.data());
  MPI_Bcast(folder.data(), static_cast<int>(folder.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  const std::filesystem::path begun = folder + "/begun";
  int early = 0;
  Changes changes = before_norm([&](std::int64_t step, const Rank& r, const Buffers&) {
    if (step != 0 || r.number + 1 != spec.strategy.pipeline) return;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(validates ? 30 : 1);
    while (!(early = std::filesystem::exists(begun)) && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const Watcher hold_back = changes.watcher;
  int begins = 0;
  changes.watcher = [&](TaskId t, bool entered) {
    if (rank == 0 && t == 0 && entered && ++begins == 2) std::ofstream(begun) << "yes";
    hold_back(t, entered);
  };
  outcome_of(spec, changes);
  MPI_Allreduce(MPI_IN_PLACE, &early, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) std::filesystem::remove_all(folder);
  return early != 0;
}

TEST(Validation, StepsOverlap) {
  EXPECT_TRUE(begins_early(true));
  EXPECT_FALSE(begins_early(false));
}

}  // namespace
}  // namespace orrery
