#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.h"

namespace orrery {

// Types of collectives. shift: every rank passes its buffer to the next rank, and the last rank to the first. gather,
// scatter: rank 0 receives the pieces of all ranks, or sends each rank its piece. push, pull: the last ranks are
// servers, each of which owns one piece. A push sums the other ranks' (workers') versions of every piece on its server;
// a pull gives all workers all pieces. Several servers with the same piece form a chain (van Renesse and Schneider
// 2004, Chain Replication for Supporting High Throughput and Availability): the head of the chain sums the pieces that
// workers push and hands the sum on from one server to the next, and workers pull from the tail.
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

// Number of collective types that libraries such as NCCL provide; they come first in CollectiveKind
inline constexpr int kCollectiveKinds = 7;

// Returns whether every rank of a collective exchanges messages only with a few central ranks (the root, or parameter
// servers), in one round. A push through a chain of servers has further rounds along the chain.
inline bool is_star(CollectiveKind kind) { return kind >= CollectiveKind::gather; }

std::string_view name_of(CollectiveKind kind);

// The transfer of one chunk (one of the equal parts of a collective's buffer) from rank src to rank dst, where it
// replaces the chunk with the same number or, if `add` is true, is added to it. Moves of the same round read the chunks
// as they were before the round, so their order within the round does not matter.
struct Move {
  int round = 0;
  int src = 0;
  int dst = 0;
  int chunk = 0;
  bool add = false;
};

// A collective as the list of chunk moves that carry it out, ordered by round. The list says which chunk goes to which
// rank, never when or how fast. Every rank numbers its chunks 0..chunks-1. Where a function takes the size of a buffer
// in bytes, the buffer is one of buffer_chunks chunks. At the start rank r holds: all chunks (all_reduce,
// reduce_scatter, reduce), chunk r (all_gather, shift, gather), all chunks if it is rank 0 (broadcast, scatter), chunks
// r*n+d for every d (all_to_all, which has n*n chunks of which a buffer holds n). A push or pull has one chunk for each
// server or chain of servers: at the start each worker holds all chunks (push), or the last server of chain s holds
// chunk s (pull). At the end rank r holds: the sums of all chunks (all_reduce; reduce: on rank 0 only), the sum of
// chunk r (reduce_scatter), all chunks (all_gather, broadcast), chunks s*n+r for every s (all_to_all), chunk r-1
// (shift), chunk r (scatter), all chunks if it is rank 0 (gather); every server of chain s holds the sum of chunk s
// (push); every worker holds all chunks (pull).
struct Moves {
  int ranks = 1;
  int chunks = 1;
  int buffer_chunks = 1;
  std::vector<Move> moves;
  // number of servers in a chain; server k of chain s (both counted from 0) is server number k * chunks + s
  int copies = 1;
};

// A named algorithm for a collective; moves(n) is defined for every n >= 1 (for one rank: no moves). The root is rank
// 0.
struct CollectiveAlgorithm {
  std::string_view name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Moves (*moves)(int ranks) = nullptr;
};

std::span<const CollectiveAlgorithm> collective_algorithms();
const CollectiveAlgorithm& find_collective(std::string_view name);  // throws Error listing the known names

// Returns the moves of a collective whose messages all go between rank 0 and every other rank, or between every worker
// and every server, in one round. A push has one more round for each further server in a chain. servers: number of
// pieces of a push or pull; copies: number of servers that hold each piece.
Moves star_moves(CollectiveKind kind, int ranks, int servers, int copies = 1);

// Checks a collective by carrying out its moves on integers in place of the data. Returns "" if every rank ends with
// the result that this type of collective promises, else the first fault: a chunk that is sent or added to before it
// has arrived, or a wrong result.
std::string run_on_integers(CollectiveKind kind, const Moves& moves);

int rounds(const Moves& moves);

// Returns the bytes that each rank sends, in rank order; `bytes` is the size of a rank's complete buffer (all_gather:
// the complete result).
std::vector<double> bytes_sent(const Moves& moves, Bytes bytes);

// Returns the time of a collective, seconds, on links that send and receive at the same time, with a rate of GBps in
// each direction per rank: every round lasts alpha (a latency in seconds) plus the time of the bytes that the round's
// busiest rank sends or receives, and rounds follow each other. With n ranks, S bytes and B bytes/s this time is
//   ring all_reduce, broadcast, reduce: 2(n-1)(alpha + S/(nB));  ring all_gather, reduce_scatter: (n-1)(alpha + S/(nB))
//   tree: 2 ceil(log2 n)(alpha + S/B);  pairwise all_to_all: (n-1)(alpha + S/(nB))
//   recursive_doubling: (floor(log2 n) + (0 or 2))(alpha + S/B);  bruck: ceil(log2 n) alpha + (n-1)/n S/B
// (Thakur, Rabenseifner, Gropp 2005, Optimization of Collective Communication Operations in MPICH, sections 4-5).
Seconds time_of(const Moves& moves, Bytes bytes, Seconds alpha, double GBps);

// Returns the bytes that the busiest rank sends in a bandwidth-optimal algorithm, rounded up. With n ranks and S bytes:
// 2S(n-1)/n for all_reduce, S(n-1)/n for all_gather, reduce_scatter, all_to_all and scatter, S for broadcast, reduce,
// shift and push, S/n for gather; 0 for one rank. For pull, where the bytes depend on the number of servers, the upper
// bound S is returned.
Bytes bytes_per_rank(CollectiveKind kind, std::int64_t ranks, Bytes bytes);

}  // namespace orrery
