#include "exec/transport/threads_transport.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "exec/transport/joint_moves.h"
#include "models/base/error.h"

namespace orrery {
namespace {

// Identifies the ranks that take part in a transfer: the members of a group on a lane (queue of tasks), or the sender
// and the receiver of messages in one direction.
struct Place {
  bool message = false;
  Dimension group = Dimension::pipeline;
  LaneKind lane = LaneKind::tensor;
  // first, second: for a group, both are the group's number; for a message, the sender's and the receiver's rank
  std::int32_t first = 0, second = 0;
  auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr)
};

// One transfer between ranks that are threads; each thread joins the transfer when it reaches it.
struct JoinedTransfer {
  std::vector<const QueuedCall*> ends;  // for each member, its call in this transfer
  std::size_t come = 0;
  bool done = false;
};

void move_message(const JoinedTransfer& m, MoveQueue& queue) {
  const auto& from = std::get<MessageCall>(m.ends[0]->call);
  const auto& to = std::get<MessageCall>(m.ends[1]->call);
  if (from.bytes != to.bytes)
    throw Error(fmt::format("transport: a message of {} bytes meets a receive of {}", from.bytes, to.bytes));
  if (from.bytes > 0)
    queue.copy(static_cast<std::byte*>(to.data), static_cast<const std::byte*>(from.data), from.bytes);
}

void move_collective(const JoinedTransfer& m, MoveQueue& queue) {
  std::vector<const CollectiveCall*> calls;
  for (const QueuedCall* end : m.ends) {
    const auto* call = std::get_if<CollectiveCall>(&end->call);
    if (call == nullptr) throw Error("transport: members of one group start different transfers at once");
    calls.push_back(call);
  }
  carry_out(calls, queue);
}

}  // namespace

struct Meetings::State {
  explicit State(const Plan& plan) : dimensions(plan.dimensions) {}

  std::vector<GroupTable> dimensions;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<Place, std::uint64_t>, std::shared_ptr<JoinedTransfer>> open;
  bool failed = false;

  // Adds a rank's call to the transfer, and carries the transfer out if this call is the last one; the caller must hold
  // the mutex.
  std::shared_ptr<JoinedTransfer> join(const Place& place, std::uint64_t number, std::size_t size, std::size_t member,
                                       const QueuedCall& call) {
    auto& meeting = open[{place, number}];
    if (meeting == nullptr)
      meeting = std::make_shared<JoinedTransfer>(JoinedTransfer{std::vector<const QueuedCall*>(size), 0, false});
    std::shared_ptr<JoinedTransfer> joined = meeting;
    joined->ends[member] = &call;
    if (++joined->come == size) {
      open.erase({place, number});
      hold(place, *joined, *call.queue);
    }
    return joined;
  }

  void hold(const Place& place, JoinedTransfer& m, MoveQueue& queue) {
    for (const QueuedCall* end : m.ends) {
      if (end->queue != &queue) queue.after(*end->queue);
    }
    place.message ? move_message(m, queue) : move_collective(m, queue);
    for (const QueuedCall* end : m.ends) {
      if (end->queue != &queue) end->queue->after(queue);
    }
    m.done = true;
    changed.notify_all();
  }
};

class Meetings::ThreadsTransport final : public QueuedTransport {
 public:
  ThreadsTransport(State& state, std::int64_t rank) : state_(state), rank_(static_cast<std::int32_t>(rank)) {}

  void start(std::span<const QueuedCall> batch) override {
    std::vector<std::shared_ptr<JoinedTransfer>> joined;
    std::unique_lock lock(state_.mutex);
    try {
      for (const QueuedCall& call : batch) joined.push_back(join(call));
      for (const auto& m : joined) state_.changed.wait(lock, [&] { return m->done || state_.failed; });
    } catch (...) {
      state_.failed = true;
      state_.changed.notify_all();
      throw;
    }
    for (const auto& m : joined) {
      if (!m->done) throw Error("transport: another rank has failed");
    }
  }

 private:
  std::shared_ptr<JoinedTransfer> join(const QueuedCall& call) {
    const auto* message = std::get_if<MessageCall>(&call.call);
    Place place{message != nullptr, Dimension::pipeline, message_lane(call.lane), rank_, rank_};
    if (message != nullptr) {
      (message->send ? place.second : place.first) = message->peer;
      return state_.join(place, next(place), 2, message->send ? 0 : 1, call);
    }
    const auto& collective = std::get<CollectiveCall>(call.call);
    const GroupTable& table = state_.dimensions[static_cast<std::size_t>(collective.group)];
    const std::int32_t group = table.member_of[static_cast<std::size_t>(rank_)];
    const auto& members = table.groups[static_cast<std::size_t>(group)];
    place = {false, collective.group, call.lane, group, group};
    const auto me = static_cast<std::size_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
    return state_.join(place, next(place), members.size(), me, call);
  }

  // Returns the number of this rank's next transfer at a place: a group of ranks, or a sender and a receiver, on one
  // lane (queue of tasks). Calls of different ranks with the same place and number form one transfer.
  std::uint64_t next(const Place& place) { return calls_[place]++; }

  State& state_;
  std::int32_t rank_;
  std::map<Place, std::uint64_t> calls_;
};

Meetings::Meetings(const Plan& plan) : state_(std::make_unique<State>(plan)) {}
Meetings::~Meetings() = default;

std::unique_ptr<QueuedTransport> Meetings::transport(std::int64_t rank) {
  return std::make_unique<ThreadsTransport>(*state_, rank);
}

void Meetings::fail() {
  const std::lock_guard lock(state_->mutex);
  state_->failed = true;
  state_->changed.notify_all();
}

}  // namespace orrery
