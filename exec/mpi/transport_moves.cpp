#include <algorithm>
#include <cassert>
#include <cstring>

#include "exec/mpi/transport_parts.h"
#include "exec/transport/chunks.h"
#include "exec/transport/combine.h"

namespace orrery::mpi {
namespace {

std::byte* writable_bytes(const void* data) { return static_cast<std::byte*>(const_cast<void*>(data)); }

// The chunk moves (sends and receives) of one rank in a collective, round after round. A received chunk that is to be
// added, or whose memory is still being sent, is kept in staging_ until the round is over.
class MovesPending final : public Pending {
 public:
  MovesPending(Channel& channel, const CollectiveCall& call, const Moves& moves)
      : channel_(channel), call_(call), tag_(next_tag(channel)), width_(width_of(call.element)) {
    for (const Move& m : moves.moves) {
      if (m.src == channel.rank || m.dst == channel.rank) moves_.push_back(m);
    }
    place_chunks(moves);
    start_round();
  }

  bool done() override {
    while (first_ < moves_.size()) {
      if (!all_done(requests_)) return false;
      finish_round();
      first_ = last_;
      start_round();
    }
    if (!ended_) end();
    return true;
  }

 private:
  struct Staged {
    std::byte* from;
    const Move* move;
  };

  void place_chunks(const Moves& moves) {
    if (call_.kind == CollectiveKind::reduce_scatter) {
      sums_.resize(static_cast<std::size_t>(before_piece(call_.counts, channel_.size) * width_));
      if (!sums_.empty()) std::memcpy(sums_.data(), call_.in, sums_.size());
    }
    pieces_ = chunks_of(call_, channel_.rank, channel_.size, moves.chunks, sums_.data());
    if (call_.kind == CollectiveKind::broadcast && channel_.rank == call_.root) copy(call_.in, whole());
    if (call_.kind == CollectiveKind::all_gather) copy(call_.in, own());
    // Copies the first member's own piece in a gather or scatter.
    if (call_.kind == CollectiveKind::gather && channel_.rank == 0) copy(call_.in, own());
    if (call_.kind == CollectiveKind::scatter && channel_.rank == 0)
      copy(own().at, {writable_bytes(call_.out), own().bytes});
    if (call_.kind == CollectiveKind::shift && channel_.size == 1)
      copy(call_.in, {writable_bytes(call_.out), own().bytes});
    if (call_.kind == CollectiveKind::all_to_all)
      copy(writable_bytes(call_.in) + channel_.rank * call_.counts[0] * width_, pieces_[own_exchange()]);
    assert(pieces_.size() == static_cast<std::size_t>(moves.chunks));
  }

  void start_round() {
    const auto later = [&](const Move& m) { return m.round != moves_[first_].round; };
    const auto begin = moves_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto end = std::find_if(begin, moves_.end(), later);
    last_ = static_cast<std::size_t>(end - moves_.begin());
    Bytes staging = 0;
    for (auto m = begin; m != end; ++m) staging += waits(*m) ? piece(*m).bytes : 0;
    staging_.resize(static_cast<std::size_t>(staging));
    staged_.clear();
    requests_.clear();
    std::byte* free = staging_.data();
    for (auto m = begin; m != end; ++m) {
      const ChunkMemory at = piece(*m);
      assert(at.at != nullptr || at.bytes == 0);
      if (m->src == channel_.rank) {
        send(channel_, m->dst, tag_, at.at, at.bytes, requests_);
      } else if (waits(*m)) {
        receive(channel_, m->src, tag_, free, at.bytes, requests_);
        staged_.push_back({free, &*m});
        free += at.bytes;
      } else {
        receive(channel_, m->src, tag_, at.at, at.bytes, requests_);
      }
    }
  }

  void finish_round() {
    for (const Staged& s : staged_) {
      const ChunkMemory to = piece(*s.move);
      if (s.move->add) {
        combine(call_.element, call_.reduction, s.from, to.at, to.bytes / width_);
      } else {
        copy(s.from, to);
      }
    }
  }

  void end() {
    if (call_.kind == CollectiveKind::reduce_scatter) copy(own().at, {writable_bytes(call_.out), own().bytes});
    if (call_.kind == CollectiveKind::reduce && channel_.rank == call_.root) copy(call_.in, whole());
    ended_ = true;
  }

  // Returns whether a received chunk must stay in staging memory until the round is over: because it is to be added, or
  // because its destination is still being sent.
  bool waits(const Move& move) const {
    if (move.dst != channel_.rank) return false;
    const auto sends_it = [&](const Move& m) {
      return m.round == move.round && m.src == channel_.rank && m.chunk == move.chunk;
    };
    return move.add || std::any_of(moves_.begin() + static_cast<std::ptrdiff_t>(first_),
                                   moves_.begin() + static_cast<std::ptrdiff_t>(last_), sends_it);
  }

  static void copy(const void* from, const ChunkMemory& to) {
    if (to.bytes > 0) std::memmove(to.at, from, static_cast<std::size_t>(to.bytes));
  }

  ChunkMemory piece(const Move& m) const { return pieces_[static_cast<std::size_t>(m.chunk)]; }
  ChunkMemory whole() const { return {writable_bytes(call_.out), call_.counts[0] * width_}; }
  ChunkMemory own() const { return pieces_[static_cast<std::size_t>(channel_.rank)]; }
  std::size_t own_exchange() const { return static_cast<std::size_t>(channel_.rank) * (channel_.size + 1); }

  const Channel& channel_;
  CollectiveCall call_;
  int tag_ = 0;
  std::int64_t width_ = 1;
  std::vector<Move> moves_;           // sends and receives of this rank
  std::size_t first_ = 0, last_ = 0;  // moves of the current round: moves_[first_] to moves_[last_ - 1]
  std::vector<ChunkMemory> pieces_;   // the memory of each chunk of the collective's data
  // The memory in which a reduce_scatter sums this rank's data, so that the caller's `in` stays unchanged.
  std::vector<std::byte> sums_;
  std::vector<std::byte> staging_;
  std::vector<Staged> staged_;
  std::vector<MPI_Request> requests_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Pending> start_moves(Channel& channel, const CollectiveCall& call, const Moves& moves) {
  return std::make_unique<MovesPending>(channel, call, moves);
}

}  // namespace orrery::mpi
