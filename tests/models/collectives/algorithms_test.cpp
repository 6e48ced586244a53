#include "models/collectives/algorithms.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

// A counter-based generator: the i-th number depends on i alone.
std::uint64_t number(std::uint64_t i) {
  i = (i + 1) * 0x9E3779B97F4A7C15ULL;
  i = (i ^ (i >> 30)) * 0xBF58476D1CE4E5B9ULL;
  i = (i ^ (i >> 27)) * 0x94D049BB133111EBULL;
  return i ^ (i >> 31);
}

int floor_log2(int n) { return n < 2 ? 0 : 1 + floor_log2(n / 2); }
int ceil_log2(int n) { return n < 2 ? 0 : 1 + floor_log2(n - 1); }

TEST(Collectives, EveryAlgorithmIsRightOnIntegers) {
  for (const CollectiveAlgorithm& a : collective_algorithms()) {
    for (int n = 1; n <= 33; ++n) EXPECT_EQ(run_on_integers(a.kind, a.moves(n)), "") << a.name << " on " << n;
  }
}

// Collectives around one root rank, or between workers and servers, are correct for every number of ranks, and leaving
// out any one of their moves is found to be wrong.
TEST(Collectives, StarsAreRightOnIntegers) {
  const auto expect_right = [](CollectiveKind kind, int n, int servers) {
    const Moves good = star_moves(kind, n, servers);
    EXPECT_EQ(run_on_integers(kind, good), "") << name_of(kind) << " on " << n << " with " << servers;
    for (std::size_t i = 0; i < good.moves.size(); ++i) {
      Moves bad = good;
      bad.moves.erase(bad.moves.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_NE(run_on_integers(kind, bad), "") << name_of(kind) << " without move " << i;
    }
  };
  for (int n = 2; n <= 9; ++n) {
    for (const CollectiveKind kind : {CollectiveKind::gather, CollectiveKind::scatter}) expect_right(kind, n, 0);
    for (int servers = 1; servers < n; ++servers) {
      for (const CollectiveKind kind : {CollectiveKind::push, CollectiveKind::pull}) expect_right(kind, n, servers);
    }
  }
}

// Chains of servers end with the sum on every copy, and workers get the last server's data.
TEST(Collectives, ChainsAreRightOnIntegers) {
  for (int workers = 1; workers <= 4; ++workers) {
    for (int pieces = 1; pieces <= 3; ++pieces) {
      for (int copies = 2; copies <= 4; ++copies) {
        const int n = workers + pieces * copies;
        for (const CollectiveKind kind : {CollectiveKind::push, CollectiveKind::pull}) {
          const Moves good = star_moves(kind, n, pieces, copies);
          EXPECT_EQ(run_on_integers(kind, good), "") << name_of(kind) << n << ' ' << pieces << ' ' << copies;
          for (std::size_t i = 0; i < good.moves.size(); ++i) {
            Moves bad = good;
            bad.moves.erase(bad.moves.begin() + static_cast<std::ptrdiff_t>(i));
            EXPECT_NE(run_on_integers(kind, bad), "") << name_of(kind) << " without move " << i;
          }
        }
      }
    }
  }
  // Every server but a chain's last hands its sum on; only the last ones are pulled from.
  const std::vector<double> pushed = bytes_sent(star_moves(CollectiveKind::push, 4 + 6, 2, 3), 200);
  const std::vector<double> pulled = bytes_sent(star_moves(CollectiveKind::pull, 4 + 6, 2, 3), 200);
  EXPECT_EQ(pushed, (std::vector<double>{200, 200, 200, 200, 100, 100, 100, 100, 0, 0}));
  EXPECT_EQ(pulled, (std::vector<double>{0, 0, 0, 0, 0, 0, 0, 0, 400, 400}));
}

// For Psi bytes of weights, each of W workers pushes Psi bytes, each of S servers receives Psi W / S, and pulls move
// the same.
TEST(Collectives, ServersMoveWhatTheyAreSaidTo) {
  const int workers = 6, servers = 3;
  const std::vector<double> pushed = bytes_sent(star_moves(CollectiveKind::push, workers + servers, servers), 300);
  const std::vector<double> pulled = bytes_sent(star_moves(CollectiveKind::pull, workers + servers, servers), 300);
  for (int r = 0; r < workers + servers; ++r) {
    EXPECT_DOUBLE_EQ(pushed[r], r < workers ? 300 : 0);
    EXPECT_DOUBLE_EQ(pulled[r], r < workers ? 0 : 100 * workers);
  }
  EXPECT_DOUBLE_EQ(time_of(star_moves(CollectiveKind::push, workers + servers, servers), 300, 0, 1e-9), 600);
}

TEST(Collectives, MovesAreWellFormed) {
  for (const CollectiveAlgorithm& a : collective_algorithms()) {
    EXPECT_TRUE(a.moves(1).moves.empty()) << a.name;
    for (int n = 2; n <= 33; ++n) {
      const Moves all = a.moves(n);
      EXPECT_TRUE(std::is_sorted(all.moves.begin(), all.moves.end(), [](const Move& x, const Move& y) {
        return x.round < y.round;
      })) << a.name;
      for (const Move& m : all.moves) {
        EXPECT_NE(m.src, m.dst) << a.name;
        EXPECT_TRUE(m.src >= 0 && m.src < n && m.dst >= 0 && m.dst < n && m.chunk >= 0 && m.chunk < all.chunks);
      }
    }
  }
}

TEST(Collectives, AFaultIsSeen) {
  for (const CollectiveAlgorithm& a : collective_algorithms()) {
    const Moves good = a.moves(5);
    for (std::size_t i = 0; i < good.moves.size(); ++i) {
      Moves bad = good;
      bad.moves.erase(bad.moves.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_NE(run_on_integers(a.kind, bad), "") << a.name << " without move " << i;
    }
  }
}

TEST(Collectives, RingsSendTheLeastBytes) {
  for (const CollectiveAlgorithm& a : collective_algorithms()) {
    for (int n = 2; n <= 33; ++n) {
      const Bytes bytes = n * (1 + static_cast<Bytes>(number(static_cast<std::uint64_t>(n)) % 1000000));
      const std::vector<double> sent = bytes_sent(a.moves(n), bytes);
      const double most = *std::max_element(sent.begin(), sent.end());
      const auto least = static_cast<double>(bytes_per_rank(a.kind, n, bytes));
      if (a.name.starts_with("ring") || a.name.starts_with("pairwise") || a.name.starts_with("bruck")) {
        EXPECT_DOUBLE_EQ(most, least) << a.name << " on " << n;
      } else if (a.name == "double_tree_all_reduce") {
        EXPECT_DOUBLE_EQ(std::accumulate(sent.begin(), sent.end(), 0.0), 2.0 * (n - 1) * static_cast<double>(bytes));
        EXPECT_LE(most, 2.5 * static_cast<double>(bytes)) << n;
      }
    }
  }
}

// Number of rounds, and the bytes that the busiest rank moves over all rounds, as a multiple of its buffer.
struct ClosedForm {
  std::string_view name;
  double (*rounds)(int n);
  double (*buffers)(int n);
};

double doublings(int n) { return floor_log2(n) + (floor_log2(n) == ceil_log2(n) ? 0 : 2); }

constexpr ClosedForm kClosedForms[] = {
    {"ring_all_reduce", [](int n) { return 2.0 * (n - 1); }, [](int n) { return 2.0 * (n - 1) / n; }},
    {"ring_all_gather", [](int n) { return n - 1.0; }, [](int n) { return (n - 1.0) / n; }},
    {"ring_reduce_scatter", [](int n) { return n - 1.0; }, [](int n) { return (n - 1.0) / n; }},
    {"ring_broadcast", [](int n) { return 2.0 * (n - 1); }, [](int n) { return 2.0 * (n - 1) / n; }},
    {"ring_reduce", [](int n) { return 2.0 * (n - 1); }, [](int n) { return 2.0 * (n - 1) / n; }},
    {"tree_all_reduce", [](int n) { return 2.0 * ceil_log2(n); }, [](int n) { return 2.0 * ceil_log2(n); }},
    {"tree_broadcast", [](int n) { return 1.0 * ceil_log2(n); }, [](int n) { return 1.0 * ceil_log2(n); }},
    {"tree_reduce", [](int n) { return 1.0 * ceil_log2(n); }, [](int n) { return 1.0 * ceil_log2(n); }},
    {"recursive_doubling_all_reduce", doublings, doublings},
    {"bruck_all_gather", [](int n) { return 1.0 * ceil_log2(n); }, [](int n) { return (n - 1.0) / n; }},
    {"bruck_reduce_scatter", [](int n) { return 1.0 * ceil_log2(n); }, [](int n) { return (n - 1.0) / n; }},
    {"pairwise_all_to_all", [](int n) { return n - 1.0; }, [](int n) { return (n - 1.0) / n; }},
};

TEST(Collectives, TimesFollowTheClosedForms) {
  for (std::uint64_t i = 0; i < 1200; ++i) {
    const ClosedForm& form = kClosedForms[i % std::size(kClosedForms)];
    const int n = 1 + static_cast<int>(number(4 * i) % 64);
    const auto bytes = static_cast<Bytes>(number(4 * i + 1) >> (24 + number(4 * i + 2) % 30));
    const double alpha = 1e-6 * static_cast<double>(number(4 * i + 3) % 100);
    const double GBps = 1 + static_cast<double>(number(4 * i + 3) % 977);
    const double want = form.rounds(n) * alpha + form.buffers(n) * static_cast<double>(bytes) / (GBps * 1e9);
    const double got = time_of(find_collective(form.name).moves(n), bytes, alpha, GBps);
    EXPECT_NEAR(got, want, 1e-12 * want) << form.name << " on " << n;
  }
}

TEST(Collectives, TheDoubleTreeTakesLogarithmicallyManyRounds) {
  for (int n = 2; n <= 300; ++n) {
    EXPECT_LE(rounds(find_collective("double_tree_all_reduce").moves(n)), 4 * ceil_log2(n) + 2) << n;
  }
}

TEST(Collectives, UnknownNamesListTheKnown) {
  try {
    find_collective("ring");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("ring_all_reduce"), std::string::npos);
  }
}

}  // namespace
}  // namespace orrery
