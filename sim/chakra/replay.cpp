#include "sim/chakra/replay.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <tuple>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/cost/nccl/model.h"
#include "models/cost/profile.h"

namespace orrery {
namespace {

// A Spread says how many members of a group each node of the cluster has, for the nodes with members: {8, 8} for 16
// members on two nodes.
using Spread = std::vector<int>;

// The times in seconds of transfers between ranks, on a cluster whose nodes the ranks fill in order.
class Links {
 public:
  explicit Links(const Cluster& cluster) : cluster_(cluster), node_gpus_(nccl_node_gpus(cluster)) {}

  Seconds collective(const ChakraNode& node, const std::vector<std::int64_t>& members) {
    if (members.size() < 2) return 0;
    const NcclModel& model = model_of(spread(members));
    const auto ranks = static_cast<Bytes>(members.size());
    constexpr Bytes kBarrier = 4;
    const Bytes bytes = node.barrier ? kBarrier : static_cast<Bytes>(node.bytes);
    // A broadcast, reduce, gather or scatter is timed as one rank's messages to or from all others.
    if (is_star(node.collective)) return nccl_point_to_point(model, one_node(members), bytes * (ranks - 1)).seconds;
    const Bytes whole = node.collective == CollectiveKind::all_gather ? bytes * ranks : bytes;
    return nccl_choose(model, node.collective, whole).seconds + nccl_late_members(model, node.collective);
  }

  Seconds message(std::uint64_t bytes, std::int64_t from, std::int64_t to) {
    const bool near = from / node_gpus_ == to / node_gpus_;
    return nccl_point_to_point(model_of(near ? Spread{2} : Spread{1, 1}), near, static_cast<Bytes>(bytes)).seconds;
  }

 private:
  bool one_node(const std::vector<std::int64_t>& members) const { return spread(members).size() == 1; }

  Spread spread(const std::vector<std::int64_t>& members) const {
    Spread result;
    std::int64_t last = -1;
    for (const std::int64_t rank : members) {
      if (rank / node_gpus_ != last) result.push_back(0);
      ++result.back();
      last = rank / node_gpus_;
    }
    return result;
  }

  const NcclModel& model_of(const Spread& members) {
    const auto [it, fresh] = models_.try_emplace(members);
    if (fresh) it->second = nccl_model(nccl_topology(cluster_, members));
    return it->second;
  }

  const Cluster& cluster_;
  int node_gpus_;
  std::map<Spread, NcclModel> models_;
};

// The times in seconds of compute operations for which a trace gives operations and bytes, but no duration.
class Rates {
 public:
  explicit Rates(const Cluster& cluster) : cluster_(cluster) {}

  Seconds of(const ChakraNode& node) {
    if (node.duration_us > 0) return static_cast<double>(node.duration_us) * kMicrosecond;
    if (node.kind != ChakraNode::Kind::compute || (node.operations == 0 && node.bytes == 0)) return 0;
    if (!profile_) profile_ = find_profile(cluster_.gpu);
    ++estimated;
    const double rate = peak_flops(cluster_.gpu, Precision::bf16) * profile_->gemm.tiles.front().efficiency;
    const double bandwidth = cluster_.gpu.memory_GBps * 1e9 * profile_->memory.fraction;
    return std::max(static_cast<double>(node.operations) / rate, static_cast<double>(node.bytes) / bandwidth);
  }

  std::size_t estimated = 0;

 private:
  const Cluster& cluster_;
  std::optional<Profile> profile_;
};

// An interval of time in which a rank computes or communicates.
struct BusySpan {
  Seconds begin = 0, end = 0;
};

// The total time that `intervals` cover, counted once where they overlap, without the time that `without` covers.
Seconds covered(std::vector<BusySpan> intervals, std::vector<BusySpan> without = {}) {
  // The begin or end of an interval: its time, and the change (+1 or -1) of the number of open intervals in `intervals`
  // and in `without`.
  std::vector<std::tuple<Seconds, int, int>> edges;
  for (const BusySpan& b : intervals) {
    edges.emplace_back(b.begin, 1, 0);
    edges.emplace_back(b.end, -1, 0);
  }
  for (const BusySpan& b : without) {
    edges.emplace_back(b.begin, 0, 1);
    edges.emplace_back(b.end, 0, -1);
  }
  std::ranges::sort(edges);
  Seconds sum = 0, last = 0;
  int open = 0, closed = 0;
  for (const auto& [time, own, other] : edges) {
    if (open > 0 && closed == 0) sum += time - last;
    open += own;
    closed += other;
    last = time;
  }
  return sum;
}

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

// The nodes (operations) of all ranks' traces in one array, rank by rank, and for each node the nodes that wait for it.
struct Graph {
  explicit Graph(const std::vector<ChakraTrace>& traces) : ranks(traces.size()) {
    for (std::size_t r = 0; r < traces.size(); ++r) {
      first.push_back(nodes.size());
      std::map<std::uint64_t, std::size_t> place;
      for (const ChakraNode& n : traces[r].nodes) {
        place[n.id] = nodes.size();
        nodes.push_back(&n);
        rank_of.push_back(r);
      }
      followers.resize(nodes.size());
      waits.resize(nodes.size(), 0);
      for (std::size_t i = first[r]; i < nodes.size(); ++i) {
        for (const std::uint64_t id : nodes[i]->waits_for) {
          followers[place.at(id)].push_back(i);
          ++waits[i];
        }
      }
    }
    first.push_back(nodes.size());
  }

