#include "models/collectives.h"

#include <algorithm>
#include <array>
#include <cassert>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/error.h"

namespace orrery {

namespace {

int wrap(int rank, int ranks) { return ((rank % ranks) + ranks) % ranks; }

// n-1 rounds in which every rank passes one chunk to its right neighbour, rank r beginning with chunk r + first.
void append_ring(Moves& all, int first_round, int first, bool add) {
  const int n = all.ranks;
  for (int step = 0; step < n - 1; ++step) {
    for (int rank = 0; rank < n; ++rank) {
      all.moves.push_back({first_round + step, rank, (rank + 1) % n, wrap(rank + first - step, n), add});
    }
  }
}

Moves ring_all_reduce(int n) {
  Moves all{n, n, n, {}};
  append_ring(all, 0, -1, true);  // leaves the sum of chunk r on rank r
  append_ring(all, n - 1, 0, false);
  return all;
}

Moves ring_all_gather(int n) {
  Moves all{n, n, n, {}};
  append_ring(all, 0, 0, false);
  return all;
}

Moves ring_reduce_scatter(int n) {
  Moves all{n, n, n, {}};
  append_ring(all, 0, -1, true);
  return all;
}

// Chunks follow each other down the chain 0, 1, ..., n-1.
Moves ring_broadcast(int n) {
  Moves all{n, n, n, {}};
  for (int round = 0; round < 2 * (n - 1); ++round) {
    for (int rank = std::max(0, round - (n - 1)); rank <= std::min(round, n - 2); ++rank) {
      all.moves.push_back({round, rank, rank + 1, round - rank, false});
    }
  }
  return all;
}

// The same moves with time, direction and copy/add turned round.
Moves reversed(Moves all, bool add) {
  const int last = rounds(all) - 1;
  for (Move& m : all.moves) {
    std::swap(m.src, m.dst);
    m.round = last - m.round;
    m.add = add;
  }
  std::reverse(all.moves.begin(), all.moves.end());
  return all;
}

Moves ring_reduce(int n) { return reversed(ring_broadcast(n), true); }

// Binomial tree: after round k the first 2^(k+1) ranks have everything.
Moves tree_broadcast(int n) {
  Moves all{n, 1, 1, {}};
  for (int round = 0, have = 1; have < n; ++round, have *= 2) {
    for (int rank = 0; rank < have && rank + have < n; ++rank) {
      all.moves.push_back({round, rank, rank + have, 0, false});
    }
  }
  return all;
}

Moves tree_reduce(int n) { return reversed(tree_broadcast(n), true); }

void append(Moves& all, const Moves& more) {
  const int shift = rounds(all);
  for (Move m : more.moves) {
    m.round += shift;
    all.moves.push_back(m);
  }
}

Moves tree_all_reduce(int n) {
  Moves all = tree_reduce(n);
  append(all, tree_broadcast(n));
  return all;
}

// Assigns every move the first round in which its chunk is ready at src and dst, src does not send and dst does not
// receive; moves come in an order in which a chunk's earlier moves precede. Ends sorted by round.
void schedule(Moves& all) {
  std::vector<std::vector<bool>> sends(static_cast<std::size_t>(all.ranks)), receives = sends;
  std::vector<std::vector<int>> ready(static_cast<std::size_t>(all.ranks),
                                      std::vector<int>(static_cast<std::size_t>(all.chunks), 0));
  const auto taken = [](std::vector<bool>& slots, int round) {
    if (slots.size() <= static_cast<std::size_t>(round)) slots.resize(static_cast<std::size_t>(round) + 1, false);
    return slots[static_cast<std::size_t>(round)];
  };
  for (Move& m : all.moves) {
    const auto src = static_cast<std::size_t>(m.src), dst = static_cast<std::size_t>(m.dst);
    const auto chunk = static_cast<std::size_t>(m.chunk);
    m.round = ready[src][chunk];
    while (taken(sends[src], m.round) || taken(receives[dst], m.round)) ++m.round;
    sends[src][static_cast<std::size_t>(m.round)] = receives[dst][static_cast<std::size_t>(m.round)] = true;
    ready[dst][chunk] = std::max(ready[dst][chunk], m.round + 1);
  }
  std::stable_sort(all.moves.begin(), all.moves.end(), [](const Move& a, const Move& b) { return a.round < b.round; });
}

// Moves of the sub-tree over first..last (its middle is the root) towards the root, children before parents.
int append_sub_tree(Moves& all, int first, int last, int chunk, int shift) {
  const int root = first + (last - first + 1) / 2;
  const int rank = (root + shift) % all.ranks;
  if (first < root) {
    all.moves.push_back({0, append_sub_tree(all, first, root - 1, chunk, shift), rank, chunk, true});
  }
  if (root < last) {
    all.moves.push_back({0, append_sub_tree(all, root + 1, last, chunk, shift), rank, chunk, true});
  }
  return rank;
}

// Two binary trees, the second moved on by one rank so that inner ranks of one are mostly leaves of the other, each
// with half of the data (Sanders, Speck, Traeff 2009, Two-tree algorithms for full bandwidth broadcast, reduction and
// scan): up both, then down both.
Moves double_tree_all_reduce(int n) {
  Moves all{n, 2, 2, {}};
  append_sub_tree(all, 0, n - 1, 0, 0);
  append_sub_tree(all, 0, n - 1, 1, 1);
  std::vector<Move> down(all.moves.rbegin(), all.moves.rend());
  for (Move& m : down) {
    std::swap(m.src, m.dst);
    m.add = false;
  }
  all.moves.insert(all.moves.end(), down.begin(), down.end());
  schedule(all);
  return all;
}

// Every rank exchanges everything with the rank that differs in one bit; ranks beyond the largest power of two add
// theirs to a partner first and get the result back last.
Moves recursive_doubling_all_reduce(int n) {
  Moves all{n, 1, 1, {}};
  int power = 1;
  while (power * 2 <= n) power *= 2;
  int round = 0;
  for (int rank = power; rank < n; ++rank) all.moves.push_back({round, rank, rank - power, 0, true});
  round += n > power ? 1 : 0;
  for (int bit = 1; bit < power; bit *= 2, ++round) {
    for (int rank = 0; rank < power; ++rank) all.moves.push_back({round, rank, rank ^ bit, 0, true});
  }
  for (int rank = power; rank < n; ++rank) all.moves.push_back({round, rank - power, rank, 0, false});
  return all;
}

// Round k doubles what every rank has: it gets the next 2^k chunks, or as many as are missing, from rank r + 2^k.
Moves bruck_all_gather(int n) {
  Moves all{n, n, n, {}};
  for (int round = 0, have = 1; have < n; ++round, have *= 2) {
    for (int rank = 0; rank < n; ++rank) {
      for (int i = 0; i < std::min(have, n - have); ++i) {
        all.moves.push_back({round, (rank + have) % n, rank, (rank + have + i) % n, false});
      }
    }
  }
  return all;
}

Moves bruck_reduce_scatter(int n) { return reversed(bruck_all_gather(n), true); }

Moves pairwise_all_to_all(int n) {
  Moves all{n, n * n, n, {}};
  for (int step = 1; step < n; ++step) {
    for (int rank = 0; rank < n; ++rank) {
      const int to = (rank + step) % n;
      all.moves.push_back({step - 1, rank, to, rank * n + to, false});
    }
  }
  return all;
}

Moves ring_shift(int n) {
  Moves all{n, n, 1, {}};
  for (int rank = 0; n > 1 && rank < n; ++rank) all.moves.push_back({0, rank, (rank + 1) % n, rank, false});
  return all;
}

struct Cell {
  bool present = false;
  std::int64_t value = 0;
};

using Cells = std::vector<std::vector<Cell>>;  // (rank, chunk)

// Different for every (rank, chunk), and so spread that no two sums of different terms agree by chance.
std::int64_t initial(int rank, int chunk) {
  const auto x = static_cast<std::uint64_t>(rank * 65537 + chunk + 1) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::int64_t>(x >> 24);
}

bool holds_at_start(CollectiveKind kind, int ranks, int rank, int chunk) {
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::shift:
      return chunk == rank;
    case CollectiveKind::broadcast:
      return rank == 0;
    case CollectiveKind::all_to_all:
      return chunk / ranks == rank;
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce:
      return true;
  }
  return false;
}

bool holds_at_end(CollectiveKind kind, int ranks, int rank, int chunk) {
  switch (kind) {
    case CollectiveKind::reduce_scatter:
      return chunk == rank;
    case CollectiveKind::reduce:
      return rank == 0;
    case CollectiveKind::all_to_all:
      return chunk % ranks == rank;
    case CollectiveKind::shift:
      return chunk == wrap(rank - 1, ranks);
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
      return true;
  }
  return false;
}

// What a chunk must be in the end: the sum, or copy, of all that held it at the start.
std::int64_t wanted(CollectiveKind kind, int ranks, int chunk) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (holds_at_start(kind, ranks, rank, chunk)) sum += initial(rank, chunk);
  }
  return sum;
}

