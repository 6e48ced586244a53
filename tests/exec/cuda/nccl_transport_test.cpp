#include "exec/cuda/nccl_transport.h"

#include <deque>
#include <optional>

#include <gtest/gtest.h>

#include "exec/cuda/queue.h"
#include "tests/exec/collective_trial.h"
#include "tests/exec/cuda/nccl_ranks.h"

// The null GPU's: how many bytes of a range hold what the host brought, or nothing.
extern "C" __attribute__((weak)) std::size_t orrery_untouched_by_device(const void* at, std::size_t bytes);

// Communicators of one rank are all that one GPU allows; the null GPU has several.
namespace orrery {
namespace {

class NcclTransport : public test::OnGpu {
 protected:
  static std::vector<int> sizes() { return test::computes() ? std::vector{1} : std::vector{1, 2, 3, 4}; }
};

// NCCL with communicators of one rank starts, copies and ends, and the result is a CPU rank's.
TEST_F(NcclTransport, AloneAgreesWithTheCpu) {
  const Spec spec = spec_of(test::Case{test::kLlama, "data: 1, sharding: zero1, global_batch: 2"});
  cuda::SharedGpu gpu;
  expect_like_cpu(spec, test::run_on_nccl(spec, gpu), test::on_one_cpu_rank);
}

// A trial whose memory lies on the device while it is carried out.
class DeviceTrial {
 public:
  DeviceTrial(const Plan& plan, int rank, const CollectiveCase& c) : trial_(plan, rank, c), call_(trial_.call()) {
    for (std::vector<std::byte>* bytes : trial_.memory()) {
      cuda::Memory memory(cuda::Memory::Place::device, static_cast<Bytes>(bytes->size()));
      ORRERY_CHECK_CUDA(cudaMemcpy(memory.data(), bytes->data(), bytes->size(), cudaMemcpyHostToDevice));
      if (const auto at = within(*bytes, call_.in)) call_.in = memory.data() + *at;
      if (const auto at = within(*bytes, call_.out)) call_.out = memory.data() + *at;
      device_.push_back(std::move(memory));
    }
  }
  const CollectiveCall& call() const { return call_; }

  void expect(const cuda::CudaQueue& queue) {
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(queue.stream()));
    if (!test::computes()) return expect_written();
    for (std::size_t i = 0; i < device_.size(); ++i) {
      std::vector<std::byte>& bytes = *trial_.memory()[i];
      ORRERY_CHECK_CUDA(cudaMemcpy(bytes.data(), device_[i].data(), bytes.size(), cudaMemcpyDeviceToHost));
    }
    trial_.expect();
  }

 private:
  // The null GPU moves no numbers, but knows what was written: each byte that must change.
  void expect_written() const {
    const std::vector<std::byte> right = trial_.expected();
    const auto* const before = static_cast<const std::byte*>(trial_.result());
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (right[i] == before[i]) continue;
      ASSERT_EQ(orrery_untouched_by_device(static_cast<const std::byte*>(call_.out) + i, 1), 0U)
          << "byte " << i << " of the result was not written: " << trial_;
    }
  }

  static std::optional<std::ptrdiff_t> within(const std::vector<std::byte>& bytes, const void* at) {
    const std::ptrdiff_t place = static_cast<const std::byte*>(at) - bytes.data();
    if (bytes.empty() || place < 0 || place > static_cast<std::ptrdiff_t>(bytes.size())) return std::nullopt;
    return place;
  }

  Trial trial_;
  CollectiveCall call_;
  std::vector<cuda::Memory> device_;
};

