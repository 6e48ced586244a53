#include "exec/mpi/transport.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "exec/mpi/chains.h"
#include "exec/mpi/check.h"
#include "exec/mpi/transport_parts.h"
#include "exec/transport/chunks.h"
#include "exec/transport/combine.h"
#include "models/base/error.h"

namespace orrery {
namespace mpi {
namespace {

constexpr Bytes kLongestMessage = Bytes{1} << 30;  // most bytes sent in one MPI call, whose count is an int

template <class Start>
void in_parts(Bytes bytes, const Start& start) {
  Bytes first = 0;
  do {
    const Bytes part = std::min(bytes - first, kLongestMessage);
    start(first, static_cast<int>(part));
    first += part;
  } while (first < bytes);
}

}  // namespace

void send(const Channel& channel, int peer, int tag, const std::byte* data, Bytes bytes,
          std::vector<MPI_Request>& requests) {
  in_parts(bytes, [&](Bytes first, int part) {
    MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
    ORRERY_CHECK_MPI(MPI_Issend(data + first, part, MPI_BYTE, peer, tag, channel.comm, &request));
  });
}

void receive(const Channel& channel, int peer, int tag, std::byte* data, Bytes bytes,
             std::vector<MPI_Request>& requests) {
  in_parts(bytes, [&](Bytes first, int part) {
    MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
    ORRERY_CHECK_MPI(MPI_Irecv(data + first, part, MPI_BYTE, peer, tag, channel.comm, &request));
  });
}

bool all_done(std::vector<MPI_Request>& requests) {
  for (; !requests.empty(); requests.pop_back()) {
    int done = 0;
    ORRERY_CHECK_MPI(MPI_Test(&requests.back(), &done, MPI_STATUS_IGNORE));
    if (done == 0) return false;
  }
  return true;
}

Channel make_channel(MPI_Comm world, int rank, const GroupTable& table) {
  Channel channel;
  const std::int32_t group = table.member_of[static_cast<std::size_t>(rank)];
  const auto members = table.groups[static_cast<std::size_t>(group)];
  channel.members.assign(members.begin(), members.end());
  channel.size = static_cast<int>(channel.members.size());
  channel.rank =
      static_cast<int>(std::find(channel.members.begin(), channel.members.end(), rank) - channel.members.begin());
  ORRERY_CHECK_MPI(MPI_Comm_split(world, group, channel.rank, &channel.comm));
  ORRERY_CHECK_MPI(MPI_Comm_set_errhandler(channel.comm, MPI_ERRORS_RETURN));
  return channel;
}

}  // namespace mpi

namespace {

using mpi::Channel;

template <Element element, Reduction reduction>
void combine_halves(void* from, void* into, int* elements, MPI_Datatype*) {
  combine(element, reduction, from, into, *elements);
}

class MessagePending final : public Pending {
 public:
  MessagePending(const Channel& channel, int peer, const MessageCall& call) {
    auto* data = static_cast<std::byte*>(call.data);
    if (call.send) {
      mpi::send(channel, peer, mpi::kMessageTag, data, call.bytes, requests_);
    } else {
      mpi::receive(channel, peer, mpi::kMessageTag, data, call.bytes, requests_);
    }
  }
  bool done() override { return mpi::all_done(requests_); }

 private:
  std::vector<MPI_Request> requests_;
};

// A collective that first writes its result to separate memory; when it is done, the result is added to `out` or copied
// there.
class LandingPending final : public Pending {
 public:
  using Start = std::function<std::unique_ptr<Pending>(const CollectiveCall&)>;

  LandingPending(const CollectiveCall& call, std::int64_t elements, const Start& start)
      : call_(call), elements_(elements), landing_(static_cast<std::size_t>(elements * width_of(call.element))) {
    CollectiveCall inner = call;
    inner.out = landing_.data();
    inner.add = false;
    pending_ = start(inner);
  }

  bool done() override {
    if (pending_ == nullptr) return true;
    if (!pending_->done()) return false;
    pending_.reset();
    if (call_.add) {
      combine(call_.element, Reduction::sum, landing_.data(), call_.out, elements_);
    } else if (!landing_.empty()) {
      std::memcpy(call_.out, landing_.data(), landing_.size());
    }
    return true;
  }