  std::string name(std::size_t i) const {
    return fmt::format("rank {}, node {} ({})", rank_of[i], nodes[i]->id, nodes[i]->name);
  }

  std::size_t ranks;
  std::vector<std::size_t> first;  // for each rank, the index of its first node; then the number of all nodes
  std::vector<const ChakraNode*> nodes;
  // waits: for each node (operation of a trace), how many of the nodes that it waits for have not ended
  std::vector<std::size_t> rank_of, waits;
  std::vector<std::vector<std::size_t>> followers;
};

// Operations (trace nodes) of several ranks that begin and end together: those of one collective, or the send and
// receive of one message.
struct Meeting {
  std::vector<std::size_t> nodes;
  std::size_t expected = 2, arrived = 0;
  std::size_t group = kNowhere;  // index of the process group of a collective
};

// Finds which operations (nodes of the ranks' traces) belong together: the i-th collective of every rank in a process
// group is one collective, and the i-th send with a tag belongs to the i-th receive of that tag.
struct Meetings {
  explicit Meetings(const Graph& graph) : of(graph.nodes.size(), kNowhere) {
    for (std::size_t r = 0; r < graph.ranks; ++r) {
      // for each process group, or sender, receiver and tag: the number of the rank's operations (trace nodes) so far
      std::map<Key, std::size_t> seen;
      for (std::size_t i = graph.first[r]; i < graph.first[r + 1]; ++i) {
        const std::optional<Key> key = key_of(*graph.nodes[i], static_cast<std::int64_t>(r));
        if (key) add(*key, seen[*key]++, i, graph);
      }
    }
    free.assign(groups.size(), 0);
    for (Meeting& m : list) {
      if (m.group != kNowhere) m.expected = groups[m.group].size();
    }
  }

  std::vector<Meeting> list;
  std::vector<std::size_t> of;  // for each operation, the index in `list` of its collective or message
  std::vector<std::vector<std::int64_t>> groups;  // the ranks of each process group
  // for each process group, the time when its latest collective has ended
  std::vector<Seconds> free;

 private:
  // The key by which operations (trace nodes) of different ranks are found to belong together. A collective (first
  // member true) has the name of its process group; a message (false) has the sender, the receiver and the tag.
  using Key = std::tuple<bool, std::string, std::int64_t, std::int64_t, std::int64_t>;

  static std::optional<Key> key_of(const ChakraNode& n, std::int64_t rank) {
    switch (n.kind) {
      case ChakraNode::Kind::collective:
        return Key{true, n.group, 0, 0, 0};
      case ChakraNode::Kind::send:
        return Key{false, "", rank, n.peer, n.tag};
      case ChakraNode::Kind::receive:
        return Key{false, "", n.peer, rank, n.tag};
      default:
        return std::nullopt;
    }
  }

  void add(const Key& key, std::size_t count, std::size_t node, const Graph& graph) {
    const auto [it, fresh] = index_.try_emplace({key, count}, list.size());
    if (fresh) list.emplace_back();
    Meeting& m = list[it->second];
    m.nodes.push_back(node);
    of[node] = it->second;
    if (!std::get<0>(key)) return;
    const auto [group, first] = group_index_.try_emplace(std::get<1>(key), groups.size());
    if (first) groups.emplace_back();
    m.group = group->second;
    const auto rank = static_cast<std::int64_t>(graph.rank_of[node]);
    if (groups[m.group].empty() || groups[m.group].back() != rank) groups[m.group].push_back(rank);
  }

  std::map<std::pair<Key, std::size_t>, std::size_t> index_;
  std::map<std::string, std::size_t> group_index_;
};

// The times when a rank's device and host are free again, and the intervals in which the rank computed or communicated.
struct Clock {
  Seconds device = 0, host = 0;
  std::vector<BusySpan> computing, moving;
};

class GraphReplay {
 public:
  GraphReplay(const std::vector<ChakraTrace>& traces, const Cluster& cluster)
      : graph_(traces), meetings_(graph_), links_(cluster), rates_(cluster), clocks_(traces.size()) {
    result_.ranks.resize(traces.size());
    result_.nodes = graph_.nodes.size();
  }

