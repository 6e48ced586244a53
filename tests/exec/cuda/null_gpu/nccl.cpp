// NCCL whose ranks are threads. A call blocks the host until all members have made the matching one: the strictest
// order that NCCL may ask for, as if a rank had one queue for all communicators.
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <tuple>

#include <fmt/format.h>

#include "tests/exec/cuda/null_gpu/machine.h"

namespace orrery::null_gpu {
namespace {

constexpr double kCollective = 10e-6;  // seconds of a call, once all have come

struct Arrival {
  std::string call;  // kind, count, type, and what else all members must say alike
  Stream* stream = nullptr;
};

// One collective, or one message from its two ends.
struct Match {
  std::map<int, Arrival> arrivals;  // by place
  std::multiset<int> missing;       // ranks
  bool done = false;
};

// A rank's host inside a call; no match: ncclCommInitRank.
struct Blocked {
  std::string call;
  std::shared_ptr<Match> match;
};

struct World {
  int number = 0, size = 0, joined = 0, left = 0;
  bool broken = false;
  std::map<std::tuple<int, int, std::uint64_t>, std::shared_ptr<Match>>
      open;                        // by source, destination (-1: all), number
  std::map<int, Blocked> waiting;  // by rank
};

struct Communicator {
  std::shared_ptr<World> world;
  int rank = 0;
  std::map<std::tuple<int, int, bool>, std::uint64_t> calls;  // by source, destination, and whether it receives
};

struct Waiting {
  std::shared_ptr<World> world;
  std::shared_ptr<Match> match;
  int rank;
  std::string call;
};

struct Network {
  std::map<std::string, std::shared_ptr<World>> worlds;  // by id
  int ids = 0;
  std::condition_variable_any changed;
};
Network& network() {
  static Network* const the = new Network;
  return *the;
}

constexpr char kCommunicators[] = "NCCL communicators";
thread_local int group_depth = 0;
thread_local std::vector<Waiting> group;
thread_local ncclResult_t group_error = ncclSuccess;  // of a call in the group, which then starts nothing

Communicator& of(ncclComm_t comm) { return *reinterpret_cast<Communicator*>(comm); }

std::size_t width_of(ncclDataType_t type) { return type == ncclFloat32 ? 4 : type == ncclBfloat16 ? 2 : 1; }

void check_buffer(Stream& stream, const std::string& name, const void* at, std::size_t bytes, std::size_t width,
                  bool writes) {
  if (bytes == 0) return;
  if (reinterpret_cast<std::uintptr_t>(at) % width != 0) complain(name + ": a buffer is not aligned to its elements");
  if (!on_device(at, bytes)) return complain(name + ": a buffer goes beyond an allocation of the device");
  access(stream, name, at, bytes, writes);
}

// The last member has come: its stream and all others go on together.
void meet(Match& match) {
  Moment all;
  for (const auto& [place, arrival] : match.arrivals) all.wait_for(arrival.stream->last);
  all.at += kCollective;
  for (const auto& [place, arrival] : match.arrivals) arrival.stream->last.wait_for(all);
  match.done = true;
  network().changed.notify_all();
}

bool agree(const World& world, const Match& match) {
  const auto& [first, said] = *match.arrivals.begin();
  for (const auto& [place, arrival] : match.arrivals) {
    if (arrival.call == said.call) continue;
    complain(fmt::format("communicator {}: {} meets {}", world.number, said.call, arrival.call));
    return false;
  }
  return true;
}

void break_off(World& world) {
  world.broken = true;
  network().changed.notify_all();
}

// All that waits now: what a deadlock consists of.
std::string standstill() {
  std::string all;
  for (const auto& [id, world] : network().worlds) {
    for (const auto& [rank, blocked] : world->waiting)
      all += fmt::format("{}rank {} of {} waits in {} of communicator {}", all.empty() ? "" : ", ", rank, world->size,
                         blocked.call, world->number);
  }
  return all;
}

template <class Condition>
bool wait_in(std::unique_lock<std::recursive_mutex>& lock, World& world, int rank, const Blocked& blocked,
             const Condition& met) {
  if (met()) return true;
  world.waiting[rank] = blocked;
  const auto patience = std::chrono::duration<double>(gpu().patience);
  const bool came = network().changed.wait_for(lock, patience, [&] { return met() || world.broken; });
  if (!came) complain(fmt::format("NCCL stands still: {}", standstill()));
  world.waiting.erase(rank);
  if (!came) break_off(world);
  return met();
}

ncclResult_t finish(const std::vector<Waiting>& calls) {
  std::unique_lock lock(gpu().mutex);
  for (const Waiting& w : calls) {
    if (!wait_in(lock, *w.world, w.rank, {w.call, w.match}, [&] { return w.match->done; })) return ncclRemoteError;
  }
  return ncclSuccess;
}

std::shared_ptr<Match> begin_match(const World& world, std::pair<int, int> ends) {
  auto match = std::make_shared<Match>();
  if (ends.first >= 0) match->missing = {ends.first, ends.second};
  for (int rank = 0; ends.first < 0 && rank < world.size; ++rank) match->missing.insert(rank);
  return match;
}

struct Buffer {
  const void* at;
  std::size_t count;
  bool writes;
};

// Joins the match of a call; source and destination are -1 for a collective.
ncclResult_t arrive(const char* function, const std::string& call, ncclDataType_t type, ncclComm_t comm,
                    cudaStream_t handle, std::pair<int, int> ends, const std::vector<Buffer>& buffers) {
  if (fails(function)) return group_error = ncclSystemError;
  std::vector<Waiting> now;
  {
    const Lock lock(gpu().mutex);
    Communicator& c = of(comm);
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return ncclInvalidArgument;
    if (c.world->broken) return group_error = ncclRemoteError;
    enqueue(*stream, 0);
    for (const Buffer& b : buffers)
      check_buffer(*stream, function, b.at, b.count * width_of(type), width_of(type), b.writes);
    const bool receives = std::strcmp(function, "ncclRecv") == 0;
    const std::uint64_t number = c.calls[{ends.first, ends.second, receives}]++;
    const std::tuple key(ends.first, ends.second, number);
    auto& open = c.world->open[key];
    if (open == nullptr) open = begin_match(*c.world, ends);
    const std::shared_ptr<Match> match = open;
    match->missing.erase(match->missing.find(c.rank));
    match->arrivals[ends.first < 0 ? c.rank : receives ? 1 : 0] = {call, stream};
    if (match->missing.empty()) {
      c.world->open.erase(key);
      agree(*c.world, *match) ? meet(*match) : break_off(*c.world);
    }
    now.push_back({c.world, match, c.rank, fmt::format("{} ({}, call {})", function, call, number)});
  }
  if (group_depth == 0) return finish(now);
  group.push_back(now[0]);
  return ncclSuccess;
}

constexpr std::pair<int, int> kAll = {-1, -1};

// The communicator ends for this rank.
ncclResult_t leave(ncclComm_t comm, bool aborts) {
  const Lock lock(gpu().mutex);
  const Communicator* c = &of(comm);
  World& world = *c->world;
  const bool missed = std::any_of(world.waiting.begin(), world.waiting.end(), [&](const auto& w) {
    return w.second.match != nullptr && w.second.match->missing.contains(c->rank);
  });
  if (!aborts && !world.broken && missed)
    complain(fmt::format("rank {} destroys communicator {} while others wait for its call: {}", c->rank, world.number,
                         standstill()));
  if (group_depth > 0) complain("a communicator ends inside an open group");
  if (aborts || missed) break_off(world);
  if (++world.left == world.joined)
    std::erase_if(network().worlds, [&](const auto& w) { return w.second == c->world; });
  --gpu().objects[kCommunicators];
  delete c;
  return ncclSuccess;
}

}  // namespace
}  // namespace orrery::null_gpu

