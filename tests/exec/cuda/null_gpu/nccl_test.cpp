// Ranks over NCCL on the null GPU: strategies, and faults that are planted for its checks of calls that must match.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/exec/cuda/nccl_ranks.h"
#include "tests/exec/cuda/null_gpu/null_gpu.h"
#include "tests/exec/cuda/strategies.h"

namespace orrery {
namespace {

using testing::HasSubstr;

class OverNccl : public testing::TestWithParam<test::Case> {};

TEST_P(OverNccl, RunsToItsEnd) {
  const Spec spec = spec_of(GetParam());
  cuda::SharedGpu gpu;
  const test::Result all = test::run_on_nccl(spec, gpu);
  EXPECT_EQ(all.losses.size(), static_cast<std::size_t>(test::kSteps));
  EXPECT_FALSE(all.weights.empty());
  EXPECT_EQ(null_gpu::calls()["ncclCommInitRank"] > 0, spec.strategy.gpus() > 1);
}
INSTANTIATE_TEST_SUITE_P(All, OverNccl, testing::ValuesIn(test::kStrategies));

// Two ranks with two communicators each, and a stream and memory of their own.
struct Member {
  explicit Member(int rank, const ncclUniqueId (&ids)[2]) {
    for (int c = 0; c < 2; ++c) ORRERY_CHECK_NCCL(ncclCommInitRank(&comms[c], 2, ids[c], rank));
  }
  ~Member() {
    cudaStreamSynchronize(stream.get());
    for (ncclComm_t c : comms) ncclCommAbort(c);
  }
  ncclResult_t sum(int comm, std::size_t count = 64, std::ptrdiff_t at = 0) const {
    return ncclAllReduce(memory.data() + at, memory.data() + at, count, ncclFloat32, ncclSum, comms[comm],
                         stream.get());
  }

  ncclComm_t comms[2] = {};
  cuda::Stream stream;
  cuda::Memory memory{cuda::Memory::Place::device, 256};
};

struct PlantedNccl : testing::Test {
  // Runs f(rank, member) of both.
  template <class F>
  static void both(const F& f) {
    ncclUniqueId ids[2];
    for (ncclUniqueId& id : ids) ORRERY_CHECK_NCCL(ncclGetUniqueId(&id));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        const Member member(rank, ids);
        f(rank, member);
      });
    }
    for (std::thread& t : threads) t.join();
  }
  void SetUp() override { null_gpu::set_patience(0.2); }
  void TearDown() override { null_gpu::set_patience(20); }
};

TEST_F(PlantedNccl, CallsThatMatchAreRight) {
  both([](int, const Member& m) {
    for (int comm : {0, 1, 0}) EXPECT_EQ(m.sum(comm), ncclSuccess);
  });
  EXPECT_THAT(null_gpu::complaints(), testing::IsEmpty());
}

TEST_F(PlantedNccl, CallsThatDoNotMatch) {
  both([](int rank, const Member& m) { EXPECT_EQ(m.sum(0, rank == 0 ? 64 : 32), ncclRemoteError); });
  EXPECT_THAT(null_gpu::complaints(), testing::ElementsAre(HasSubstr("all-reduce of 64, type 7, op 0 meets")));
}

TEST_F(PlantedNccl, OrdersOverCommunicatorsThatDiffer) {
  both([](int rank, const Member& m) {
    const ncclResult_t first = m.sum(rank), second = m.sum(1 - rank);
    EXPECT_TRUE(first != ncclSuccess || second != ncclSuccess);
  });
  EXPECT_THAT(null_gpu::complaints(),
              testing::Contains(testing::AllOf(HasSubstr("NCCL stands still"), HasSubstr("rank 0 of 2 waits in"),
                                               HasSubstr("rank 1 of 2 waits in"))));
}

// Ranks may make the calls of one NCCL group in different orders.
TEST_F(PlantedNccl, OrdersInAGroupMayDiffer) {
  both([](int rank, const Member& m) {
    const cuda::Memory other(cuda::Memory::Place::device, 256);
    ORRERY_CHECK_NCCL(ncclGroupStart());
    m.sum(rank);
    ORRERY_CHECK_NCCL(
        ncclAllReduce(other.data(), other.data(), 64, ncclFloat32, ncclSum, m.comms[1 - rank], m.stream.get()));
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  });
  EXPECT_THAT(null_gpu::complaints(), testing::IsEmpty());
}

TEST_F(PlantedNccl, AMemberThatDoesNotCome) {
  both([](int rank, const Member& m) {
    if (rank == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(400));
    EXPECT_EQ(m.sum(0), ncclRemoteError);
  });
  EXPECT_THAT(null_gpu::complaints(),
              testing::ElementsAre(HasSubstr("NCCL stands still: rank 0 of 2 waits in ncclAllReduce")));
}

TEST_F(PlantedNccl, BuffersBeyondAllocationsAndUnaligned) {
  both([](int, const Member& m) { EXPECT_EQ(m.sum(0, 65), ncclSuccess); });
  EXPECT_THAT(null_gpu::complaints(),
              testing::ElementsAre(HasSubstr("ncclAllReduce: a buffer goes beyond an allocation of the device")));
  both([](int, const Member& m) { EXPECT_EQ(m.sum(0, 32, 2), ncclSuccess); });
  EXPECT_THAT(null_gpu::complaints(),
              testing::ElementsAre(HasSubstr("ncclAllReduce: a buffer is not aligned to its elements")));
}

TEST_F(PlantedNccl, ReadingAResultWithoutAnOrder) {
  both([](int rank, const Member& m) {
    EXPECT_EQ(m.sum(0), ncclSuccess);
    if (rank == 0) return;
    const cuda::Stream other;
    ORRERY_CHECK_CUDA(cudaMemsetAsync(m.memory.data(), 0, 256, other.get()));
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(other.get()));
  });
  EXPECT_THAT(null_gpu::complaints(),
              testing::ElementsAre(HasSubstr("a clearing writes what ncclAllReduce writes, and no event orders")));
}

}  // namespace
}  // namespace orrery
