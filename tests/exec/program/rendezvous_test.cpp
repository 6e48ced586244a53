#include "exec/program/rendezvous.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "exec/host/lanes.h"
#include "models/base/error.h"

namespace orrery {
namespace {

template <class F>
void on_ranks(std::int64_t ranks, std::uint16_t port, const F& f) {
  std::vector<std::thread> threads;
  for (std::int64_t r = ranks - 1; r >= 0; --r)  // rank 0 comes last
    threads.emplace_back([=] { f(RankPlacement{.rank = r, .ranks = ranks, .port = port}); });
  for (std::thread& t : threads) t.join();
}

TEST(Rendezvous, EverybodyReadsWhatOneHasSet) {
  const std::string id("a\0b", 3);  // an id may hold any bytes
  on_ranks(5, free_port(), [&](const RankPlacement& p) {
    Rendezvous rendezvous(p, 20);
    if (p.rank == 3) rendezvous.set("id", id);
    EXPECT_EQ(rendezvous.get("id"), id);
    rendezvous.set(std::to_string(p.rank), std::string(static_cast<std::size_t>(p.rank), 'x'));
    for (int r = 0; r < 5; ++r)
      EXPECT_EQ(rendezvous.get(std::to_string(r)), std::string(static_cast<std::size_t>(r), 'x'));
    rendezvous.barrier("end");
  });
}

TEST(Rendezvous, ABarrierHoldsAllUntilTheLastHasCome) {
  std::atomic<int> come = 0;
  on_ranks(4, free_port(), [&](const RankPlacement& p) {
    Rendezvous rendezvous(p, 20);
    if (p.rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++come;
    rendezvous.barrier("all");
    EXPECT_EQ(come, 4);
    rendezvous.barrier("end");
  });
}

// Whether a server accepts a connection at the address, and keeps it for a moment.
bool answers(const char* address, std::uint16_t port, std::vector<int>* keep = nullptr) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &at.sin_addr);
  bool taken = ::connect(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  pollfd closed{socket, POLLIN, 0};
  if (taken && keep != nullptr) taken = ::poll(&closed, 1, 200) == 0;  // a refused connection is closed
  if (keep != nullptr)
    keep->push_back(socket);
  else
    ::close(socket);
  return taken;
}

TEST(Rendezvous, ListensAtItsAddressAlone) {
  const std::uint16_t port = free_port();
  Rendezvous rendezvous({.rank = 0, .ranks = 1, .port = port}, 20);
  EXPECT_TRUE(answers("127.0.0.1", port));
  EXPECT_FALSE(answers("127.0.0.2", port));  // another address of this machine
}

TEST(Rendezvous, TakesNoMoreThanAJobNeeds) {
  const std::uint16_t port = free_port();
  Rendezvous rendezvous({.rank = 0, .ranks = 2, .port = port}, 20);
  std::vector<int> sockets;
  int taken = 0;
  for (int i = 0; i < 24; ++i) taken += answers("127.0.0.1", port, &sockets) ? 1 : 0;
  EXPECT_EQ(taken, 17);  // beside the socket that listens: one for the other rank, and 16 to spare
  for (const int socket : sockets) ::close(socket);
  const std::string much(std::size_t{1} << 20, 'x');
  EXPECT_THROW(
      {
        for (int i = 0; i < 20; ++i) rendezvous.set(std::to_string(i), much);
      },
      Error);
}

// On one machine there is one clock, so the measured offset must be within the stated uncertainty.
TEST(Rendezvous, ClocksAgreeWithinTheirUncertainty) {
  on_ranks(2, free_port(), [&](const RankPlacement& p) {
    Rendezvous rendezvous(p, 20);
    const ClockOffset clock = clock_of(rendezvous);
    EXPECT_GE(clock.uncertainty, 0);
    EXPECT_LE(std::abs(clock.offset), clock.uncertainty);
    rendezvous.barrier("end");
  });
}

TEST(Rendezvous, TellsWhoDidNotCome) {
  const std::uint16_t port = free_port();
  try {
    Rendezvous rendezvous({.rank = 1, .ranks = 2, .port = port}, 0.2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0 does not answer"), std::string::npos);
  }
  Rendezvous rendezvous({.rank = 0, .ranks = 2, .port = port}, 0.2);
  try {
    rendezvous.get("never");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the other ranks did not come while waiting for 'never'"),
              std::string::npos);
  }
}

// A rank that waits at a barrier gets an error when rank 0 ends, and is not let through.
TEST(Rendezvous, TellsThatRank0IsGone) {
  on_ranks(2, free_port(), [](const RankPlacement& p) {
    Rendezvous rendezvous(p, 20);
    rendezvous.set(std::to_string(p.rank), "come");
    if (p.rank == 0) rendezvous.get("1");
    if (p.rank == 0) return;
    try {
      rendezvous.barrier("end");
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("rank 0 is gone while waiting for 'end'"), std::string::npos);
    }
  });
}

TEST(Rendezvous, TheEnvironmentSaysWhoTheRankIs) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
  EXPECT_FALSE(placement_of_environment().launched);
  ::setenv("RANK", "9", 1);
  ::setenv("WORLD_SIZE", "16", 1);
  ::setenv("LOCAL_RANK", "1", 1);
  ::setenv("MASTER_ADDR", "node0", 1);
  ::setenv("MASTER_PORT", "1234", 1);
  const RankPlacement p = placement_of_environment();
  EXPECT_TRUE(p.launched);
  EXPECT_EQ(p.rank, 9);
  EXPECT_EQ(p.ranks, 16);
  EXPECT_EQ(p.local_rank, 1);
  EXPECT_EQ(p.address, "node0");
  EXPECT_EQ(p.port, 1234);
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
}

}  // namespace
}  // namespace orrery
