#include "exec/transport/alone_transport.h"

#include <algorithm>

#include "exec/transport/chunks.h"
#include "exec/transport/combine.h"

namespace orrery {
namespace {

class AloneTransport final : public QueuedTransport {
 public:
  AloneTransport(const Rank& rank, std::span<const std::byte> bank) : rank_(rank), bank_(bank) {}

  void start(std::span<const QueuedCall> batch) override {
    for (const QueuedCall& call : batch) {
      if (const auto* c = std::get_if<CollectiveCall>(&call.call))
        collective(*c, *call.queue);
      else
        message(std::get<MessageCall>(call.call), *call.queue);
    }
  }

 private:
  void message(const MessageCall& m, MoveQueue& queue) const {
    if (m.send || bank_.empty()) return;
    const auto size = static_cast<Bytes>(bank_.size());
    for (Bytes at = 0; at < m.bytes; at += size)
      queue.copy(static_cast<std::byte*>(m.data) + at, bank_.data(), std::min(size, m.bytes - at));
  }

  void collective(const CollectiveCall& c, MoveQueue& queue) const {
    const GroupPosition& seat = rank_.position_in(c.group);
    const auto me = static_cast<int>(seat.index);
    const Bytes width = width_of(c.element);
    const auto* in = static_cast<const std::byte*>(c.in);
    auto* out = static_cast<std::byte*>(c.out);
    if (c.kind == CollectiveKind::all_gather) gather(c, me, queue);
    if (c.kind == CollectiveKind::all_to_all) copy(queue, out, in, c.counts[0] * seat.size * width);
    const bool rooted = c.kind == CollectiveKind::broadcast || c.kind == CollectiveKind::reduce;
    if (rooted && me == c.root) copy(queue, out, in, c.counts[0] * width);
    if (c.kind == CollectiveKind::shift) copy(queue, out, in, c.counts[0] * width);
    if (c.kind == CollectiveKind::all_reduce) add_others(c, c.counts[0], queue);
    if (c.kind != CollectiveKind::reduce_scatter) return;
    const std::byte* own = in + elements_before(c, me) * width;
    const std::int64_t n = c.counts[static_cast<std::size_t>(me)];
    if (c.add && n > 0)
      queue.combine(c.element, Reduction::sum, own, out, n);
    else
      copy(queue, out, own, n * width);
    add_others(c, n, queue);
  }

  // Adds the numbers of bank_, which are distributed like weights, to the n elements of a bf16 sum; they take the place
  // of the other ranks' data, since this rank runs alone.
  void add_others(const CollectiveCall& c, std::int64_t n, MoveQueue& queue) const {
    const std::int64_t most = static_cast<std::int64_t>(bank_.size()) / width_of(c.element);
    if (c.element != Element::bf16 || c.reduction != Reduction::sum || most == 0) return;
    auto* out = static_cast<std::byte*>(c.out);
    for (std::int64_t at = 0; at < n; at += most)
      queue.combine(c.element, Reduction::sum, bank_.data(), out + at * width_of(c.element), std::min(most, n - at));
  }

  static void gather(const CollectiveCall& c, int me, MoveQueue& queue) {
    const Bytes width = width_of(c.element);
    const std::int64_t own = c.counts[static_cast<std::size_t>(me)];
    for (int m = 0; m < static_cast<int>(c.counts.size()); ++m) {
      copy(queue, static_cast<std::byte*>(c.out) + elements_before(c, m) * width, static_cast<const std::byte*>(c.in),
           std::min(own, c.counts[static_cast<std::size_t>(m)]) * width);
    }
  }

  static void copy(MoveQueue& queue, std::byte* to, const std::byte* from, Bytes bytes) {
    if (bytes > 0 && to != from) queue.copy(to, from, bytes);
  }

  const Rank& rank_;
  std::span<const std::byte> bank_;
};

}  // namespace

std::unique_ptr<QueuedTransport> alone_transport(const Rank& rank, std::span<const std::byte> bank) {
  return std::make_unique<AloneTransport>(rank, bank);
}

}  // namespace orrery
