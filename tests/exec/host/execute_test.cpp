#include "exec/host/execute.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "exec/cpu/host_device.h"
#include "tests/exec/fake_transport.h"
#include "tests/exec/jobs.h"

namespace orrery {
namespace {

using test::FakeTransport;
using test::Job;
using test::spec_of;
using test::tiny_job;

struct Recorded {
  Execution execution;
  std::vector<std::int64_t> gradients_seen, steps_seen;
  int ends = 0;
};

Recorded run(const Job& job, std::int64_t steps) {
  const Rank rank = job.rank(0);
  const Text text = read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", job.spec.model.vocab, job.spec.sequence);
  FakeTransport transport(1);
  Recorded r;
  ExecuteOptions options;
  options.steps = steps;
  options.training.rule.learning_rate = 3e-3;
  options.training.clip = job.spec.strategy.clip;
  options.on_step = [&](std::int64_t s) { r.steps_seen.push_back(s); };
  options.on_gradients = [&](std::int64_t s, const Buffers& b) {
    r.gradients_seen.push_back(s);
    EXPECT_NE(b.state(rank.states[0], 2), nullptr);
  };
  options.on_end = [&](const Buffers&) { ++r.ends; };
  r.execution = execute(rank, transport, text, options);
  EXPECT_EQ(transport.started(), 0);  // a rank alone moves nothing
  return r;
}

TEST(Execute, TrainsOnOneRank) {
  const Job job = tiny_job("global_batch: 4, micro_batch: 2");
  const Recorded r = run(job, 20);
  const std::vector<double>& losses = r.execution.losses;
  ASSERT_EQ(losses.size(), 20U);
  EXPECT_NEAR(losses[0], std::log(64), 0.1);  // the untrained model guesses evenly among 64 tokens
  EXPECT_LT(losses[19], losses[0] - 0.5);
  const std::vector<std::int64_t> all = [] {
    std::vector<std::int64_t> v(20);
    std::iota(v.begin(), v.end(), 0);
    return v;
  }();
  EXPECT_EQ(r.steps_seen, all);
  EXPECT_EQ(r.gradients_seen, all);
  EXPECT_EQ(r.ends, 1);
}

TEST(Execute, TheSameRunGivesTheSameLosses) {
  const Job job = tiny_job("global_batch: 4, recompute: full");
  EXPECT_EQ(run(job, 3).execution.losses, run(job, 3).execution.losses);
}

TEST(Execute, SpansAreOrdered) {
  const Job job = tiny_job("global_batch: 2");
  const Rank rank = job.rank(0);
  const Execution e = run(job, 3).execution;
  ASSERT_EQ(e.steps.size(), 3U);
  Picoseconds last = 0;
  for (const MeasuredStep& step : e.steps) {
    EXPECT_GE(step.begin, last);
    last = step.end;
    ASSERT_EQ(step.spans.size(), rank.plan.task_count());
    Picoseconds issued = step.begin, ended = 0;
    for (TaskId t = 0; t < step.spans.size(); ++t) {
      const MeasuredSpan& s = step.spans[t];
      EXPECT_LE(issued, s.issued);  // in issue order
      issued = s.issued;
      EXPECT_LE(s.issued, s.entered);
      EXPECT_LE(s.entered, s.ended);
      EXPECT_LE(ended, s.entered);  // one rank: one lane
      ended = s.ended;
    }
    EXPECT_EQ(step.end, ended);
  }
}

// Memory peaks are at least the size of the states; the first step's is at most the run's; the categories sum to the
// peak.
TEST(Execute, ReportsItsMemory) {
  const Job job = tiny_job("global_batch: 2");
  const MeasuredMemory m = run(job, 2).execution.memory;
  Bytes sum = 0;
  for (const Bytes b : m.at_peak) sum += b;
  EXPECT_EQ(sum, m.peak);
  EXPECT_GT(m.peak, test::state_bytes(job.plan, 0));
  EXPECT_LE(m.first_step_peak, m.peak);
  EXPECT_LE(m.peak, m.peak_reserved);
  EXPECT_EQ(m.peak_reserved, m.peak_device);
  EXPECT_LE(m.peak_reserved, m.tier_peak[index_of(MemoryTier::host)] + m.capacity);
  EXPECT_LT(m.peak_task, job.plan.task_count());
}

TEST(Execute, RefusesWhatCpuRanksCannotRun) {
  const std::pair<const char*, const char*> cases[] = {
      {"precision: fp16, gradient_precision: bf16",
       "test:5: strategy.gradient_precision: gradients of a format other than fp32 and the precision: ranks have one "
       "16-bit "
       "format; choose fp32 or the precision"},
      {"precision: fp8",
       "test:5: strategy.precision: a precision other than fp32, bf16 and fp16: no ranks execute it; choose fp32, bf16 "
       "or "
       "fp16"},
  };
  const auto refusal = [](const Spec& spec, const char* ranks = "CPU") -> std::string {
    try {
      check_executable(spec, ranks);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const auto& [strategy, line] : cases) EXPECT_EQ(refusal(spec_of(test::kTiny, strategy)), line);
  EXPECT_EQ(refusal(spec_of(test::kTiny, "precision: fp16")), "");
  EXPECT_EQ(refusal(spec_of(test::kTiny, "precision: fp16"), "GPU"),
            "test:5: strategy.precision: fp16: GPU ranks do not execute it; choose bf16");
  EXPECT_EQ(refusal(spec_of(test::kTiny + ", positions: alibi", "global_batch: 1")),
            "test:1: model.positions: alibi: no ranks execute it; choose rope, learned or none");
  for (const char* cap : {", logit_softcap: 30", ", attention_softcap: 50"})
    EXPECT_EQ(refusal(spec_of(test::kTiny + cap, "global_batch: 1")),
              "test:1: model: soft caps: no ranks execute them; choose another model");
  EXPECT_EQ(refusal(spec_of(test::kTiny, "tensor: 2")), "");
  const Spec pieces = spec_of(test::kTiny, "tensor: 2, sequence_parallel: true, overlap: {tensor: true}");
  EXPECT_EQ(refusal(pieces), "");
  EXPECT_EQ(refusal(pieces, "GPU"),
            "test:5: strategy.overlap.tensor: products cut into pieces by overlap.tensor: GPU ranks do not execute "
            "them; leave "
            "it out");
  const Spec later = spec_of(test::kTiny, "pipeline: 2", 16, "profile: orrery, post_update_validation: true");
  EXPECT_EQ(refusal(later), "");
  EXPECT_EQ(refusal(later, "GPU"),
            "test:4: software.post_update_validation: post_update_validation: GPU ranks do not roll updates back; "
            "leave it out");
  EXPECT_EQ(refusal(spec_of(test::kTiny, "precision: bf16, gradient_precision: bf16")), "");
}

// Models are refused if the GPU's flash attention does not support their head size: multiples of 8 up to 256 are
// supported.
TEST(Execute, RefusesHeadsThatNoKernelTakes) {
  const auto refusal = [](std::int64_t head_dim, const std::string& strategy, std::string_view ranks = "GPU") {
    try {
      check_executable(spec_of(test::kTiny + fmt::format(", head_dim: {}", head_dim), strategy), ranks);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string bf16 = "precision: bf16, gradient_precision: fp32", fp32 = "precision: fp32";
  EXPECT_EQ(refusal(512, bf16),
            "model.head_dim: GPU ranks execute attention: flash with multiples of 8 of at most 256, not 512; choose "
            "another, or attention: unfused");
  EXPECT_EQ(refusal(12, bf16),
            "model.head_dim: GPU ranks execute attention: flash with multiples of 8 of at most 256, not 12; choose "
            "another, or attention: unfused");
  EXPECT_EQ(refusal(264, fp32),
            "model.head_dim: GPU ranks execute attention: flash with at most 256, not 264; choose another, or "
            "attention: unfused");
  EXPECT_EQ(refusal(256, bf16), "");
  EXPECT_EQ(refusal(12, fp32), "");
  EXPECT_EQ(refusal(512, bf16 + ", attention: unfused"), "");
  EXPECT_EQ(refusal(512, bf16, "CPU"), "");
}

// A device with a segment or two.
class SmallDevice final : public RankDevice {
 public:
  SmallDevice(const Rank& rank, Transport& transport, int segments) : host_(rank, transport), left_(segments) {}

  SegmentSource segments() override {
    SegmentSource source = host_.segments();
    return {[this, take = source.take](Bytes bytes) { return left_-- > 0 ? take(bytes) : nullptr; }, source.give};
  }
  void clear(std::span<std::byte> bytes) override { host_.clear(bytes); }
  void set_initial(const InitialRun& run) override { host_.set_initial(run); }
  void read(std::byte* to, const std::byte* from, std::size_t bytes) override { host_.read(to, from, bytes); }
  std::unique_ptr<Lanes> lanes(RunState& state, std::span<std::byte> workspace, Watcher watcher,
                               std::int64_t steps) override {
    return host_.lanes(state, workspace, std::move(watcher), steps);
  }
  void count(const MemoryUse& use, MeasuredMemory& memory) override { host_.count(use, memory); }

 private:
  HostDevice host_;
  int left_;
};

// Whichever allocation fails for lack of memory, the first buffer or one during a step, the error says "out of memory".
TEST(Execute, SaysThatThereIsNoMemory) {
  const Job job(spec_of("name: wide, layers: 1, hidden: 512, heads: 4, kv_heads: 4, feed_forward: 2048, vocab: 2048",
                        "global_batch: 4, precision: fp32, gradient_precision: fp32", 256));
  const Rank rank = job.rank(0);
  const Text text = read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", job.spec.model.vocab, job.spec.sequence);
  int ended = 0;
  for (int segments = 0; segments < 40 && ended == 0; ++segments) {
    FakeTransport transport(1);
    SmallDevice device(rank, transport, segments);
    try {
      execute(rank, device, text, {.steps = 1});
      ended = segments;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code, 1);
      EXPECT_EQ(std::string(error.what()).substr(0, 14), "out of memory:") << segments;
    }
  }
  EXPECT_GT(ended, 3);
}

}  // namespace
}  // namespace orrery
