#include "exec/cuda/nccl_transport.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "exec/cuda/check.h"
#include "exec/cuda/queue.h"
#include "exec/transport/chunks.h"
#include "exec/transport/combine.h"
#include "models/base/error.h"

namespace orrery::cuda {
namespace {

// Owns an NCCL communicator. The destructor aborts it, ignoring errors, unless end() was called before.
class Communicator {
 public:
  Communicator() = default;
  ~Communicator() {
    if (comm_ != nullptr) ncclCommAbort(comm_);
  }
  Communicator(Communicator&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  Communicator& operator=(Communicator&&) = delete;

  ncclComm_t* address() { return &comm_; }
  operator ncclComm_t() const { return comm_; }
  void end() { ncclCommDestroy(std::exchange(comm_, nullptr)); }

 private:
  ncclComm_t comm_ = nullptr;
};

// An NCCL group (from ncclGroupStart() to ncclGroupEnd()). It is ended even if a call inside it throws, because later
// calls of this thread would otherwise join it.
class CallGroup {
 public:
  CallGroup() { ORRERY_CHECK_NCCL(ncclGroupStart()); }
  ~CallGroup() {
    if (open_) ncclGroupEnd();
  }
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;
  void end() {
    open_ = false;
    ORRERY_CHECK_NCCL(ncclGroupEnd());
  }

 private:
  bool open_ = true;
};

// The communicator of one group of ranks on one lane (queue of tasks), and this rank's index in the group.
struct Channel {
  Communicator comm;
  int rank = 0;
  std::vector<std::int32_t> members;
  int size() const { return static_cast<int>(members.size()); }
};

Channel make_channel(Rendezvous& rendezvous, std::int64_t rank, const ChannelKey& key, const GroupTable& table) {
  Channel channel;
  const std::int32_t group = table.member_of[static_cast<std::size_t>(rank)];
  const auto members = table.groups[static_cast<std::size_t>(group)];
  channel.members.assign(members.begin(), members.end());
  channel.rank =
      static_cast<int>(std::find(channel.members.begin(), channel.members.end(), rank) - channel.members.begin());
  const std::string name =
      fmt::format("nccl {} {} {}", static_cast<int>(key.first), static_cast<int>(key.second), group);
  ncclUniqueId id;
  if (channel.rank == 0) {
    ORRERY_CHECK_NCCL(ncclGetUniqueId(&id));
    rendezvous.set(name, std::string(id.internal, sizeof id.internal));
  }
  const std::string told = rendezvous.get(name);
  if (told.size() != sizeof id.internal) throw Error("rendezvous: NCCL's id is not whole", 1);
  std::memcpy(id.internal, told.data(), told.size());
  ORRERY_CHECK_NCCL(ncclCommInitRank(channel.comm.address(), channel.size(), id, channel.rank));
  return channel;
}

ncclDataType_t type_of(Element element) {
  switch (element) {
    case Element::f32:
      return ncclFloat32;
    case Element::bf16:
      return ncclBfloat16;
    case Element::fp16:
      return ncclFloat16;
    case Element::f64:
      return ncclFloat64;
    case Element::bytes:
      return ncclUint8;
  }
  return ncclUint8;
}

// Converts a number of elements to the type of NCCL's count arguments.
std::size_t size(std::int64_t elements) { return static_cast<std::size_t>(elements); }

class NcclTransport final : public QueuedTransport {
 public:
  NcclTransport(Rendezvous& rendezvous, std::int64_t rank, const Plan& plan) {
    for (const ChannelKey& key : channels_of(plan))
      channels_.emplace(key, make_channel(rendezvous, rank, key, plan.dimensions[static_cast<std::size_t>(key.first)]));
  }

  ~NcclTransport() override {
    // After a failure communicators are aborted, because other members may wait for calls that never come.
    const bool unwinds = std::uncaught_exceptions() > exceptions_;
    if (!ended_well_ || unwinds) return;
    for (auto& [key, channel] : channels_) channel.comm.end();
  }
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  // Starts a batch of transfers. NCCL's own collectives and messages form one NCCL group; collectives that are made of
  // chunk moves (sends and receives between two members), or whose result goes to scratch memory first, are started one
  // after the other.
  void start(std::span<const QueuedCall> batch) override {
    ended_well_ = false;
    CallGroup group;
    for (const QueuedCall& call : batch) {
      if (joins(call)) start_one(call);
    }
    group.end();
    for (const QueuedCall& call : batch) {
      if (!joins(call)) start_apart(call);
    }
    ended_well_ = true;
  }

