#include "sim/parallel/peers.h"

#include <array>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/parallel/workers.h"
#include "tests/sim/thread_peers.h"

namespace orrery {
namespace {

using test::with_peers;

TEST(Peers, AreNoneWithoutALauncher) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) ::unsetenv(name);
  EXPECT_EQ(peers_of_environment(), nullptr);
  ::setenv("PMI_SIZE", "1", 1);
  EXPECT_EQ(peers_of_environment(), nullptr);
  ::unsetenv("PMI_SIZE");
}

// The plugin is beside orrery, not beside the tests.
TEST(Peers, NeedThePluginBesideTheProgram) {
  ::setenv("PMI_SIZE", "3", 1);
  try {
    peers_of_environment();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("3 processes were started together"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("orrery-peers.so"), std::string::npos) << error.what();
  }
  ::unsetenv("PMI_SIZE");
}

TEST(Peers, FailTogetherWithTheFirstReason) {
  std::vector<std::string> said(3);
  with_peers(3, [&](Peers& peers) {
    try {
      together(&peers, [&] {
        if (peers.rank() > 0) throw Error(peers.rank() == 1 ? "one" : "two", 2);
      });
    } catch (const Error& error) {
      said[static_cast<std::size_t>(peers.rank())] = error.what();
    }
  });
  EXPECT_EQ(said, (std::vector<std::string>{"one", "one", "one"}));
}

struct Left {};

// One of three processes leaves before its n-th message, as a killed process does: the others receive nothing from it.
class LeavingPeers : public Peers {
 public:
  LeavingPeers(test::ThreadPeersRoom& room, int rank, int words) : room_(room), rank_(rank), words_(words) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(room_.said.size()); }
  int first() const override {
    int r = 0;
    while (r < rank_ && lost_[static_cast<std::size_t>(r)]) ++r;
    return r;
  }
  std::vector<std::string> gather(const std::string& mine) override {
    std::string& said = room_.said[static_cast<std::size_t>(rank_)];
    said = words_-- > 0 ? mine : "";
    if (said.empty()) {
      room_.meet.arrive_and_drop();
      throw Left{};
    }
    room_.meet.arrive_and_wait();
    std::vector<std::string> all = room_.said;
    for (std::size_t r = 0; r < all.size(); ++r) lost_[r] = all[r].empty();
    room_.meet.arrive_and_wait();
    return all;
  }
  void abort(int status) override { std::exit(status); }

 private:
  test::ThreadPeersRoom& room_;
  int rank_, words_;
  std::array<bool, 3> lost_{};
};

// Runs f in three processes, of which `leaver` leaves before its message number `words`.
template <class F>
void with_a_leaver(int leaver, int words, const F& f) {
  test::ThreadPeersRoom room(3);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      LeavingPeers peers(room, rank, rank == leaver ? words : 1000);
      try {
        f(peers);
      } catch (const Left&) {
      }
    });
  }
}

// Whichever process leaves at whatever time: the other processes have all results of every round, and share its work
// from then on.
TEST(SearchWorkers, DoesTheShareOfWhoIsLost) {
  constexpr std::size_t kItems = 20, kRounds = 4;
  for (int leaver = 0; leaver < 3; ++leaver) {
    for (int words = 0; words < static_cast<int>(kRounds); ++words) {
      std::atomic<int> complete = 0;
      with_a_leaver(leaver, words, [&](Peers& peers) {
        SearchWorkers workers(1, &peers, nullptr);
        for (std::size_t round = 0; round < kRounds; ++round) {
          std::vector<std::int64_t> results(kItems);
          workers.each(
              kItems, [&](std::size_t, std::size_t i) { results[i] = static_cast<std::int64_t>(100 * round + i + 1); },
              [](std::size_t i) { return i + 1; }, [&](Wire& wire, std::size_t i) { wire.share(results[i]); });
          for (std::size_t i = 0; i < kItems; ++i)
            EXPECT_EQ(results[i], static_cast<std::int64_t>(100 * round + i + 1));
        }
        ++complete;
      });
      EXPECT_EQ(complete, 2) << leaver << " left before word " << words;
    }
  }
}

TEST(Peers, OneSpeaksAndIsHeardByAllThatAreLeft) {
  for (int leaver = 0; leaver < 3; ++leaver) {
    std::atomic<int> said = 0;
    with_a_leaver(leaver, 0, [&](Peers& peers) {
      said_by_one(peers, [&] {
        if (peers.rank() != leaver) ++said;
      });
    });
    EXPECT_EQ(said, 1) << leaver;
  }
  std::atomic<int> speaker = -1;
  with_peers(3, [&](Peers& peers) { said_by_one(peers, [&] { speaker = peers.rank(); }); });
  EXPECT_EQ(speaker, 0);
}

}  // namespace
}  // namespace orrery
