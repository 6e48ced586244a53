#include "exec/mpi/server.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include "exec/cpu/host_device.h"
#include "exec/cpu/launch.h"
#include "exec/host/run_state.h"
#include "exec/mpi/check.h"
#include "exec/mpi/transport_parts.h"
#include "models/layers/blocks.h"
#include "models/spec/asynchrony.h"

namespace orrery {
namespace {

using mpi::Channel;

constexpr auto kNoMessageNap = std::chrono::microseconds(30);  // length of a sleep when no message has arrived

class Server {
 public:
  Server(MPI_Comm world, const Rank& rank, const Text& text, const ExecuteOptions& options, std::vector<Served>& order)
      : rank_(rank),
        options_(options),
        order_(order),
        device_memory_(host_segments()),
        buffers_(rank, device_memory_),
        state_(run_state(rank, text, options.training)),
        workers_(rank.plan.workers()),
        received_(workers_, 0),
        clocks_(workers_, 0),
        outboxes_(workers_) {
    for (const ChannelKey& key : channels_of(rank.plan)) {
      Channel channel = mpi::make_channel(world, static_cast<int>(rank.number),
                                          rank.plan.dimensions[static_cast<std::size_t>(key.first)]);
      channels_.emplace(key, channel);
    }
    find_tasks();
    set_initial_weights(rank_, options.training.seed, buffers_);
  }
  ~Server() {
    for (auto& [key, channel] : channels_) MPI_Comm_free(&channel.comm);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Execution run() {
    begin_ = host_now();
    if (pulls_first_) {
      for (std::int64_t w = 0; w < workers_; ++w) hand_out(w);
    }
    while (version_ < workers_ * options_.steps || !all_sent()) {
      if (!accept()) std::this_thread::sleep_for(kNoMessageNap);
    }
    if (options_.on_end) options_.on_end(buffers_);
    result_.memory.capacity = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
    result_.memory.tier_peak[index_of(MemoryTier::host)] = buffers_.peak_in(MemoryTier::host);
    return std::move(result_);
  }

 private:
  struct Range {
    std::int64_t first = 0, elements = 0;  // a range of elements in the server's shards
  };

  // Finds the update task and, in plan order, the ranges of elements that each worker pulls and pushes.
  void find_tasks() {
    const std::uint32_t state = rank_.states.front();
    for (TaskId t = 0; t < rank_.plan.task_count(); ++t) {
      const Op& op = rank_.plan.op_of(t);
      if (std::holds_alternative<Update>(op.work)) update_ = t;
      const auto* c = std::get_if<Collective>(&op.work);
      if (c == nullptr) continue;
      const auto& pieces = rank_.pieces.at(state);
      const auto piece =
          std::find_if(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.first == c->first; });
      const bool pushes = c->kind == CollectiveKind::push;
      if (!pushes && pushes_.empty()) pulls_first_ = true;
      (pushes ? pushes_ : pulls_).push_back({piece->shard_first, piece->owned});
      shard_elements_ = std::max(shard_elements_, piece->shard_first + piece->owned);
    }
  }

  // Returns the size in bytes of the memory that receives one worker's push of gradients.
  Bytes inbox_bytes() const { return shard_elements_ * rank_.state_width(kGradientShard); }
  std::byte* inbox(std::int64_t worker) const {
    return buffers_.state(rank_.states.front(), kBuckets) + worker * inbox_bytes();
  }

  Channel& channel(LaneKind lane) { return channels_.at({Dimension::world, lane}); }

  // Receives one message if one has arrived. A message has the next range of elements of a worker's push.
  bool accept() {
    const Channel& in = channel(LaneKind::data_reduce);
    int here = 0;
    MPI_Status status;
    ORRERY_CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, in.comm, &here, &status));
    if (here == 0) return false;
    const std::int64_t worker = status.MPI_SOURCE;
    const auto count = static_cast<std::int64_t>(pushes_.size());
    const Range& range = pushes_[static_cast<std::size_t>(received_[worker] % count)];
    const Bytes width = rank_.state_width(kGradientShard);
    ORRERY_CHECK_MPI(MPI_Recv(inbox(worker) + range.first * width, static_cast<int>(range.elements * width), MPI_BYTE,
                              status.MPI_SOURCE, status.MPI_TAG, in.comm, MPI_STATUS_IGNORE));
    if (++received_[worker] % count == 0) update(worker);
    return true;
  }