 private:
  CollectiveCall call_;
  std::int64_t elements_ = 0;
  std::vector<std::byte> landing_;
  std::unique_ptr<Pending> pending_;
};

std::int64_t elements_in_out(const Channel& channel, const CollectiveCall& call) {
  switch (call.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
    case CollectiveKind::push:
    case CollectiveKind::pull:
      return mpi::before_piece(call.counts, static_cast<int>(call.counts.size()));
    case CollectiveKind::reduce_scatter:
      return call.counts[static_cast<std::size_t>(channel.rank)];
    case CollectiveKind::all_to_all:
      return call.counts[0] * channel.size;
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::shift:
      return call.counts[0];
  }
  return 0;
}

bool out_lies_in_in(const Channel& channel, const CollectiveCall& call) {
  const auto* begin = static_cast<const std::byte*>(call.in);
  const auto* end = begin + mpi::before_piece(call.counts, channel.size) * width_of(call.element);
  return std::less_equal<>()(begin, call.out) && std::less<>()(call.out, end);
}

bool by_library(const Channel& channel, const CollectiveCall& call) {
  return call.algorithm == "library" && channel.size > 1;
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm world, const Plan& plan, LostRanks* lost) {
    int ranks = 0, rank = 0;
    ORRERY_CHECK_MPI(MPI_Comm_size(world, &ranks));
    ORRERY_CHECK_MPI(MPI_Comm_rank(world, &rank));
    if (ranks != plan.ranks) {
      throw Error(
          fmt::format("mpi: the plan has {} ranks, {} were started; use mpirun -n {}", plan.ranks, ranks, plan.ranks));
    }
    constexpr Reduction kSum = Reduction::sum, kMaximum = Reduction::maximum;
    ORRERY_CHECK_MPI(MPI_Op_create(combine_halves<Element::bf16, kSum>, 1, &operations_.bf16_sum));
    ORRERY_CHECK_MPI(MPI_Op_create(combine_halves<Element::bf16, kMaximum>, 1, &operations_.bf16_maximum));
    ORRERY_CHECK_MPI(MPI_Op_create(combine_halves<Element::fp16, kSum>, 1, &operations_.fp16_sum));
    ORRERY_CHECK_MPI(MPI_Op_create(combine_halves<Element::fp16, kMaximum>, 1, &operations_.fp16_maximum));
    for (const ChannelKey& key : channels_of(plan)) {
      channels_.emplace(key, mpi::make_channel(world, rank, plan.dimensions[static_cast<std::size_t>(key.first)]));
    }
    if (plan.copies > 1) chains_ = std::make_unique<mpi::Chains>(world, plan, lost != nullptr ? *lost : nobody_);
  }

  ~MpiTransport() override {
    for (auto& [key, channel] : channels_) MPI_Comm_free(&channel.comm);
    for (MPI_Op* op :
         {&operations_.bf16_sum, &operations_.bf16_maximum, &operations_.fp16_sum, &operations_.fp16_maximum})
      MPI_Op_free(op);
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  std::unique_ptr<Pending> start(LaneKind lane, const CollectiveCall& call) override {
    Channel& channel = at(call.group, lane);
    check_call(call, channel.size);
    if (call.copies > 1) return chains_->start(call);
    const auto start_it = [&](const CollectiveCall& c) -> std::unique_ptr<Pending> {
      const bool by_nodes = c.algorithm.starts_with("hierarchical") && channel.size > 1;
      if (by_nodes) return c.sums ? mpi::start_token_sums(channel, c) : mpi::start_two_stages(channel, c);
      if (is_star(c.kind)) return mpi::start_moves(channel, c, moves_of(c, channel.size));
      if (by_library(channel, c)) return mpi::start_library(channel, operations_, c);
      return mpi::start_moves(channel, c, moves_of(c, channel.size));
    };
    // MPI forbids that the result overlaps the data being sent.
    const bool overlaps =
        by_library(channel, call) && call.kind == CollectiveKind::reduce_scatter && out_lies_in_in(channel, call);
    if (!call.add && !overlaps) return start_it(call);
    return std::make_unique<LandingPending>(call, elements_in_out(channel, call), start_it);
  }

  std::unique_ptr<Pending> start(LaneKind lane, const MessageCall& call) override {
    const Channel& channel = at(Dimension::pipeline, message_lane(lane));
    const auto peer = std::find(channel.members.begin(), channel.members.end(), call.peer);
    if (peer == channel.members.end()) {
      throw Error(fmt::format("transport: rank {} is not in this rank's pipeline group", call.peer));
    }
    return std::make_unique<MessagePending>(channel, static_cast<int>(peer - channel.members.begin()), call);
  }

  void finish() override {
    if (chains_) chains_->finish();
  }

 private:
  Channel& at(Dimension group, LaneKind lane) {
    const auto it = channels_.find({group, lane});
    if (it == channels_.end()) {
      throw Error(
          fmt::format("transport: the plan moves nothing in {} groups on lane {}", name_of(group), name_of(lane)));
    }
    return it->second;
  }

  mpi::Operations operations_;
  std::map<ChannelKey, Channel> channels_;
  LostRanks nobody_{""};
  std::unique_ptr<mpi::Chains> chains_;
};

}  // namespace

std::unique_ptr<Transport> mpi_transport(MPI_Comm world, const Plan& plan, LostRanks* lost) {
  return std::make_unique<MpiTransport>(world, plan, lost);
}

}  // namespace orrery