  void check() override {
    for (const auto& [key, channel] : channels_) {
      ncclResult_t failure = ncclSuccess;
      ORRERY_CHECK_NCCL(ncclCommGetAsyncError(channel.comm, &failure));
      if (failure == ncclSuccess || failure == ncclInProgress) continue;
      ended_well_ = false;
      throw Error(fmt::format("NCCL in {} groups on lane {}: {}", name_of(key.first), name_of(key.second),
                              ncclGetLastError(channel.comm)),
                  1);
    }
  }

 private:
  static bool joins(const QueuedCall& call) {
    const auto* c = std::get_if<CollectiveCall>(&call.call);
    return c == nullptr || (c->algorithm == "library" && !c->add && c->kind != CollectiveKind::all_to_all &&
                            c->kind != CollectiveKind::shift);
  }

  const Channel& at(Dimension group, LaneKind lane) const {
    const auto it = channels_.find({group, lane});
    if (it == channels_.end())
      throw Error(
          fmt::format("transport: the plan moves nothing in {} groups on lane {}", name_of(group), name_of(lane)));
    return it->second;
  }

  void start_one(const QueuedCall& call) const {
    const cudaStream_t stream = static_cast<CudaQueue*>(call.queue)->stream();
    if (const auto* m = std::get_if<MessageCall>(&call.call)) return message(call.lane, *m, stream);
    const auto& c = std::get<CollectiveCall>(call.call);
    const Channel& channel = at(c.group, call.lane);
    check_call(c, channel.size());
    library(channel, c, static_cast<std::byte*>(c.out), stream);
  }

  void message(LaneKind lane, const MessageCall& m, cudaStream_t stream) const {
    const Channel& channel = at(Dimension::pipeline, message_lane(lane));
    const auto peer = std::find(channel.members.begin(), channel.members.end(), m.peer);
    if (peer == channel.members.end())
      throw Error(fmt::format("transport: rank {} is not in this rank's pipeline group", m.peer));
    const int to = static_cast<int>(peer - channel.members.begin());
    const std::size_t bytes = size(m.bytes);
    if (m.send)
      ORRERY_CHECK_NCCL(ncclSend(m.data, bytes, ncclUint8, to, channel.comm, stream));
    else
      ORRERY_CHECK_NCCL(ncclRecv(m.data, bytes, ncclUint8, to, channel.comm, stream));
  }

  // Calls NCCL's own collective, which overwrites `out`; if the result is to be added (CollectiveCall::add), the caller
  // does so.
  void library(const Channel& channel, const CollectiveCall& c, std::byte* out, cudaStream_t stream) const {
    const ncclRedOp_t op = c.reduction == Reduction::sum ? ncclSum : ncclMax;
    const ncclDataType_t type = type_of(c.element);
    switch (c.kind) {
      case CollectiveKind::all_reduce:
        ORRERY_CHECK_NCCL(ncclAllReduce(c.in, out, size(c.counts[0]), type, op, channel.comm, stream));
        return;
      case CollectiveKind::broadcast:
        ORRERY_CHECK_NCCL(ncclBroadcast(c.in, out, size(c.counts[0]), type, c.root, channel.comm, stream));
        return;
      case CollectiveKind::reduce:
        ORRERY_CHECK_NCCL(ncclReduce(c.in, out, size(c.counts[0]), type, op, c.root, channel.comm, stream));
        return;
      case CollectiveKind::all_gather:
      case CollectiveKind::reduce_scatter:
        return pieces(channel, c, out, stream);
      case CollectiveKind::all_to_all:
        return exchange(channel, c, out, stream);
      case CollectiveKind::shift:
        return pass_on(channel, c, out, stream);
      case CollectiveKind::gather:
      case CollectiveKind::scatter:
      case CollectiveKind::push:
      case CollectiveKind::pull:
        return;  // never reached: check_executable() refuses plans with these collectives
    }
  }

