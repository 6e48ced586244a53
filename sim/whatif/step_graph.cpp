#include "sim/whatif/step_graph.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

namespace orrery {
namespace {

constexpr double kClockError = 1e-4;  // seconds by which the clocks of two lanes of a rank may differ

using Rank = std::pair<std::int32_t, std::int32_t>;  // index of a worker (data rank), and a pipeline stage

// The operations of one lane (stream or thread) of one rank, sorted by the times when they end: all of them, and those
// for which operations of other lanes wait (without sends and others marked `aside`).
struct Lane {
  std::vector<const MeasuredOp*> all, awaited;
};

// Returns the operation among those sorted by their ends that ended last before the operation `before` began, with a
// tolerance for clock errors; nullptr if none did.
const MeasuredOp* last_ended(const std::vector<const MeasuredOp*>& sorted, const MeasuredOp& before) {
  const auto later = [](double time, const MeasuredOp* o) { return time < o->end; };
  auto at = std::upper_bound(sorted.begin(), sorted.end(), before.begin + kClockError, later);
  while (at != sorted.begin()) {
    const MeasuredOp* o = *--at;
    const double tolerance = std::min(kClockError, 0.5 * (o->end - o->begin));
    if (o != &before && o->begin < before.begin && o->end <= before.begin + tolerance) return o;
    // an operation without duration, at the moment when `before` begins, has ended before it if it is listed earlier
    if (o != &before && o->begin == before.begin && o->end == o->begin && o < &before) return o;
  }
  return nullptr;
}

// Builds the graph of one step.
class GraphBuilder {
 public:
  GraphBuilder(const MeasuredRun& run, std::int64_t step, std::vector<const MeasuredOp*> operations)
      : run_(run), operations_(std::move(operations)) {
    graph_.step = step;
  }

  StepGraph build() {
    make_nodes();
    order_nodes();
    find_waits();
    double end = graph_.nodes.front().begin;
    for (const MeasuredOp* o : operations_) {
      graph_.begin = o == operations_.front() ? o->begin : std::min(graph_.begin, o->begin);
      end = std::max(end, o->end);
    }
    graph_.time = end - graph_.begin;
    for (RunNode& n : graph_.nodes) {
      double ready = graph_.begin;
      for (const std::uint32_t a : n.after) ready = std::max(ready, graph_.nodes[a].begin + graph_.nodes[a].time);
      n.gap = n.begin - ready;
    }
    return std::move(graph_);
  }

 private:
  void make_nodes() {
    std::map<std::int64_t, std::vector<const MeasuredOp*>> groups;
    for (const MeasuredOp* o : operations_) {
      if (o->group >= 0)
        groups[o->group].push_back(o);
      else
        add_node({o});
    }
    for (const auto& [group, members] : groups) add_node(members);
  }

  void add_node(const std::vector<const MeasuredOp*>& members) {
    const MeasuredOp& first = *members.front();
    RunNode n{.op = first.op, .pool = first.pool, .worker = first.worker, .stage = first.stage, .begin = first.begin};
    double end = first.end;
    for (const MeasuredOp* o : members) {
      n.begin = std::max(n.begin, o->begin);
      end = std::max(end, o->end);
      node_of_[o] = static_cast<std::uint32_t>(graph_.nodes.size());
      if (o->group >= 0) n.ranks.emplace_back(o->worker, o->stage);
    }
    n.time = std::max(0.0, end - n.begin);
    for (const MeasuredOp* o : members) n.waited += n.begin - o->begin;
    graph_.nodes.push_back(std::move(n));
  }

  // Sorts the nodes by their begin times, so that every node comes after those that it waits for.
  void order_nodes() {
    std::vector<std::uint32_t> order(graph_.nodes.size()), place(order.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const RunNode &x = graph_.nodes[a], &y = graph_.nodes[b];
      return std::pair(x.begin, x.begin + x.time) < std::pair(y.begin, y.begin + y.time);
    });
    std::vector<RunNode> sorted;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(std::move(graph_.nodes[order[i]]));
    }
    graph_.nodes = std::move(sorted);
    for (auto& [operation, node] : node_of_) node = place[node];
  }

  void find_waits() {
    std::map<Rank, std::map<std::int32_t, Lane>> ranks;
    for (const MeasuredOp* o : operations_) ranks[{o->worker, o->stage}][o->lane].all.push_back(o);
    for (auto& [rank, lanes] : ranks) {
      for (auto& [number, lane] : lanes) {
        std::stable_sort(lane.all.begin(), lane.all.end(),
                         [](const auto* a, const auto* b) { return a->end < b->end; });
        std::copy_if(lane.all.begin(), lane.all.end(), std::back_inserter(lane.awaited),
                     [](const MeasuredOp* o) { return !o->aside; });
      }
      for (const auto& [number, lane] : lanes) {
        for (const MeasuredOp* o : lane.all) {
          for (const auto& [other, earlier] : lanes)
            add_wait(*o, last_ended(other == number ? earlier.all : earlier.awaited, *o));
          if (o->needs >= 0) add_wait(*o, &run_.operations.at(static_cast<std::size_t>(o->needs)));
        }
      }
    }
    for (RunNode& n : graph_.nodes) {
      std::sort(n.after.begin(), n.after.end());
      n.after.erase(std::unique(n.after.begin(), n.after.end()), n.after.end());
    }
  }

  void add_wait(const MeasuredOp& waits, const MeasuredOp* ended) {
    if (ended == nullptr) return;
    const std::uint32_t from = node_of_.at(ended), to = node_of_.at(&waits);
    if (from < to) graph_.nodes[to].after.push_back(from);
  }

  const MeasuredRun& run_;
  StepGraph graph_;
  std::vector<const MeasuredOp*> operations_;
  std::map<const MeasuredOp*, std::uint32_t> node_of_;
};

}  // namespace

std::vector<StepGraph> step_graphs(const MeasuredRun& run) {
  std::map<std::int64_t, std::vector<const MeasuredOp*>> steps;
  for (const MeasuredOp& o : run.operations) steps[o.step].push_back(&o);
  std::vector<StepGraph> graphs;
  for (auto& [step, operations] : steps) graphs.push_back(GraphBuilder(run, step, std::move(operations)).build());
  return graphs;
}

double replayed(const StepGraph& graph, const std::function<double(const RunNode&)>& time,
                const std::function<double(const RunNode&)>& gap) {
  std::vector<double> ends(graph.nodes.size());
  double last = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const RunNode& n = graph.nodes[i];
    double ready = 0;
    for (const std::uint32_t a : n.after) ready = std::max(ready, ends[a]);
    ends[i] = ready + gap(n) + time(n);
    last = std::max(last, ends[i]);
  }
  return last;
}

}  // namespace orrery
