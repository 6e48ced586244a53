#include "exec/mpi/transport.h"

#include <mpi.h>

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "exec/mpi/check.h"
#include "models/base/error.h"
#include "tests/exec/collective_trial.h"
#include "tests/exec/mpi/world.h"

// Bytes that this rank has sent to other nodes, of two ranks each. (MPI's profiling interface: a program may stand in
// for any of its calls, MPI 3.1, section 14.2.)
static std::int64_t bytes_to_other_nodes = 0;

extern "C" int MPI_Issend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                          MPI_Request* request) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (rank / 2 != to / 2) bytes_to_other_nodes += count;
  return PMPI_Issend(data, count, type, to, tag, comm, request);
}

// Run by mpirun on any number of ranks.
namespace orrery {
namespace {

inline int size_of_world() {
  int size = 0;
  ORRERY_CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  return size;
}

void wait(Trial& trial) {
  while (!trial.done()) {
  }
}

// Polls each transfer, also those that are done: a lane progresses only while it is polled.
template <class All>
void wait_all(const All& all) {
  while (std::count_if(all.rbegin(), all.rend(), [](const auto& p) { return !p->done(); }) > 0) {
  }
}

TEST(MpiTransport, EveryCollectiveEndsWithWhatItPromises) {
  const Plan plan = plan_of(size_of_world());
  const auto transport = mpi_transport(MPI_COMM_WORLD, plan);
  for (const CollectiveCase& c : all_cases()) {
    Trial trial(plan, world_rank(), c);
    trial.start(*transport);
    wait(trial);
    EXPECT_TRUE(trial.done());
    trial.expect();
  }
}

TEST(MpiTransport, EverySizeIsCutRight) {
  const Plan plan = plan_of(size_of_world());
  const auto transport = mpi_transport(MPI_COMM_WORLD, plan);
  for (int k = 0; k < kCollectiveKinds; ++k) {
    for (const std::string& algorithm : algorithms_of(static_cast<CollectiveKind>(k))) {
      for (std::int64_t size = 0; size < 12; ++size) {
        CollectiveCase c{static_cast<CollectiveKind>(k), algorithm};
        c.size = size;
        c.seed = static_cast<std::uint64_t>(size);
        Trial trial(plan, world_rank(), c);
        trial.start(*transport);
        wait(trial);
        trial.expect();
      }
    }
  }
}

// Lanes of all groups run transfers at once; each rank starts them in another order, and polls them in reverse order.
TEST(MpiTransport, LanesAndGroupsProgressIndependently) {
  const Plan plan = plan_of(size_of_world());
  const auto transport = mpi_transport(MPI_COMM_WORLD, plan);
  const int rank = world_rank();
  std::uint64_t seed = 0;
  for (int k = 0; k < kCollectiveKinds; ++k) {
    for (const std::string& algorithm : algorithms_of(static_cast<CollectiveKind>(k))) {
      std::vector<std::unique_ptr<Trial>> trials;
      for (const LaneKind lane : kLanesUsed) {
        for (const Dimension group : kGroupsUsed) {
          CollectiveCase c{static_cast<CollectiveKind>(k), algorithm};
          c.lane = lane;
          c.group = group;
          c.size = lane == LaneKind::tensor ? 3000 : 10;
          c.seed = ++seed;
          trials.push_back(std::make_unique<Trial>(plan, rank, c));
        }
      }
      std::rotate(trials.begin(), trials.begin() + rank % static_cast<int>(trials.size()), trials.end());
      for (const auto& t : trials) t->start(*transport);
      wait_all(trials);
      for (const auto& t : trials) t->expect();
    }
  }
}

// Two calls on one lane do not mix, even if the second ends first.
TEST(MpiTransport, CallsOnOneLaneDoNotMix) {
  const Plan plan = plan_of(size_of_world());
  const auto transport = mpi_transport(MPI_COMM_WORLD, plan);
  for (const char* algorithm : {"library", "ring_all_reduce", "recursive_doubling_all_reduce"}) {
    CollectiveCase c{CollectiveKind::all_reduce, algorithm};
    c.size = 10000;
    std::vector<std::unique_ptr<Trial>> trials;
    trials.push_back(std::make_unique<Trial>(plan, world_rank(), c));
    c.size = 5;
    c.seed = 1;
    trials.push_back(std::make_unique<Trial>(plan, world_rank(), c));
    for (const auto& t : trials) t->start(*transport);
    if (world_rank() % 2 == 1) std::swap(trials[0], trials[1]);
    wait_all(trials);
    for (const auto& t : trials) t->expect();
  }
}

// A group may list its ranks in any order; the first is the root.
TEST(MpiTransport, PlacesInAGroupAreThoseOfItsList) {
  const Plan plan = plan_of(size_of_world());
  const auto transport = mpi_transport(MPI_COMM_WORLD, plan);
  for (int k = 0; k < kCollectiveKinds; ++k) {
    for (const std::string& algorithm : algorithms_of(static_cast<CollectiveKind>(k))) {
      CollectiveCase c{static_cast<CollectiveKind>(k), algorithm};
      c.group = Dimension::pipeline;
      c.lane = LaneKind::embedding;
      c.size = 7;
      Trial trial(plan, world_rank(), c);
      trial.start(*transport);
      wait(trial);
      trial.expect();
    }
  }
}

MessageCall message(bool send, int peer, std::vector<float>& data) {
  return {send, peer, data.data(), static_cast<Bytes>(data.size() * sizeof(float))};
}

// Messages go around a ring in both directions, three each way and in order; lanes of one direction are used in any
// order.
TEST(MpiTransport, MessagesMeetByDirectionAndOrder) {
  const Plan plan = plan_of(size_of_world());
  const auto transport = mpi_transport(MPI_COMM_WORLD, plan);
  const int rank = world_rank(), n = size_of_world();
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  for (const std::int64_t size : {0, 1, 100, 100000}) {
    std::vector<Floats> down, up, from_previous, from_next;
    for (std::uint64_t i = 0; i < 3; ++i) {
      down.push_back(numbers(i, rank, size));
      up.push_back(numbers(i + 10, rank, size));
      from_previous.emplace_back(static_cast<std::size_t>(size));
      from_next.emplace_back(static_cast<std::size_t>(size));
    }
    std::vector<std::unique_ptr<Pending>> all;
    for (std::size_t i = 0; i < 3; ++i) {
      all.push_back(transport->start(LaneKind::receive_next, message(false, next, from_next[i])));
      all.push_back(transport->start(LaneKind::send_next, message(true, next, down[i])));
      all.push_back(transport->start(LaneKind::send_previous, message(true, previous, up[i])));
      all.push_back(transport->start(LaneKind::receive_previous, message(false, previous, from_previous[i])));
    }
    wait_all(all);
    for (std::uint64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(from_previous[i], numbers(i, previous, size));
      EXPECT_EQ(from_next[i], numbers(i + 10, next, size));
    }
  }
}

TEST(MpiTransport, ASendEndsOnlyWhenTheReceiverHasCome) {
  if (size_of_world() < 2) return;
  const Plan plan = plan_of(size_of_world());
  const auto transport = mpi_transport(MPI_COMM_WORLD, plan);
  Floats data = {1};
  std::vector<std::unique_ptr<Pending>> all;
  if (world_rank() == 0) {
    all.push_back(transport->start(LaneKind::send_next, message(true, 1, data)));
    for (int i = 0; i < 1000; ++i) EXPECT_FALSE(all[0]->done());
  }
  ORRERY_CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
  if (world_rank() == 1) all.push_back(transport->start(LaneKind::receive_previous, message(false, 0, data)));
  wait_all(all);
}

std::string fault(Transport& transport, LaneKind lane, const CollectiveCall& call) {
  try {
    transport.start(lane, call);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Tokens that go to experts, each to three of them, by nodes of two ranks.
struct SentTokens {
  static constexpr int kTokens = 7, kCopies = 3;
  static constexpr std::int64_t kRow = 64;
  int ranks;

  // Number of rows of a source's token for a rank.
  std::int64_t copies(int source, int token, int to) const {
    std::int64_t n = 0;
    for (int j = 0; j < kCopies; ++j) n += (source + 3 * token + j * j) % ranks == to ? 1 : 0;
    return n;
  }
  static float value(int source, int token) { return static_cast<float>(1 + 100 * source + token); }
  // Elements for a rank, whose rows follow each other by token.
  std::int64_t elements(int source, int to) const {
    std::int64_t n = 0;
    for (int token = 0; token < kTokens; ++token) n += kRow * copies(source, token, to);
    return n;
  }
  // Bytes that cross between nodes, over all ranks: each token's row once for every node that it goes to, four bytes
  // for each row, and the counts.
  std::int64_t crossing() const {
    std::int64_t sum = 0;
    for (int source = 0; source < ranks; ++source) {
      for (int node = 0; node < (ranks + 1) / 2; ++node) {
        if (node == source / 2) continue;
        const int last = std::min(2 * node + 1, ranks - 1);
        for (int token = 0; token < kTokens; ++token) {
          std::int64_t n = 0;
          for (int to = 2 * node; to <= last; ++to) n += copies(source, token, to);
          sum += 4 * (n > 0 ? kRow : 0) + 4 * n;
        }
        sum += 8 * (last - 2 * node + 2);
      }
    }
    return sum;
  }
};

// Runs a call, and returns the bytes sent between nodes on all ranks.
std::int64_t crossed_by(Transport& transport, const CollectiveCall& call) {
  bytes_to_other_nodes = 0;
  const auto pending = transport.start(LaneKind::tensor, call);
  while (!pending->done()) {
  }
  std::int64_t sum = 0;
  ORRERY_CHECK_MPI(MPI_Allreduce(&bytes_to_other_nodes, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
  return sum;
}

// A token's row is sent once to each node that needs it, whichever experts there get it, and one sum comes back.
TEST(MpiTransport, TokensCrossOnceForEachNode) {
  const int ranks = size_of_world(), me = world_rank();
  if (ranks == 1) GTEST_SKIP() << "one rank sends nothing";
  const SentTokens sent{ranks};
  const Plan plan = plan_of(ranks);
  const auto transport = mpi_transport(MPI_COMM_WORLD, plan);
  CollectiveCall call{.kind = CollectiveKind::all_to_all, .group = Dimension::world, .algorithm = "hierarchical"};
  call.row = SentTokens::kRow;
  std::vector<float> rows, expected;
  for (int other = 0; other < ranks; ++other) {
    call.nodes.push_back(other / 2);
    call.counts.push_back(sent.elements(me, other));
    call.received.push_back(sent.elements(other, me));
    for (int token = 0; token < SentTokens::kTokens; ++token) {
      for (std::int64_t i = 0; i < sent.copies(me, token, other); ++i) call.tokens.push_back(token);
      rows.insert(rows.end(), SentTokens::kRow * sent.copies(me, token, other), SentTokens::value(me, token));
      expected.insert(expected.end(), SentTokens::kRow * sent.copies(other, token, me),
                      SentTokens::value(other, token));
    }
  }
  std::vector<float> arrived(expected.size(), -1), back(rows.size(), -1);
  call.in = rows.data();
  call.out = arrived.data();
  EXPECT_EQ(crossed_by(*transport, call), sent.crossing());
  EXPECT_EQ(arrived, expected);
  for (float& x : arrived) x *= static_cast<float>(1 + me);  // stands in for an expert's computation
  std::swap(call.counts, call.received);
  call.algorithm = "hierarchical sum";
  call.sums = true;
  call.in = arrived.data();
  call.out = back.data();
  EXPECT_EQ(crossed_by(*transport, call), sent.crossing());
  std::vector<float> sums(SentTokens::kTokens, 0), whole(SentTokens::kTokens, 0);
  for (std::size_t r = 0; r < call.tokens.size(); ++r) sums[call.tokens[r]] += back[r * SentTokens::kRow + r % 64];
  for (int token = 0; token < SentTokens::kTokens; ++token) {
    for (int to = 0; to < ranks; ++to)
      whole[token] += static_cast<float>(sent.copies(me, token, to) * (1 + to)) * SentTokens::value(me, token);
  }
  EXPECT_EQ(sums, whole);
}

TEST(MpiTransport, WhatDoesNotFitIsRefused) {
  const int n = size_of_world();
  const auto transport = mpi_transport(MPI_COMM_WORLD, plan_of(n));
  float x = 0;
  CollectiveCall good{.group = Dimension::world, .in = &x, .out = &x, .counts = {1}};
  const auto wrong = [&](const char* text, const auto& change, LaneKind lane = LaneKind::tensor) {
    CollectiveCall call = good;
    change(call);
    EXPECT_NE(fault(*transport, lane, call).find(text), std::string::npos) << text;
  };
  wrong("ring_all_reduce", [](CollectiveCall& c) { c.algorithm = "star"; });
  wrong("it carries out broadcast", [](CollectiveCall& c) { c.algorithm = "tree_broadcast"; });
  wrong("counts", [](CollectiveCall& c) { c.counts.clear(); });
  wrong("no sum", [](CollectiveCall& c) { c.element = Element::bytes; });
  wrong("to add to", [](CollectiveCall& c) { c.add = true; });
  wrong(
      "moves nothing in world groups on lane model", [](CollectiveCall&) {}, LaneKind::model);
  if (n > 1) wrong("MPI count", [](CollectiveCall& c) { c.counts = {std::int64_t{1} << 31}; });
  EXPECT_THROW(transport->start(LaneKind::send_next, MessageCall{.peer = n}), Error);
  EXPECT_THROW(mpi_transport(MPI_COMM_WORLD, plan_of(n + 1)), Error);
}

TEST(MpiTransport, AFailingCallIsQuoted) {
  int size = 0;
  try {
    ORRERY_CHECK_MPI(MPI_Comm_size(MPI_COMM_NULL, &size));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).rfind("MPI_Comm_size(MPI_COMM_NULL, &size): MPI_ERR_COMM", 0), 0U) << e.what();
  }
}

}  // namespace
}  // namespace orrery