// NCCL's own collectives, and those of chunk moves; each on groups of several sizes.
TEST_F(NcclTransport, EveryCollectiveEndsWithWhatItPromises) {
  for (const int ranks : sizes()) {
    const Plan plan = plan_of(ranks);
    test::expect_no_errors(test::on_nccl_ranks(plan, [&](int rank, QueuedTransport& transport) {
      test::OwnQueue queue;
      for (const CollectiveCase& c : all_cases()) {
        DeviceTrial trial(plan, rank, c);
        const QueuedCall call{c.lane, &*queue, trial.call()};
        transport.start({&call, 1});
        trial.expect(*queue);
      }
      transport.check();
    }));
  }
}

// Messages in one batch, on a queue for each message, reach their receivers; a rank without others sends to itself.
TEST_F(NcclTransport, MessagesOfABatchMeet) {
  for (const int ranks : sizes()) {
    test::expect_no_errors(test::on_nccl_ranks(plan_of(ranks), [&](int rank, QueuedTransport& transport) {
      std::deque<test::OwnQueue> queues(4);
      const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
      const Floats down = numbers(1, rank, 100), up = numbers(2, rank, 100);
      const auto bytes = static_cast<Bytes>(down.size() * sizeof(float));
      std::vector<cuda::Memory> memory;
      for (int i = 0; i < 4; ++i) memory.emplace_back(cuda::Memory::Place::device, bytes);
      const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
        ORRERY_CHECK_CUDA(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), kind));
      };
      copy(memory[0].data(), down.data(), cudaMemcpyHostToDevice);
      copy(memory[1].data(), up.data(), cudaMemcpyHostToDevice);
      const QueuedCall batch[] = {
          {LaneKind::send_next, &*queues[0], MessageCall{true, next, memory[0].data(), bytes}},
          {LaneKind::send_previous, &*queues[1], MessageCall{true, before, memory[1].data(), bytes}},
          {LaneKind::receive_next, &*queues[2], MessageCall{false, next, memory[2].data(), bytes}},
          {LaneKind::receive_previous, &*queues[3], MessageCall{false, before, memory[3].data(), bytes}}};
      transport.start(batch);
      for (test::OwnQueue& q : queues) ORRERY_CHECK_CUDA(cudaStreamSynchronize((*q).stream()));
      if (!test::computes()) return;
      Floats came(down.size());
      copy(came.data(), memory[2].data(), cudaMemcpyDeviceToHost);
      EXPECT_EQ(came, numbers(2, next, 100));
      copy(came.data(), memory[3].data(), cudaMemcpyDeviceToHost);
      EXPECT_EQ(came, numbers(1, before, 100));
    }));
  }
}

TEST_F(NcclTransport, RefusesWhatThePlanDoesNotMove) {
  const auto errors = test::on_nccl_ranks(plan_of(1), [](int, QueuedTransport& transport) {
    test::OwnQueue queue;
    const QueuedCall call{LaneKind::embedding, &*queue, CollectiveCall{.counts = {0}}};
    transport.start({&call, 1});
  });
  EXPECT_NE(errors[0].find("the plan moves nothing in"), std::string::npos) << errors[0];
}

// A rank that fails between two transfers ends the other ranks, which wait for it, too.
TEST_F(NcclTransport, ARankThatFailsAbortsTheOthers) {
  for (const int ranks : sizes()) {
    const Plan plan = plan_of(ranks);
    const auto errors = test::on_nccl_ranks(plan, [&](int rank, QueuedTransport& transport) {
      test::OwnQueue queue;
      CollectiveCase c;
      c.size = 64;
      DeviceTrial trial(plan, rank, c);
      const QueuedCall call{c.lane, &*queue, trial.call()};
      transport.start({&call, 1});
      ORRERY_CHECK_CUDA(cudaStreamSynchronize((*queue).stream()));
      if (rank == ranks - 1) throw Error("planted");
      transport.start({&call, 1});
    });
    EXPECT_EQ(errors.back(), "planted");
    for (int r = 0; r + 1 < ranks; ++r)
      EXPECT_NE(errors[static_cast<std::size_t>(r)].find("remote process exited"), std::string::npos);
  }
}

}  // namespace
}  // namespace orrery
