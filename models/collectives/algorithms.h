#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.h"

namespace orrery {

// Kinds of collectives. shift: every rank passes its buffer to the next one, and the last to the first. gather,
// scatter: the pieces of all ranks come to rank 0, or from it. push, pull: the last ranks are servers, which own a
// piece each; in a push their pieces become the sums of those of the other ranks (workers), in a pull all workers get
// all pieces. Where several servers have the same piece they are a chain (van Renesse and Schneider 2004, Chain
// Replication for Supporting High Throughput and Availability): pieces that workers push are summed by its head and
// handed on from one server to the next, and workers pull from its tail.
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  shift,
  gather,
  scatter,
  push,
  pull
};

inline constexpr int kCollectiveKinds = 7;  // the first kinds, which collective libraries such as NCCL have

// Whether every rank of a collective exchanges messages only with a few central ranks (the root, or parameter servers),
// in one round.
inline bool is_star(CollectiveKind kind) { return kind >= CollectiveKind::gather; }

std::string_view name_of(CollectiveKind kind);

// One copy of one chunk, or with `add` one sum into the chunk that dst already holds. Moves of the same round read the
// chunks as they were before the round, so their order within it does not matter.
struct Move {
  int round = 0;
  int src = 0;
  int dst = 0;
  int chunk = 0;
  bool add = false;
};

// A collective as the list of chunk moves that carry it out, ordered by round. It says which chunk goes to which rank,
// never when or how fast. Every rank numbers its chunks 0..chunks-1; the buffer of `bytes` that a caller names holds
// buffer_chunks of them. At the start a rank r holds: all chunks (all_reduce, reduce_scatter, reduce), chunk r
// (all_gather, shift), all if it is rank 0 (broadcast, scatter), chunks r*n+d for every d (all_to_all, which has n*n
// chunks of which a buffer holds n). A push or pull has one chunk for each server or chain of servers: a worker starts
// with all (push), the last server of chain s with chunk s (pull). At the end: sums of all chunks (all_reduce; reduce:
// on rank 0), the sum of chunk r (reduce_scatter), all chunks (all_gather, broadcast), chunks s*n+r for every s
// (all_to_all), chunk r-1 (shift), chunk r (scatter), all on rank 0 (gather), the sum of chunk s on every server of
// chain s (push), all on workers (pull).
struct Moves {
  int ranks = 1;
  int chunks = 1;
  int buffer_chunks = 1;
  std::vector<Move> moves;
  int copies = 1;  // servers in a chain; the k-th server of chain s is server number k * chunks + s
};

// A named way to carry out a collective; moves(n) is defined for every n >= 1 (one rank: no moves). The root is rank 0.
struct CollectiveAlgorithm {
  std::string_view name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Moves (*moves)(int ranks) = nullptr;
};

std::span<const CollectiveAlgorithm> collective_algorithms();
const CollectiveAlgorithm& find_collective(std::string_view name);  // throws Error listing the known names

// The moves of a collective with one round: between rank 0 and every other rank, or between every worker and every
// server. A push has one more round for each further copy in a chain. servers: pieces of a push or pull; copies:
// servers for each piece.
Moves star_moves(CollectiveKind kind, int ranks, int servers, int copies = 1);

// Runs the moves on integers and returns "" if every rank ends with the result that this kind of collective promises,
// else the first fault: a chunk that is sent or added to before it is there, or a wrong result.
std::string run_on_integers(CollectiveKind kind, const Moves& moves);

int rounds(const Moves& moves);

// Bytes that each rank sends, in rank order; `bytes` is the whole buffer of a rank (all_gather: what it ends with).
std::vector<double> bytes_sent(const Moves& moves, Bytes bytes);

// Time on links that send and receive at once, GBps each way per rank: every round lasts alpha plus what its busiest
// rank sends or receives, and rounds follow each other. With n ranks and S bytes this is
//   ring all_reduce, broadcast, reduce: 2(n-1)(alpha + S/(nB));  ring all_gather, reduce_scatter: (n-1)(alpha + S/(nB))
//   tree: 2 ceil(log2 n)(alpha + S/B);  pairwise all_to_all: (n-1)(alpha + S/(nB))
//   recursive_doubling: (floor(log2 n) + (0 or 2))(alpha + S/B);  bruck: ceil(log2 n) alpha + (n-1)/n S/B
// (Thakur, Rabenseifner, Gropp 2005, Optimization of Collective Communication Operations in MPICH, sections 4-5).
Seconds time_of(const Moves& moves, Bytes bytes, Seconds alpha, double GBps);

// Bytes that the busiest rank sends in a bandwidth-optimal algorithm, rounded up: 2S(n-1)/n for all_reduce, S(n-1)/n
// for all_gather, reduce_scatter, all_to_all and scatter, S for broadcast, reduce, shift and push, S/n for gather; 0
// for one rank. For pull, which depends on the number of servers, the bound S is returned.
Bytes bytes_per_rank(CollectiveKind kind, std::int64_t ranks, Bytes bytes);

}  // namespace orrery