Cells start(CollectiveKind kind, const Moves& all) {
  Cells cells(static_cast<std::size_t>(all.ranks));
  for (int rank = 0; rank < all.ranks; ++rank) {
    for (int chunk = 0; chunk < all.chunks; ++chunk) {
      cells[static_cast<std::size_t>(rank)].push_back(
          {holds_at_start(kind, all.ranks, rank, chunk), initial(rank, chunk)});
    }
  }
  return cells;
}

// Carries out one round; what it sends is what was there before it.
std::string run_round(std::span<const Move> round, Cells& cells) {
  const auto cell = [&](int rank, int chunk) -> Cell& {
    return cells.at(static_cast<std::size_t>(rank)).at(static_cast<std::size_t>(chunk));
  };
  std::vector<Cell> sent;
  for (const Move& m : round) sent.push_back(cell(m.src, m.chunk));
  for (std::size_t i = 0; i < round.size(); ++i) {
    const Move& m = round[i];
    Cell& to = cell(m.dst, m.chunk);
    if (!sent[i].present)
      return fmt::format("round {}: rank {} sends chunk {} before it has it", m.round, m.src, m.chunk);
    if (m.add && !to.present)
      return fmt::format("round {}: rank {} adds to chunk {} before it has it", m.round, m.dst, m.chunk);
    to = {true, sent[i].value + (m.add ? to.value : 0)};
  }
  return "";
}

