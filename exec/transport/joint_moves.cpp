#include "exec/transport/joint_moves.h"

#include <algorithm>

#include <fmt/format.h>

#include "exec/transport/chunks.h"
#include "exec/transport/combine.h"
#include "models/base/error.h"

namespace orrery {
namespace {

constexpr Bytes kAlignment = 512;  // alignment in bytes of every piece of scratch memory

Bytes aligned(Bytes bytes) { return ceil_div(bytes, kAlignment) * kAlignment; }

class JointMoves {
 public:
  JointMoves(std::span<const CollectiveCall* const> calls, MoveQueue& queue)
      : calls_(calls), queue_(queue), first_(*calls[0]), size_(static_cast<int>(calls.size())) {
    for (const CollectiveCall* c : calls) check(*c);
    moves_ = moves_of(named(), size_);
  }

  void run() {
    take_scratch();
    for (int m = 0; m < size_; ++m) begin(m);
    for (auto at = moves_.moves.begin(); at != moves_.moves.end();) {
      const auto end = std::find_if(at, moves_.moves.end(), [&](const Move& x) { return x.round != at->round; });
      run_round({at, end});
      at = end;
    }
    for (int m = 0; m < size_; ++m) end(m);
  }

 private:
  std::int64_t width() const { return width_of(first_.element); }

  void check(const CollectiveCall& c) const {
    check_call(c, size_);
    const bool same = c.kind == first_.kind && c.reduction == first_.reduction && c.element == first_.element &&
                      c.algorithm == first_.algorithm && c.counts == first_.counts && c.add == first_.add &&
                      c.root == first_.root;
    if (!same)
      throw Error(fmt::format("transport: members of one group start different collectives at once, {} and {}",
                              name_of(first_.kind), name_of(c.kind)));
  }

  CollectiveCall named() const {
    CollectiveCall call = first_;
    if (call.algorithm != "library") return call;
    const auto all = collective_algorithms();
    const auto it = std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.kind == call.kind; });
    call.algorithm = it->name;
    return call;
  }

  Bytes whole() const { return elements_before(first_, static_cast<int>(first_.counts.size())) * width(); }
  bool scatters() const { return first_.kind == CollectiveKind::reduce_scatter; }
  // Returns whether the result goes to scratch memory first because it is to be added to `out` (CollectiveCall::add).
  // For a reduce_scatter, which uses scratch memory in any case, it returns false.
  bool lands() const { return first_.add && !scatters(); }
  Bytes result_bytes() const { return first_.kind == CollectiveKind::all_to_all ? whole() * size_ : whole(); }

  void take_scratch() {
    const Bytes apart = scatters() ? aligned(whole()) : lands() ? aligned(result_bytes()) : 0;
    Bytes largest = 0;  // bytes of the largest chunk that a round may copy to scratch memory
    std::vector<CollectiveCall> used;
    for (const CollectiveCall* c : calls_) used.push_back(*c);
    const Bytes chunk = aligned(ceil_div(std::max<Bytes>(whole(), 1), std::max(moves_.chunks, 1)));
    largest = scatters() || first_.kind == CollectiveKind::all_gather ? aligned(whole()) : chunk;
    if (first_.kind == CollectiveKind::all_to_all || first_.kind == CollectiveKind::shift) largest = aligned(whole());
    std::byte* at = queue_.scratch(apart * size_ + largest * most_waiting());
    for (int m = 0; m < size_; ++m, at += apart) {
      if (lands()) used[static_cast<std::size_t>(m)].out = at;
      used_.push_back(used[static_cast<std::size_t>(m)]);
      chunks_.push_back(chunks_of(used_.back(), m, size_, moves_.chunks, at));
      sums_.push_back(at);
    }
    staging_ = at;
  }

  int most_waiting() const {
    int most = 0, now = 0, round = -1;
    for (const Move& m : moves_.moves) {
      now = m.round == round ? now + 1 : 1;
      round = m.round;
      most = std::max(most, now);
    }
    return most;
  }