  // Runs an all-gather or reduce-scatter: one NCCL call if all pieces are equal; else one broadcast or reduction per
  // piece.
  void pieces(const Channel& channel, const CollectiveCall& c, std::byte* out, cudaStream_t stream) const {
    const bool gathers = c.kind == CollectiveKind::all_gather;
    const bool equal = std::all_of(c.counts.begin(), c.counts.end(), [&](auto n) { return n == c.counts[0]; });
    const ncclDataType_t type = type_of(c.element);
    const ncclRedOp_t op = c.reduction == Reduction::sum ? ncclSum : ncclMax;
    const std::size_t n = size(c.counts[0]);
    if (equal && gathers) ORRERY_CHECK_NCCL(ncclAllGather(c.in, out, n, type, channel.comm, stream));
    if (equal && !gathers) ORRERY_CHECK_NCCL(ncclReduceScatter(c.in, out, n, type, op, channel.comm, stream));
    if (equal) return;
    CallGroup group;
    for (int m = 0; m < channel.size(); ++m) {
      const std::size_t count = size(c.counts[static_cast<std::size_t>(m)]);
      if (count == 0) continue;
      const Bytes place = elements_before(c, m) * width_of(c.element);
      if (gathers)
        ORRERY_CHECK_NCCL(ncclBroadcast(c.in, out + place, count, type, m, channel.comm, stream));
      else
        ORRERY_CHECK_NCCL(
            ncclReduce(static_cast<const std::byte*>(c.in) + place, out, count, type, op, m, channel.comm, stream));
    }
    group.end();
  }

  void exchange(const Channel& channel, const CollectiveCall& c, std::byte* out, cudaStream_t stream) const {
    const Bytes bytes = c.counts[0] * width_of(c.element);
    CallGroup group;
    for (int m = 0; m < channel.size(); ++m) {
      const auto* in = static_cast<const std::byte*>(c.in) + m * bytes;
      ORRERY_CHECK_NCCL(ncclSend(in, size(bytes), ncclUint8, m, channel.comm, stream));
      ORRERY_CHECK_NCCL(ncclRecv(out + m * bytes, size(bytes), ncclUint8, m, channel.comm, stream));
    }
    group.end();
  }

  void pass_on(const Channel& channel, const CollectiveCall& c, std::byte* out, cudaStream_t stream) const {
    const std::size_t bytes = size(c.counts[0] * width_of(c.element));
    const int next = (channel.rank + 1) % channel.size(), before = (channel.rank + channel.size() - 1) % channel.size();
    CallGroup group;
    ORRERY_CHECK_NCCL(ncclSend(c.in, bytes, ncclUint8, next, channel.comm, stream));
    ORRERY_CHECK_NCCL(ncclRecv(out, bytes, ncclUint8, before, channel.comm, stream));
    group.end();
  }

  // Starts a collective that is made of chunk moves (sends and receives between two members), or whose result goes to
  // scratch memory and is then added to call.out.
  void start_apart(const QueuedCall& call) const {
    const auto& c = std::get<CollectiveCall>(call.call);
    const Channel& channel = at(c.group, call.lane);
    check_call(c, channel.size());
    auto& queue = *static_cast<CudaQueue*>(call.queue);
    if (c.algorithm != "library") return moves(channel, c, queue);
    const std::int64_t n = result_elements(c, channel);
    std::byte* out = c.add ? queue.scratch(n * width_of(c.element)) : static_cast<std::byte*>(c.out);
    library(channel, c, out, queue.stream());
    if (c.add && n > 0) queue.combine(c.element, Reduction::sum, out, static_cast<std::byte*>(c.out), n);
  }

  static std::int64_t result_elements(const CollectiveCall& c, const Channel& channel) {
    if (c.kind == CollectiveKind::reduce_scatter) return c.counts[static_cast<std::size_t>(channel.rank)];
    if (c.kind == CollectiveKind::all_to_all) return c.counts[0] * channel.size();
    return elements_before(c, static_cast<int>(c.counts.size()));
  }

