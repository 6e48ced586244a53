// This file checks algorithms of collectives by carrying out their transfers of chunks on integers.
#include <span>
#include <vector>

#include <fmt/format.h>

#include "models/collectives/algorithms.h"

namespace orrery {
namespace {

struct Cell {
  bool present = false;
  std::int64_t value = 0;
};

using Cells = std::vector<std::vector<Cell>>;  // the values of all chunks, indexed by rank and chunk

// Returns the initial value of a chunk on a rank. Values are different for every (rank, chunk), and such that no two
// sums of different terms are equal by chance.
std::int64_t initial(int rank, int chunk) {
  const auto x = static_cast<std::uint64_t>(rank * 65537 + chunk + 1) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::int64_t>(x >> 24);
}

// Returns the number of the chunk that a parameter server holds in a push or pull; a negative number for a worker.
int server_of(const Moves& all, int rank) {
  const int server = rank - (all.ranks - all.chunks * all.copies);
  return server < 0 ? server : server % all.chunks;
}

bool holds_at_start(CollectiveKind kind, const Moves& all, int rank, int chunk) {
  switch (kind) {
    case CollectiveKind::gather:
      return chunk == rank;
    case CollectiveKind::scatter:
      return rank == 0;
    case CollectiveKind::push:
      return server_of(all, rank) < 0;
    case CollectiveKind::pull:  // at the start only the last server of each chain has the data
      return rank - (all.ranks - all.chunks) == chunk;
    case CollectiveKind::all_gather:
    case CollectiveKind::shift:
      return chunk == rank;
    case CollectiveKind::broadcast:
      return rank == 0;
    case CollectiveKind::all_to_all:
      return chunk / all.ranks == rank;
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce:
      return true;
  }
  return false;
}

bool holds_at_end(CollectiveKind kind, const Moves& all, int rank, int chunk) {
  switch (kind) {
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      return chunk == rank;
    case CollectiveKind::reduce:
    case CollectiveKind::gather:
      return rank == 0;
    case CollectiveKind::push:
      return server_of(all, rank) == chunk;
    case CollectiveKind::pull:
      return server_of(all, rank) < 0;
    case CollectiveKind::all_to_all:
      return chunk % all.ranks == rank;
    case CollectiveKind::shift:
      return chunk == (rank + all.ranks - 1) % all.ranks;
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
      return true;
  }
  return false;
}

// Returns the value that a chunk must end with: the sum of the chunk's initial values over all ranks that hold the
// chunk at the start.
std::int64_t wanted(CollectiveKind kind, const Moves& all, int chunk) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < all.ranks; ++rank) {
    if (holds_at_start(kind, all, rank, chunk)) sum += initial(rank, chunk);
  }
  return sum;
}

Cells start(CollectiveKind kind, const Moves& all) {
  Cells cells(static_cast<std::size_t>(all.ranks));
  for (int rank = 0; rank < all.ranks; ++rank) {
    for (int chunk = 0; chunk < all.chunks; ++chunk) {
      cells[static_cast<std::size_t>(rank)].push_back({holds_at_start(kind, all, rank, chunk), initial(rank, chunk)});
    }
  }
  return cells;
}

// Carries out the moves of one round, in which every rank sends the values from before the round.
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

}  // namespace

std::string run_on_integers(CollectiveKind kind, const Moves& all) {
  Cells cells = start(kind, all);
  for (std::size_t first = 0, last = 0; first < all.moves.size(); first = last) {
    while (last < all.moves.size() && all.moves[last].round == all.moves[first].round) ++last;
    std::string fault = run_round(std::span(all.moves).subspan(first, last - first), cells);
    if (!fault.empty()) return fault;
  }
  for (int chunk = 0; chunk < all.chunks; ++chunk) {
    const std::int64_t right = wanted(kind, all, chunk);
    for (int rank = 0; rank < all.ranks; ++rank) {
      const Cell& c = cells[static_cast<std::size_t>(rank)][static_cast<std::size_t>(chunk)];
      if (holds_at_end(kind, all, rank, chunk) && (!c.present || c.value != right)) {
        return fmt::format("rank {} ends with a wrong chunk {}", rank, chunk);
      }
    }
  }
  return "";
}

}  // namespace orrery