using namespace orrery::null_gpu;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t code) {
  return code == ncclRemoteError   ? "remote process exited or there was a network error"
         : code == ncclSystemError ? "unhandled system error"
                                   : "invalid usage";
}
const char* ncclGetLastError(ncclComm_t) { return "a member has failed"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (fails("ncclGetUniqueId")) return ncclSystemError;
  const Lock lock(gpu().mutex);
  *id = {};
  fmt::format_to_n(id->internal, sizeof id->internal, "{}", ++network().ids);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  const bool failing = fails("ncclCommInitRank");
  std::unique_lock lock(gpu().mutex);
  auto& world = network().worlds[id.internal];
  if (world == nullptr) {
    world = std::make_shared<World>();
    world->number = std::stoi(id.internal);
    world->size = size;
  }
  const std::shared_ptr<World> mine = world;
  if (mine->size != size || rank >= size) complain("the members of a communicator disagree about its size");
  if (failing) {
    break_off(*mine);
    return ncclSystemError;
  }
  ++mine->joined;
  network().changed.notify_all();
  if (!wait_in(lock, *mine, rank, {"ncclCommInitRank", nullptr}, [&] { return mine->joined >= mine->size; }))
    return ncclRemoteError;
  ++gpu().objects[kCommunicators];
  *comm = reinterpret_cast<ncclComm_t>(new Communicator{mine, rank, {}});
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return leave(comm, false); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return leave(comm, true); }

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* code) {
  if (fails("ncclCommGetAsyncError")) return ncclSystemError;
  const Lock lock(gpu().mutex);
  *code = of(comm).world->broken ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  if (fails("ncclGroupStart")) return ncclSystemError;
  if (group_depth++ == 0) group_error = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) {
    complain("ncclGroupEnd without a group");
    return ncclInvalidUsage;
  }
  if (--group_depth > 0) return ncclSuccess;
  const std::vector<Waiting> calls = std::exchange(group, {});
  if (fails("ncclGroupEnd")) group_error = ncclSystemError;
  if (group_error == ncclSuccess) return finish(calls);
  const Lock lock(gpu().mutex);
  for (const Waiting& w : calls) break_off(*w.world);
  return group_error;
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return arrive("ncclAllReduce", fmt::format("all-reduce of {}, type {}, op {}", n, int{type}, int{op}), type, comm,
                stream, kAll, {{in, n, false}, {out, n, true}});
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  const std::string call = fmt::format("broadcast of {}, type {}, root {}", n, int{type}, root);
  std::vector<Buffer> buffers = {{out, n, true}};
  if (of(comm).rank == root) buffers.push_back({in, n, false});
  return arrive("ncclBroadcast", call, type, comm, stream, kAll, buffers);
}
ncclResult_t ncclReduce(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  const std::string call = fmt::format("reduce of {}, type {}, op {}, root {}", n, int{type}, int{op}, root);
  std::vector<Buffer> buffers = {{in, n, false}};
  if (of(comm).rank == root) buffers.push_back({out, n, true});
  return arrive("ncclReduce", call, type, comm, stream, kAll, buffers);
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const auto size = static_cast<std::size_t>(of(comm).world->size);
  return arrive("ncclAllGather", fmt::format("all-gather of {}, type {}", n, int{type}), type, comm, stream, kAll,
                {{in, n, false}, {out, n * size, true}});
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  const auto size = static_cast<std::size_t>(of(comm).world->size);
  return arrive("ncclReduceScatter", fmt::format("reduce-scatter of {}, type {}, op {}", n, int{type}, int{op}), type,
                comm, stream, kAll, {{in, n * size, false}, {out, n, true}});
}
ncclResult_t ncclSend(const void* in, std::size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return arrive("ncclSend", fmt::format("a message of {}, type {}", n, int{type}), type, comm, stream,
                {of(comm).rank, peer}, {{in, n, false}});
}
ncclResult_t ncclRecv(void* out, std::size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return arrive("ncclRecv", fmt::format("a message of {}, type {}", n, int{type}), type, comm, stream,
                {peer, of(comm).rank}, {{out, n, true}});
}
}