  ChakraReplay run() {
    std::vector<bool> ended(graph_.nodes.size(), false);
    const std::vector<std::size_t> waits = graph_.waits;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i] == 0) ready(i, 0);
    }
    while (!ends_.empty()) {
      const auto [time, node] = ends_.top();
      ends_.pop();
      ended[node] = true;
      ReplayedRank& rank = result_.ranks[graph_.rank_of[node]];
      rank.end = std::max(rank.end, time);
      for (const std::size_t next : graph_.followers[node]) {
        if (--graph_.waits[next] == 0) ready(next, time);
      }
    }
    if (std::ranges::find(ended, false) != ended.end()) fail_waiting(ended);
    return finish();
  }

 private:
  const ChakraNode& node(std::size_t i) const { return *graph_.nodes[i]; }
  Clock& clock(std::size_t i) { return clocks_[graph_.rank_of[i]]; }

  void ready(std::size_t i, Seconds time) {
    const ChakraNode& n = node(i);
    if (meetings_.of[i] != kNowhere) return arrive(i, time);
    if (n.kind != ChakraNode::Kind::compute) return ends_.emplace(time, i), void();
    Seconds& free = n.on_host ? clock(i).host : clock(i).device;
    const Seconds begin = std::max(time, free), length = rates_.of(n);
    free = begin + length;
    if (!n.on_host && length > 0) clock(i).computing.push_back({begin, free});
    ends_.emplace(free, i);
  }

  void arrive(std::size_t i, Seconds time) {
    Meeting& m = meetings_.list[meetings_.of[i]];
    agree(m, i);
    if (++m.arrived < m.expected) return;
    const bool collective = m.group != kNowhere;
    const Seconds begin = collective ? std::max(time, meetings_.free[m.group]) : time;
    const Seconds length = collective ? links_.collective(node(i), meetings_.groups[m.group]) : message(m);
    if (collective) meetings_.free[m.group] = begin + length;
    for (const std::size_t end : m.nodes) {
      if (length > 0) clock(end).moving.push_back({begin, begin + length});
      ends_.emplace(begin + length, end);
    }
    ++(collective ? result_.collectives : result_.messages);
  }

  Seconds message(const Meeting& m) {
    const auto rank = [&](std::size_t end) { return static_cast<std::int64_t>(graph_.rank_of[m.nodes[end]]); };
    return links_.message(node(m.nodes[0]).bytes, rank(0), rank(1));
  }

  void agree(const Meeting& m, std::size_t i) const {
    const ChakraNode &first = node(m.nodes.front()), &own = node(i);
    const std::string other = graph_.name(m.nodes.front());
    if (m.group != kNowhere && (first.collective != own.collective || first.barrier != own.barrier))
      throw Error(fmt::format("{}: is a {}, where {} is a {}", graph_.name(i), name_of(own.collective), other,
                              name_of(first.collective)));
    if (m.group == kNowhere && first.bytes != own.bytes)
      throw Error(fmt::format("{}: {} bytes, where {} has {}", graph_.name(i), own.bytes, other, first.bytes));
  }

  [[noreturn]] void fail_waiting(const std::vector<bool>& ended) const {
    for (std::size_t i = 0; i < ended.size(); ++i) {
      if (ended[i] || graph_.waits[i] > 0) continue;
      throw Error(
          fmt::format("{}: never runs: no other end, or not every rank of its group, comes to it; give the "
                      "files of all ranks",
                      graph_.name(i)));
    }
    const auto first = static_cast<std::size_t>(std::ranges::find(ended, false) - ended.begin());
    throw Error(fmt::format("{}: never runs: nodes wait for each other in a circle", graph_.name(first)));
  }

  ChakraReplay finish() {
    for (std::size_t r = 0; r < clocks_.size(); ++r) {
      ReplayedRank& rank = result_.ranks[r];
      rank.compute = covered(clocks_[r].computing);
      rank.exposed = covered(clocks_[r].moving, clocks_[r].computing);
      result_.time = std::max(result_.time, rank.end);
    }
    if (rates_.estimated > 0)
      result_.remarks.push_back(
          fmt::format("{} nodes without a duration last as their operations and bytes take", rates_.estimated));
    return std::move(result_);
  }

  using End = std::pair<Seconds, std::size_t>;

  Graph graph_;
  Meetings meetings_;
  Links links_;
  Rates rates_;
  std::vector<Clock> clocks_;  // for each rank, when its device and host are free again
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  ChakraReplay result_;
};

}  // namespace

ChakraReplay replay(const std::vector<ChakraTrace>& traces, const Cluster& cluster) {
  if (traces.empty() || std::ranges::all_of(traces, [](const ChakraTrace& t) { return t.nodes.empty(); }))
    throw Error("the execution traces have no nodes");
  const std::int64_t gpus = cluster.nodes * cluster.gpus_per_node;
  if (static_cast<std::int64_t>(traces.size()) > gpus)
    throw Error(fmt::format("--on: {} GPUs are fewer than the {} ranks of the traces", gpus, traces.size()));
  return GraphReplay(traces, cluster).run();
}

}  // namespace orrery