  // Carries out a collective as chunk moves (sends and receives between two members), each round one NCCL group.
  // Received chunks stay in scratch memory until the round is over.
  void moves(const Channel& channel, const CollectiveCall& given, CudaQueue& queue) const {
    const Moves all = moves_of(given, channel.size());
    CollectiveCall c = given;
    const Bytes width = width_of(c.element);
    const bool scatters = c.kind == CollectiveKind::reduce_scatter;
    const Bytes whole = elements_before(c, static_cast<int>(c.counts.size())) * width;
    const Bytes result = result_elements(c, channel) * width;
    std::byte* sums = queue.scratch(3 * std::max(whole, result));
    std::byte* staging = sums + std::max(whole, result);
    if (c.add && !scatters) c.out = sums;
    const std::vector<ChunkMemory> chunks = chunks_of(c, channel.rank, channel.size(), all.chunks, sums);
    const auto own = static_cast<std::size_t>(channel.rank);
    const auto* in = static_cast<const std::byte*>(c.in);
    auto* out = static_cast<std::byte*>(c.out);
    // roots: whether this rank is the root of a broadcast or reduce. The `out` of a root may be another buffer than its
    // `in`, so a broadcast copies `in` there.
    const bool roots = channel.rank == c.root;
    if (scatters) copy(queue, sums, in, whole);
    if (c.kind == CollectiveKind::broadcast && roots) copy(queue, out, in, whole);
    if (c.kind == CollectiveKind::all_gather) copy(queue, chunks[own].at, in, chunks[own].bytes);
    if (c.kind == CollectiveKind::shift && all.moves.empty()) copy(queue, static_cast<std::byte*>(c.out), in, whole);
    if (c.kind == CollectiveKind::all_to_all) copy(queue, out + channel.rank * whole, in + channel.rank * whole, whole);
    for (auto at = all.moves.begin(); at != all.moves.end();) {
      const auto end = std::find_if(at, all.moves.end(), [&](const Move& m) { return m.round != at->round; });
      run_round(channel, c, {at, end}, chunks, staging, queue);
      at = end;
    }
    if (c.kind == CollectiveKind::reduce && roots) copy(queue, out, in, whole);
    const std::byte* from = scatters ? chunks[own].at : sums;
    if (given.add && result > 0)
      queue.combine(c.element, Reduction::sum, from, static_cast<std::byte*>(given.out), result / width);
    else if (scatters)
      copy(queue, static_cast<std::byte*>(given.out), from, result);
  }

  static void run_round(const Channel& channel, const CollectiveCall& c, std::span<const Move> round,
                        const std::vector<ChunkMemory>& chunks, std::byte* staging, CudaQueue& queue) {
    std::vector<std::pair<const Move*, std::byte*>> arrived;
    CallGroup group;
    for (const Move& m : round) {
      const ChunkMemory& chunk = chunks[static_cast<std::size_t>(m.chunk)];
      if (chunk.bytes == 0) continue;
      if (m.src == channel.rank)
        ORRERY_CHECK_NCCL(ncclSend(chunk.at, size(chunk.bytes), ncclUint8, m.dst, channel.comm, queue.stream()));
      if (m.dst != channel.rank) continue;
      ORRERY_CHECK_NCCL(ncclRecv(staging, size(chunk.bytes), ncclUint8, m.src, channel.comm, queue.stream()));
      arrived.emplace_back(&m, staging);
      staging += chunk.bytes;
    }
    group.end();
    for (const auto& [m, from] : arrived) {
      const ChunkMemory& to = chunks[static_cast<std::size_t>(m->chunk)];
      if (m->add)
        queue.combine(c.element, c.reduction, from, to.at, to.bytes / width_of(c.element));
      else
        copy(queue, to.at, from, to.bytes);
    }
  }

  static void copy(CudaQueue& queue, std::byte* to, const std::byte* from, Bytes bytes) {
    if (bytes > 0 && to != from) queue.copy(to, from, bytes);
  }

  std::map<ChannelKey, Channel> channels_;
  bool ended_well_ = true;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

std::unique_ptr<QueuedTransport> nccl_transport(Rendezvous& rendezvous, std::int64_t rank, const Plan& plan) {
  return std::make_unique<NcclTransport>(rendezvous, rank, plan);
}

}  // namespace orrery::cuda
