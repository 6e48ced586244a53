#include <cstring>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "exec/mpi/check.h"
#include "exec/mpi/transport_parts.h"
#include "exec/transport/combine.h"
#include "models/base/error.h"

namespace orrery::mpi {
namespace {

int count(std::int64_t elements) {
  if (elements > std::numeric_limits<int>::max()) {
    throw Error(fmt::format(
        "transport: a library collective of {} elements is more than an MPI count holds (2147483647); use smaller "
        "buckets or a named algorithm",
        elements));
  }
  return static_cast<int>(elements);
}

MPI_Datatype type_of(Element element) {
  switch (element) {
    case Element::f32:
      return MPI_FLOAT;
    case Element::bf16:
    case Element::fp16:
      return MPI_UINT16_T;
    case Element::f64:
      return MPI_DOUBLE;
    case Element::bytes:
      return MPI_BYTE;
  }
  return MPI_BYTE;
}

MPI_Op op_of(const CollectiveCall& call, const Operations& operations) {
  const bool sum = call.reduction == Reduction::sum;
  if (call.element == Element::bf16) return sum ? operations.bf16_sum : operations.bf16_maximum;
  if (call.element == Element::fp16) return sum ? operations.fp16_sum : operations.fp16_maximum;
  return sum ? MPI_SUM : MPI_MAX;
}

// An MPI collective in progress: its request, and the lists of counts that MPI reads until the request is done.
class LibraryPending final : public Pending {
 public:
  LibraryPending(Channel& channel, const Operations& operations, const CollectiveCall& call) : requests_(1) {
    const MPI_Datatype type = type_of(call.element);
    const MPI_Op op = op_of(call, operations);
    MPI_Request* request = requests_.data();
    const int n = count(call.counts[0]);
    switch (call.kind) {
      case CollectiveKind::all_reduce:
        ORRERY_CHECK_MPI(MPI_Iallreduce(MPI_IN_PLACE, call.out, n, type, op, channel.comm, request));
        break;
      case CollectiveKind::broadcast:
        if (channel.rank == call.root && call.in != call.out)
          std::memcpy(call.out, call.in, static_cast<std::size_t>(n * width_of(call.element)));
        ORRERY_CHECK_MPI(MPI_Ibcast(call.out, n, type, call.root, channel.comm, request));
        break;
      case CollectiveKind::reduce: {
        const bool root = channel.rank == call.root;
        const void* in = root && call.in == call.out ? MPI_IN_PLACE : call.in;
        ORRERY_CHECK_MPI(MPI_Ireduce(in, root ? call.out : nullptr, n, type, op, call.root, channel.comm, request));
        break;
      }
      case CollectiveKind::all_gather:
        list(call.counts);
        take_own_place(channel, call);
        ORRERY_CHECK_MPI(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, call.out, counts_.data(), offsets_.data(), type,
                                         channel.comm, request));
        break;
      case CollectiveKind::reduce_scatter:
        list(call.counts);
        ORRERY_CHECK_MPI(MPI_Ireduce_scatter(call.in, call.out, counts_.data(), type, op, channel.comm, request));
        break;
      case CollectiveKind::all_to_all:
        if (!call.places.empty()) {
          requests_.clear();
          exchange_placed(channel, call);
          break;
        }
        if (!call.received.empty()) {
          list(call.counts);
          list(call.received, received_, received_offsets_);
          ORRERY_CHECK_MPI(MPI_Ialltoallv(call.in, counts_.data(), offsets_.data(), type, call.out, received_.data(),
                                          received_offsets_.data(), type, channel.comm, request));
          break;
        }
        count(call.counts[0] * channel.size);
        ORRERY_CHECK_MPI(MPI_Ialltoall(call.in, n, type, call.out, n, type, channel.comm, request));
        break;
      case CollectiveKind::gather:
      case CollectiveKind::scatter:
      case CollectiveKind::push:
      case CollectiveKind::pull:
        break;  // gathers, scatters, pushes and pulls are sends and receives, not library calls
      case CollectiveKind::shift:
        requests_.clear();
        pass_on(channel, call);
        break;
    }
  }

  bool done() override { return all_done(requests_); }

 private:
  void list(const std::vector<std::int64_t>& counts) { list(counts, counts_, offsets_); }
  static void list(const std::vector<std::int64_t>& counts, std::vector<int>& to, std::vector<int>& offsets) {
    std::int64_t offset = 0;
    for (const std::int64_t c : counts) {
      offsets.push_back(count(offset));
      to.push_back(count(c));
      offset += c;
    }
    count(offset);
  }

  // Sends and receives the pieces of an all-to-all that lie at places of their own. A send ends only once it is
  // received.
  void exchange_placed(Channel& channel, const CollectiveCall& call) {
    const int tag = next_tag(channel);
    const Bytes width = width_of(call.element);
    for (int m = 0; m < channel.size; ++m) {
      const auto i = static_cast<std::size_t>(m);
      if (call.received[i] > 0)
        receive(channel, m, tag, static_cast<std::byte*>(call.out) + call.received_places[i] * width,
                call.received[i] * width, requests_);
      if (call.counts[i] > 0)
        send(channel, m, tag, static_cast<const std::byte*>(call.in) + call.places[i] * width, call.counts[i] * width,
             requests_);
    }
  }

  void pass_on(Channel& channel, const CollectiveCall& call) {
    const int tag = next_tag(channel), before = (channel.rank + channel.size - 1) % channel.size;
    const Bytes bytes = call.counts[0] * width_of(call.element);
    receive(channel, before, tag, static_cast<std::byte*>(call.out), bytes, requests_);
    send(channel, (channel.rank + 1) % channel.size, tag, static_cast<const std::byte*>(call.in), bytes, requests_);
  }

  // Copies this rank's own piece into `out`. MPI_IN_PLACE cannot replace the copy, because MPI requires that all
  // members of the group pass it, or none.
  void take_own_place(const Channel& channel, const CollectiveCall& call) const {
    const std::int64_t width = width_of(call.element);
    const auto own = static_cast<std::size_t>(channel.rank);
    if (counts_[own] == 0) return;
    std::memmove(static_cast<std::byte*>(call.out) + offsets_[own] * width, call.in,
                 static_cast<std::size_t>(counts_[own] * width));
  }

  std::vector<MPI_Request> requests_;
  std::vector<int> counts_, offsets_, received_, received_offsets_;
};

}  // namespace

std::unique_ptr<Pending> start_library(Channel& channel, const Operations& operations, const CollectiveCall& call) {
  return std::make_unique<LibraryPending>(channel, operations, call);
}

}  // namespace orrery::mpi
