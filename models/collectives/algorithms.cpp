#include "models/collectives/algorithms.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"

namespace orrery {

namespace {

int wrap(int rank, int ranks) { return ((rank % ranks) + ranks) % ranks; }

// Appends n-1 rounds of a ring, in each of which every rank sends one chunk to its right neighbour; the first chunk
// that rank r sends is chunk r + first.
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
  append_ring(all, 0, -1, true);  // a reduce-scatter, after which rank r holds the sum of chunk r
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

// Returns the moves of a pipelined ring broadcast: the chunks follow each other along the chain of ranks 0, 1, ...,
// n-1.
Moves ring_broadcast(int n) {
  Moves all{n, n, n, {}};
  for (int round = 0; round < 2 * (n - 1); ++round) {
    for (int rank = std::max(0, round - (n - 1)); rank <= std::min(round, n - 2); ++rank) {
      all.moves.push_back({round, rank, rank + 1, round - rank, false});
    }
  }
  return all;
}

// Returns the given moves backwards in time, with the order of rounds and the direction of each move reversed. add:
// whether the reversed moves add chunks instead of replacing them.
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

// Returns the moves of a broadcast by a binomial tree: after round k, counted from 0, the first 2^(k+1) ranks have all
// data.
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

// Assigns rounds to the moves, in the order of the list: each gets the first round in which src has received its chunk
// in all earlier moves, and in which src sends and dst receives nothing else yet. Then sorts the moves by round.
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

// Appends the moves of the sub-tree over ranks first..last (the middle rank is its root) towards the root, children
// before parents. Returns the root, shifted by `shift` ranks.
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

// Returns the moves of an all-reduce by two binary trees with half of the data each: reduction up both trees, then
// broadcast down both. The second tree is shifted by one rank so that inner ranks of one are mostly leaves of the other
// (Sanders, Speck, Traeff 2009, Two-tree algorithms for full bandwidth broadcast, reduction and scan).
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

// Returns the moves of recursive doubling: in each round every rank exchanges all its data with the rank whose number
// differs in one bit. Ranks beyond the largest power of two first add their data to a partner's, and get the result
// from the partner in the last round.
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

// Returns the moves of Bruck's all-gather: round k doubles the number of chunks of every rank. Rank r gets the next 2^k
// chunks from rank r + 2^k, or as many as it still lacks.
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

constexpr std::string_view kKindNames[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                                           "all_to_all", "shift",      "gather",         "scatter",   "push",
                                           "pull"};

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

Moves star_moves(CollectiveKind kind, int ranks, int servers, int copies) {
  const bool serves = kind == CollectiveKind::push || kind == CollectiveKind::pull;
  const int chunks = serves ? servers : ranks;
  Moves all{ranks, chunks, chunks, {}, serves ? copies : 1};
  const bool sums = kind == CollectiveKind::push;
  const bool inwards = sums || kind == CollectiveKind::gather;
  const auto add = [&](int outer, int centre, int chunk) {
    all.moves.push_back({0, inwards ? outer : centre, inwards ? centre : outer, chunk, sums && outer > 0});
  };
  if (!serves) {
    for (int rank = 1; rank < ranks; ++rank) add(rank, 0, rank);
    return all;
  }
  // The first server that workers exchange messages with: head of the first chain (push), or tail of the first chain
  // (pull)
  const int workers = ranks - servers * copies, centre = sums ? workers : ranks - servers;
  for (int worker = 0; worker < workers; ++worker) {
    for (int s = 0; s < servers; ++s) add(worker, centre + s, s);
  }
  for (int k = 1; sums && k < copies; ++k) {
    for (int s = workers + (k - 1) * servers; s < workers + k * servers; ++s)
      all.moves.push_back({k, s, s + servers, (s - workers) % servers, false});
  }
  return all;
}

int rounds(const Moves& all) { return all.moves.empty() ? 0 : all.moves.back().round + 1; }

std::vector<double> bytes_sent(const Moves& all, Bytes bytes) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(all.ranks), 0);
  for (const Move& m : all.moves) ++count[static_cast<std::size_t>(m.src)];
  std::vector<double> sent;
  sent.reserve(count.size());
  for (const std::int64_t c : count) {
    sent.push_back(static_cast<double>(c) * static_cast<double>(bytes) / all.buffer_chunks);
  }
  return sent;
}

Seconds time_of(const Moves& all, Bytes bytes, Seconds alpha, double GBps) {
  // chunks: the number of chunks that the busiest rank sends or receives in a round, summed over all rounds. It is an
  // integer, so that the result agrees exactly with closed forms.
  std::int64_t chunks = 0;
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
    case CollectiveKind::push:
    case CollectiveKind::pull:
      return bytes;
    case CollectiveKind::gather:
      return ceil_div(bytes, ranks);
    case CollectiveKind::all_reduce:
      return ceil_div(2 * bytes * (ranks - 1), ranks);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::scatter:
      return ceil_div(bytes * (ranks - 1), ranks);
  }
  return 0;
}

}  // namespace orrery