  void copy(std::byte* to, const void* from, Bytes bytes) {
    if (bytes > 0 && to != from) queue_.copy(to, static_cast<const std::byte*>(from), bytes);
  }

  void begin(int m) {
    const CollectiveCall& c = used_[static_cast<std::size_t>(m)];
    auto& chunks = chunks_[static_cast<std::size_t>(m)];
    if (scatters()) copy(sums_[static_cast<std::size_t>(m)], c.in, whole());
    if (c.kind == CollectiveKind::shift && size_ == 1) copy(static_cast<std::byte*>(c.out), c.in, whole());
    if (c.kind == CollectiveKind::broadcast && m == c.root) copy(static_cast<std::byte*>(c.out), c.in, whole());
    if (c.kind == CollectiveKind::all_gather) copy(chunks[static_cast<std::size_t>(m)].at, c.in, own(m).bytes);
    if (c.kind == CollectiveKind::all_to_all)
      copy(static_cast<std::byte*>(c.out) + m * whole(), static_cast<const std::byte*>(c.in) + m * whole(), whole());
  }

  const ChunkMemory& own(int m) const { return chunks_[static_cast<std::size_t>(m)][static_cast<std::size_t>(m)]; }
  const ChunkMemory& chunk(int member, int number) const {
    return chunks_[static_cast<std::size_t>(member)][static_cast<std::size_t>(number)];
  }

  // Runs the moves (sends of chunks between two members) of one round. All moves read the data as they were before the
  // round, so a chunk that another move of the round overwrites is copied to scratch memory first.
  void run_round(std::span<const Move> round) {
    std::vector<const std::byte*> from;
    std::byte* free = staging_;
    for (const Move& m : round) {
      const ChunkMemory& source = chunk(m.src, m.chunk);
      const bool overwritten =
          std::any_of(round.begin(), round.end(), [&](const Move& x) { return x.dst == m.src && x.chunk == m.chunk; });
      from.push_back(overwritten ? free : source.at);
      if (!overwritten) continue;
      copy(free, source.at, source.bytes);
      free += aligned(source.bytes);
    }
    for (std::size_t i = 0; i < round.size(); ++i) {
      const ChunkMemory& to = chunk(round[i].dst, round[i].chunk);
      if (!round[i].add) {
        copy(to.at, from[i], to.bytes);
      } else if (to.bytes > 0) {
        queue_.combine(first_.element, first_.reduction, from[i], to.at, to.bytes / width());
      }
    }
  }

  void end(int m) {
    const CollectiveCall& given = *calls_[static_cast<std::size_t>(m)];
    auto* out = static_cast<std::byte*>(given.out);
    if (given.kind == CollectiveKind::reduce && m == given.root) copy(out, given.in, whole());
    const std::byte* result = scatters() ? own(m).at : sums_[static_cast<std::size_t>(m)];
    const Bytes bytes = scatters() ? own(m).bytes : result_bytes();
    if (given.add && bytes > 0) {
      queue_.combine(first_.element, Reduction::sum, result, out, bytes / width());
    } else if (scatters()) {
      copy(out, result, bytes);
    }
  }

  std::span<const CollectiveCall* const> calls_;
  MoveQueue& queue_;
  const CollectiveCall& first_;
  int size_;
  Moves moves_;
  // The calls of the group's members as they are carried out. If the result of a call goes to scratch memory first, its
  // `out` here is an address in that memory.
  std::vector<CollectiveCall> used_;
  std::vector<std::vector<ChunkMemory>> chunks_;
  std::vector<std::byte*> sums_;  // for each member, scratch memory for its results
  std::byte* staging_ = nullptr;
};

}  // namespace

void carry_out(std::span<const CollectiveCall* const> calls, MoveQueue& queue) { JointMoves(calls, queue).run(); }

}  // namespace orrery