constexpr std::array<std::string_view, kCollectiveKinds> kKindNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "shift"};

constexpr CollectiveAlgorithm kAlgorithms[] = {
    {"ring_all_reduce", CollectiveKind::all_reduce, ring_all_reduce},
    {"ring_all_gather", CollectiveKind::all_gather, ring_all_gather},
    {"ring_reduce_scatter", CollectiveKind::reduce_scatter, ring_reduce_scatter},
    {"ring_broadcast", CollectiveKind::broadcast, ring_broadcast},
    {"ring_reduce", CollectiveKind::reduce, ring_reduce},
    {"tree_all_reduce", CollectiveKind::all_reduce, tree_all_reduce},
    {"tree_broadcast", CollectiveKind::broadcast, tree_broadcast},
    {"tree_reduce", CollectiveKind::reduce, tree_reduce},
    {"double_tree_all_reduce", CollectiveKind::all_reduce, double_tree_all_reduce},
    {"recursive_doubling_all_reduce", CollectiveKind::all_reduce, recursive_doubling_all_reduce},
    {"bruck_all_gather", CollectiveKind::all_gather, bruck_all_gather},
    {"bruck_reduce_scatter", CollectiveKind::reduce_scatter, bruck_reduce_scatter},
    {"pairwise_all_to_all", CollectiveKind::all_to_all, pairwise_all_to_all},
    {"ring_shift", CollectiveKind::shift, ring_shift},
};

}  // namespace

std::string_view name_of(CollectiveKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::span<const CollectiveAlgorithm> collective_algorithms() { return kAlgorithms; }

const CollectiveAlgorithm& find_collective(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CollectiveAlgorithm& a : kAlgorithms) {
    if (a.name == name) return a;
    names.push_back(a.name);
  }
  throw Error(fmt::format("collective {}: unknown; use one of {}", name, fmt::join(names, ", ")));
}

std::string run_on_integers(CollectiveKind kind, const Moves& all) {
  Cells cells = start(kind, all);
  for (std::size_t first = 0, last = 0; first < all.moves.size(); first = last) {
    while (last < all.moves.size() && all.moves[last].round == all.moves[first].round) ++last;
    const std::string fault = run_round(std::span(all.moves).subspan(first, last - first), cells);
    if (!fault.empty()) return fault;
  }
  for (int chunk = 0; chunk < all.chunks; ++chunk) {
    const std::int64_t right = wanted(kind, all.ranks, chunk);
    for (int rank = 0; rank < all.ranks; ++rank) {
      const Cell& c = cells[static_cast<std::size_t>(rank)][static_cast<std::size_t>(chunk)];
      if (holds_at_end(kind, all.ranks, rank, chunk) && (!c.present || c.value != right)) {
        return fmt::format("rank {} ends with a wrong chunk {}", rank, chunk);
      }
    }
  }
  return "";
}

int rounds(const Moves& all) { return all.moves.empty() ? 0 : all.moves.back().round + 1; }

std::vector<double> bytes_sent(const Moves& all, Bytes bytes) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(all.ranks), 0);
  for (const Move& m : all.moves) ++count[static_cast<std::size_t>(m.src)];
  std::vector<double> sent;
  for (const std::int64_t c : count) {
    sent.push_back(static_cast<double>(c) * static_cast<double>(bytes) / all.buffer_chunks);
  }
  return sent;
}

Seconds time_of(const Moves& all, Bytes bytes, Seconds alpha, double GBps) {
  std::int64_t chunks = 0;  // on the critical link, summed over rounds: whole numbers, so that closed forms are exact
  for (std::size_t i = 0; i < all.moves.size();) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(all.ranks), 0), in = out;
    const int round = all.moves[i].round;
    std::int64_t busiest = 0;
    for (; i < all.moves.size() && all.moves[i].round == round; ++i) {
      busiest = std::max({busiest, ++out[static_cast<std::size_t>(all.moves[i].src)],
                          ++in[static_cast<std::size_t>(all.moves[i].dst)]});
    }
    chunks += busiest;
  }
  const double moved = static_cast<double>(chunks) * static_cast<double>(bytes) / all.buffer_chunks;
  return rounds(all) * alpha + moved / (GBps * 1e9);
}

Bytes bytes_per_rank(CollectiveKind kind, std::int64_t ranks, Bytes bytes) {
  if (ranks <= 1) return 0;
  switch (kind) {
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::shift:
      return bytes;
    case CollectiveKind::all_reduce:
      return ceil_div(2 * bytes * (ranks - 1), ranks);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return ceil_div(bytes * (ranks - 1), ranks);
  }
  return 0;
}

}  // namespace orrery
