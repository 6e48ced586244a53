// Chains of servers that lose servers at every moment of a push and a pull: pushed gradients are summed once, pulls
// return the sums, and no rank waits for ever. A lost rank here is one that makes no more calls.
#include "exec/mpi/chains.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exec/mpi/transport.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "models/spec/spec.h"
#include "tests/exec/mpi/world.h"

namespace orrery {
namespace {

constexpr int kWorkers = 2, kPieces = 2, kCopies = 2, kRanks = kWorkers + kPieces * kCopies;
constexpr std::int64_t kElements = 20000;  // elements of a piece: more than MPI sends before the receiver has asked
constexpr int kCalls = 4;

const Plan& chain_plan() {
  static const Plan plan = make_plan(parse_spec(
      fmt::format("model: {{layers: 1, hidden: 64, heads: 4, feed_forward: 64, vocab: 64}}\nsequence: 8\n"
                  "cluster: {{node: localhost}}\nsoftware: orrery\ngpus: {}\nstrategy: {{data: {}, clip: 0, "
                  "global_batch: {}, sharding: parameter-server, parameter_server: {{servers: {}, replicas: {}}}}}\n",
                  kWorkers, kWorkers, kWorkers, kPieces, kCopies),
      "case"));
  return plan;
}

// The rank that is lost, the call in which this happens (push 1, pull 1, push 2, ...), and the number of polls before
// it.
struct Loss {
  int rank = -1, call = 0, looks = 0;
};

class Member {
 public:
  Member(int rank, const std::string& lost, std::vector<Loss> losses)
      : rank_(rank),
        lost_(lost),
        seen_lost_(lost),
        losses_(std::move(losses)),
        transport_(mpi_transport(MPI_COMM_WORLD, chain_plan(), &seen_lost_)) {}

  // Every worker pushes worker + element + the value it pulled last; every server keeps the sum. Returns false when
  // this rank is lost.
  bool run() {
    for (int call = 0; call < 2 * kCalls; ++call) {
      const bool pushes = call % 2 == 0, serves = rank_ >= kWorkers;
      for (std::size_t i = 0; pushes && i < whole_.size(); ++i)
        whole_[i] = pulled_at(call / 2, i) / kWorkers + static_cast<float>(rank_ + static_cast<int>(i % 7));
      CollectiveCall c = {.kind = pushes ? CollectiveKind::push : CollectiveKind::pull, .group = Dimension::world};
      c.counts.assign(kPieces, kElements);
      c.copies = kCopies;
      (pushes == serves ? c.out : const_cast<void*&>(c.in)) = serves ? piece_.data() : whole_.data();
      if (!carry_out(pushes ? LaneKind::data_reduce : LaneKind::data_gather, c, call)) return false;
      expect(call, serves ? piece_ : whole_, serves ? (rank_ - kWorkers) % kPieces * kElements : 0);
    }
    transport_->finish();
    return true;
  }

 private:
  // The value of element i that all ranks have after `pushes` pushes.
  static float pulled_at(int pushes, std::size_t i) {
    float value = 0;
    for (int k = 0; k < pushes; ++k)
      value += static_cast<float>(kWorkers * static_cast<int>(i % 7) + 1);  // 0 + 1: sum of the workers' numbers
    return value;
  }

  bool carry_out(LaneKind lane, const CollectiveCall& c, int call) {
    const auto loss =
        std::find_if(losses_.begin(), losses_.end(), [&](const Loss& l) { return l.rank == rank_ && l.call == call; });
    const auto pending = transport_->start(lane, c);
    for (int looks = 0;; ++looks) {
      if (loss != losses_.end() && looks >= loss->looks) {
        note_lost(lost_, rank_);
        return false;
      }
      if (pending->done()) break;
      std::this_thread::yield();
    }
    if (loss == losses_.end()) return true;
    note_lost(lost_, rank_);
    return false;
  }

  void expect(int call, const std::vector<float>& values, std::int64_t first) const {
    const bool pushed = call % 2 == 0, serves = rank_ >= kWorkers;
    if (pushed != serves) return;
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], pulled_at(call / 2 + 1, i + static_cast<std::size_t>(first)))
          << "rank " << rank_ << " call " << call;
  }

  int rank_;
  std::string lost_;
  LostRanks seen_lost_;
  std::vector<Loss> losses_;
  std::vector<float> whole_ = std::vector<float>(kElements * kPieces), piece_ = std::vector<float>(kElements);
  std::unique_ptr<Transport> transport_;
};

// All ranks come here at once.
void run_with(const std::vector<Loss>& losses, int number) {
  int job = static_cast<int>(::getpid());
  MPI_Bcast(&job, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const std::string lost = fmt::format("/tmp/orrery-chains-{}-{}", job, number);
  const int rank = world_rank();
  // The member is never destroyed: transfers with a lost rank are still under way, in the member's memory.
  Member& member = *std::make_unique<Member>(rank, lost, losses).release();
  const bool was_lost = std::any_of(losses.begin(), losses.end(), [&](const Loss& l) { return l.rank == rank; });
  EXPECT_EQ(member.run(), !was_lost);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) std::filesystem::remove(lost);
}

TEST(Chains, AreWhatNobodyLostLeaves) { run_with({}, 0); }

TEST(Chains, GoOnWithoutAnyServerAtAnyMoment) {
  int number = 1;
  for (int rank = kWorkers; rank < kRanks; ++rank) {
    for (const int call : {0, 1, 2, 5, 2 * kCalls - 1}) {
      for (const int looks : {0, 1, 20, 1000}) run_with({{rank, call, looks}}, number++);
    }
  }
}

TEST(Chains, GoOnWithoutOneOfEach) {
  int number = 1000;
  for (const int first : {kWorkers, kWorkers + kPieces}) {
    for (const int second : {kWorkers + 1, kWorkers + kPieces + 1}) {
      for (const int call : {0, 3}) run_with({{first, 2, 5}, {second, call, 2}}, number++);
    }
  }
}

}  // namespace
}  // namespace orrery
