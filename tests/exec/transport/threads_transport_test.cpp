#include "exec/transport/threads_transport.h"

#include <atomic>
#include <deque>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/exec/collective_trial.h"
#include "tests/exec/host_queue.h"

namespace orrery {
namespace {

using test::HostQueue;

// Runs f(rank, transport) of every rank on a separate thread; a rank that throws fails the other ranks. Returns the
// error of each.
std::vector<std::string> on_all_ranks(int ranks, const std::function<void(int, QueuedTransport&)>& f) {
  Meetings meetings(plan_of(ranks));
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        const auto transport = meetings.transport(r);
        f(r, *transport);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(r)] = error.what();
        meetings.fail();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return errors;
}

void expect_none(const std::vector<std::string>& errors) {
  for (const std::string& e : errors) EXPECT_EQ(e, "");
}

// The transport between threads passes the tests of the transport between processes
// (tests/exec/mpi/transport_test.cpp).
TEST(ThreadsTransport, EveryCollectiveEndsWithWhatItPromises) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    const Plan plan = plan_of(ranks);
    const std::vector<CollectiveCase> cases = all_cases();
    expect_none(on_all_ranks(ranks, [&](int rank, QueuedTransport& transport) {
      HostQueue queue;
      for (const CollectiveCase& c : cases) {
        Trial trial(plan, rank, c);
        const QueuedCall call{c.lane, &queue, trial.call()};
        transport.start({&call, 1});
        trial.expect();
      }
    }));
  }
}

// A batch may hold several calls on separate queues, which every rank lists in another order.
TEST(ThreadsTransport, BatchesMayBeMutual) {
  constexpr int kRanks = 4;
  const Plan plan = plan_of(kRanks);
  expect_none(on_all_ranks(kRanks, [&](int rank, QueuedTransport& transport) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      std::deque<HostQueue> queues(kLanesUsed.size() * kGroupsUsed.size());
      std::vector<std::unique_ptr<Trial>> trials;
      std::vector<QueuedCall> batch;
      for (const LaneKind lane : kLanesUsed) {
        for (const Dimension group : kGroupsUsed) {
          CollectiveCase c{CollectiveKind::all_reduce};
          c.lane = lane;
          c.group = group;
          c.size = 40;
          c.seed = seed * 100 + static_cast<std::uint64_t>(group) * 10 + static_cast<std::uint64_t>(lane);
          trials.push_back(std::make_unique<Trial>(plan, rank, c));
          batch.push_back({lane, &queues[batch.size()], trials.back()->call()});
        }
      }
      std::rotate(batch.begin(), batch.begin() + rank, batch.end());
      transport.start(batch);
      for (const auto& t : trials) t->expect();
    }
  }));
}

QueuedCall message(LaneKind lane, HostQueue& queue, bool send, int peer, Floats& data) {
  return {lane, &queue, MessageCall{send, peer, data.data(), static_cast<Bytes>(data.size() * sizeof(float))}};
}

// Messages go around a ring in both directions, several each way and in order.
TEST(ThreadsTransport, MessagesMeetByDirectionAndOrder) {
  constexpr int kRanks = 3;
  expect_none(on_all_ranks(kRanks, [&](int rank, QueuedTransport& transport) {
    const int next = (rank + 1) % kRanks, previous = (rank + kRanks - 1) % kRanks;
    HostQueue queues[4];
    for (std::uint64_t i = 0; i < 5; ++i) {
      Floats down = numbers(i, rank, 100), up = numbers(i + 10, rank, 100);
      Floats from_previous(100), from_next(100);
      const QueuedCall batch[] = {message(LaneKind::send_next, queues[0], true, next, down),
                                  message(LaneKind::send_previous, queues[1], true, previous, up),
                                  message(LaneKind::receive_next, queues[2], false, next, from_next),
                                  message(LaneKind::receive_previous, queues[3], false, previous, from_previous)};
      transport.start(batch);
      EXPECT_EQ(from_previous, numbers(i, previous, 100));
      EXPECT_EQ(from_next, numbers(i + 10, next, 100));
    }
  }));
}

// Every participating queue waits for the queue that carries out the transfer, which has waited for all of them before.
TEST(ThreadsTransport, QueuesWaitForEachOther) {
  constexpr int kRanks = 4;
  std::vector<HostQueue> queues(kRanks);
  const Plan plan = plan_of(kRanks);
  expect_none(on_all_ranks(kRanks, [&](int rank, QueuedTransport& transport) {
    Trial trial(plan, rank, {});
    const QueuedCall call{LaneKind::tensor, &queues[static_cast<std::size_t>(rank)], trial.call()};
    transport.start({&call, 1});
  }));
  std::size_t carriers = 0;
  for (const HostQueue& q : queues) {
    EXPECT_EQ(q.waited_for.size(), q.waited_for.size() == 1 ? 1U : kRanks - 1U);
    carriers += q.waited_for.size() == kRanks - 1U ? 1 : 0;
  }
  EXPECT_EQ(carriers, 1U);
}

TEST(ThreadsTransport, ARankThatFailsFreesTheOthers) {
  const Plan plan = plan_of(3);
  const std::vector<std::string> errors = on_all_ranks(3, [&](int rank, QueuedTransport& transport) {
    if (rank == 1) throw Error("kernel 7 is broken");
    HostQueue queue;
    Trial trial(plan, rank, {});
    const QueuedCall call{LaneKind::tensor, &queue, trial.call()};
    transport.start({&call, 1});
  });
  EXPECT_EQ(errors[0], "transport: another rank has failed");
  EXPECT_EQ(errors[1], "kernel 7 is broken");
  EXPECT_EQ(errors[2], "transport: another rank has failed");
}

TEST(ThreadsTransport, CallsThatDoNotFitAreRefused) {
  const Plan plan = plan_of(2);
  std::atomic<int> refused = 0;
  on_all_ranks(2, [&](int rank, QueuedTransport& transport) {
    HostQueue queue;
    CollectiveCase c;
    c.size = 4 + rank;  // members disagree
    Trial trial(plan, rank, c);
    const QueuedCall call{LaneKind::tensor, &queue, trial.call()};
    try {
      transport.start({&call, 1});
    } catch (const Error&) {
      ++refused;
    }
  });
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace orrery