  void update(std::int64_t worker) {
    const Picoseconds begin = host_now();
    const std::uint32_t state = rank_.states.front();
    std::memcpy(buffers_.state(state, kGradientShard), inbox(worker), static_cast<std::size_t>(inbox_bytes()));
    state_.round = version_;
    launch_on_cpu(state_, buffers_.issue(update_, [](TaskId) { return true; }));
    order_.push_back({true, worker, clocks_[worker]++, ++version_});
    note_step(begin);
    waiting_.push_back(worker);
    std::erase_if(waiting_, [&](std::int64_t w) {
      if (!may_go_on(w)) return false;
      hand_out(w);
      return true;
    });
  }

  bool may_go_on(std::int64_t worker) const {
    if (!bounded_staleness(rank_.spec.strategy)) return true;
    const std::int64_t slowest = *std::min_element(clocks_.begin(), clocks_.end());
    return clocks_[worker] - slowest <= rank_.spec.strategy.parameter_server->staleness;
  }

  // Copies the current weights and sends the copied bytes to a worker, because the weights may change during the send.
  void hand_out(std::int64_t worker) {
    if (clocks_[worker] == options_.steps && pulls_first_) return;
    Outbox& out = outboxes_[worker];
    while (!mpi::all_done(out.requests)) continue;
    const Bytes width = rank_.state_width(kParameterShard);
    const std::byte* weights = buffers_.state(rank_.states.front(), kParameterShard);
    out.copy.assign(weights, weights + shard_elements_ * width);
    order_.push_back({false, worker, clocks_[worker], version_});
    const Channel& to = channel(LaneKind::data_gather);
    for (const Range& r : pulls_) {
      // the tag under which the worker expects this message, computed in the same way as by next_tag() on the worker
      const int tag = 1 + static_cast<int>(out.sent++ % mpi::kTags);
      mpi::send(to, static_cast<int>(worker), tag, out.copy.data() + r.first * width, r.elements * width, out.requests);
    }
  }

  bool all_sent() {
    return std::all_of(outboxes_.begin(), outboxes_.end(), [](Outbox& out) { return mpi::all_done(out.requests); });
  }

  // Records a measured step each time that the server has applied as many pushes as there are workers. Transfers are
  // not timed one by one, but get the begin and the end of the step as their times.
  void note_step(Picoseconds begin) {
    if (version_ % workers_ != 0) return;
    MeasuredStep step = {begin_, host_now(), {}, {}};
    step.spans.assign(rank_.plan.task_count(), {step.begin, step.begin, step.end});
    step.spans[update_] = {begin, begin, step.end};
    begin_ = step.end;
    result_.steps.push_back(std::move(step));
  }

  struct Outbox {
    std::vector<std::byte> copy;
    std::vector<MPI_Request> requests;
    std::uint32_t sent = 0;  // number of messages sent so far to this worker
  };

  const Rank& rank_;
  const ExecuteOptions& options_;
  std::vector<Served>& order_;
  CachingMemory device_memory_;  // required by Buffers; a server has no device memory
  Buffers buffers_;
  RunState state_;
  std::map<ChannelKey, Channel> channels_;
  TaskId update_ = 0;
  std::vector<Range> pushes_, pulls_;
  bool pulls_first_ = false;  // whether workers begin a step with a pull
  std::int64_t shard_elements_ = 0;
  std::int64_t workers_ = 0;
  std::vector<std::int64_t> received_;  // for each worker, the number of messages received from it
  std::vector<std::int64_t> clocks_;    // for each worker, the number of its pushes that are applied to the weights
  std::vector<std::int64_t> waiting_;   // workers that wait for weights, in order of arrival
  std::vector<Outbox> outboxes_;
  std::int64_t version_ = 0;
  Picoseconds begin_ = 0;  // time when the current measured step began
  Execution result_;
};

}  // namespace

Staleness staleness_of(const std::vector<Served>& order, std::int64_t workers) {
  Staleness s;
  std::vector<std::int64_t> clocks(static_cast<std::size_t>(workers), 0), read = clocks;
  std::int64_t updates = 0;
  for (const Served& e : order) {
    if (e.update) {
      const std::int64_t stale = e.version - 1 - read[e.worker];
      s.mean += static_cast<double>(stale);
      s.most = std::max(s.most, stale);
      ++clocks[e.worker];
      ++updates;
    } else {
      read[e.worker] = e.version;
      s.most_ahead = std::max(s.most_ahead, e.clock - *std::min_element(clocks.begin(), clocks.end()));
    }
  }
  s.mean /= static_cast<double>(std::max<std::int64_t>(1, updates));
  return s;
}

bool serves_arrivals(const Rank& rank) {
  return rank.plan.classes.front().server && asynchronous_workers(rank.spec.strategy);
}

Execution serve(MPI_Comm world, const Rank& rank, const Text& text, const ExecuteOptions& options,
                std::vector<Served>& order) {
  return Server(world, rank, text, options, order).run();
}

}  // namespace orrery
